"""The figures of a run: what the gateway's counters say, and the lines that a person reads."""

from hypothesis import given, strategies as st
from openai import OpenAI

from everlong.cli.words.wording import LANGUAGES, Words
from everlong.cli.wrap.figures import Figures, closing_lines, figures_now
from everlong.testing import ScriptedServer
from tests.gateway.running import RunningGateway
from tests.sdk_clients import closed_later

ENGLISH, CHINESE = (Words(language, "wrap") for language in LANGUAGES)
counts = st.integers(0, 10**9).map(float)
sums = st.floats(0, 10**6)
figures = st.builds(
    Figures,
    requests=counts,
    failed=counts,
    unmanaged=counts,
    asked=counts,
    sent=counts,
    compactions=counts,
    summaries=counts,
    recovered=counts,
    paid=sums,
    paid_aside=sums,
    saved=sums,
)


@given(figures, figures)
def test_the_lines_are_whole_in_both_languages_whatever_the_figures(before: Figures, after: Figures) -> None:
    came = after.since(before)
    assert all(value >= 0 for value in came.as_json().values())
    for say in (ENGLISH, CHINESE):
        lines = closing_lines(came, say, shared=True)
        assert lines
        assert not any("{" in line or "\n" in line for line in lines)


def test_what_did_not_happen_is_not_said() -> None:
    assert closing_lines(Figures(), ENGLISH, shared=True) == ["the client sent no request to the gateway"]
    assert closing_lines(None, ENGLISH, shared=False) == ["this gateway does not share its figures"]
    one = Figures(requests=1, asked=1_000, sent=400, compactions=1, paid=0.5, paid_aside=0.1, saved=0.001)
    assert closing_lines(one, ENGLISH, shared=False) == [
        "1 request, 1 compaction",
        "1,000 prompt tokens from the client, 400 sent (60 % less)",
        "about $0.50 at list prices, including $0.10 for summaries; without Everlong about $0.0010 more at uncached "
        "input prices",
    ]


def test_frequent_compactions_bring_advice() -> None:
    often = Figures(requests=9, asked=9_000, sent=4_000, compactions=3, paid=0.5)
    rarely = Figures(requests=10, asked=9_000, sent=4_000, compactions=3, paid=0.5)
    advice = ENGLISH("closing_often")
    assert "larger window" in advice
    assert advice in closing_lines(often, ENGLISH, shared=False)
    assert advice not in closing_lines(rarely, ENGLISH, shared=False)
    assert "about $0.50 at list prices" in closing_lines(rarely, ENGLISH, shared=False)


def test_without_a_price_cost_and_savings_are_unknown() -> None:
    lines = closing_lines(Figures(requests=1, asked=10, sent=10), ENGLISH, shared=False)
    assert lines[-1] == "cost and savings are unknown: no price is known for these models"


def test_the_figures_are_the_gateways_own() -> None:
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        before = figures_now(gateway.address)
        assert before is not None
        assert before.requests == 0
        client = closed_later(OpenAI(base_url=gateway.url, api_key="none"))
        for _ in range(3):
            client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "How many boats?"}])
        after = figures_now(gateway.address)
        assert after is not None
    came = after.since(before)
    assert (came.requests, came.failed) == (3, 0)
    assert came.asked >= came.sent > 0
    assert figures_now("http://127.0.0.1:9") is None
