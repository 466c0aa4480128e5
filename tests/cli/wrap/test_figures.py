"""The figures of a run: what the gateway's counters say, and the lines that a person reads."""

from hypothesis import given, strategies as st
from openai import OpenAI

from everlong.cli.words.wording import LANGUAGES, Words
from everlong.cli.wrap.figures import Figures, closing_lines, figures_now
from everlong.testing import ScriptedServer
from tests.gateway.running import RunningGateway

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
    assert closing_lines(Figures(), ENGLISH, shared=True) == ["the client asked nothing of the gateway"]
    assert closing_lines(None, ENGLISH, shared=False) == ["this gateway does not tell its figures here"]
    one = Figures(requests=1, asked=1_000, sent=400, compactions=1, paid=0.5, paid_aside=0.1, saved=0.001)
    assert closing_lines(one, ENGLISH, shared=False) == [
        "1 request, 1 compaction",
        "1 000 prompt tokens asked for, 400 sent (60 % less)",
        "paid about $0.50 (of it $0.10 for summaries), saved about $0.0010",
    ]


def test_the_figures_are_the_gateways_own() -> None:
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        before = figures_now(gateway.address)
        assert before is not None
        assert before.requests == 0
        client = OpenAI(base_url=gateway.url, api_key="none")
        for _ in range(3):
            client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "How many boats?"}])
        after = figures_now(gateway.address)
        assert after is not None
    came = after.since(before)
    assert (came.requests, came.failed) == (3, 0)
    assert came.asked >= came.sent > 0
    assert figures_now("http://127.0.0.1:9") is None
