"""What must hold of every bill of a replay, for any row of requests under any cache rules."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Role
from everlong.lab import TARIFFS, Cache
from everlong.lab.replay.caches import Outgoing, Rules, shared
from everlong.wire import Usage
from tests.lab.folders import said

MESSAGES = tuple(said(Role.USER, letter) for letter in "abcdef")

rules = st.builds(
    Rules,
    kind=st.sampled_from(("automatic", "marked", "none")),
    least=st.sampled_from((1, 64, 1_024)),
    step=st.sampled_from((1, 64, 128)),
    seconds=st.sampled_from((1.0, 10.0, 300.0)),
)


@st.composite
def outgoing(draw: st.DrawFn) -> Outgoing:
    picked = draw(st.lists(st.integers(0, len(MESSAGES) - 1), min_size=1, max_size=8))
    messages = tuple(MESSAGES[at] for at in picked)
    marks = draw(st.none() | st.sets(st.integers(0, len(messages)), max_size=4))
    sizes = [300 * (at + 1) for at in picked]
    return Outgoing.of(
        draw(st.sampled_from((0, 700, 2_000))), messages, sizes, None if marks is None else tuple(sorted(marks))
    )


rows = st.lists(st.tuples(outgoing(), st.floats(0, 20)), min_size=1, max_size=12)


@given(rules, rows)
@settings(max_examples=200, deadline=None)
def test_what_is_read_written_and_plain_makes_up_the_prompt(rules: Rules, row: list[tuple[Outgoing, float]]) -> None:
    cache, now = Cache(rules), 0.0
    for sent, pause in row:
        now += pause
        usage = cache.take(sent, now)
        plain = usage.prompt - usage.cached - usage.cache_written
        assert usage.prompt == sent.tokens
        assert min(usage.cached, usage.cache_written, plain) >= 0
        assert usage.cached == 0 or usage.cached >= rules.least
        assert usage.cached % rules.step == 0


@given(rules, rows)
@settings(max_examples=200, deadline=None)
def test_no_more_is_read_than_an_earlier_request_began_with(rules: Rules, row: list[tuple[Outgoing, float]]) -> None:
    cache, now = Cache(rules), 0.0
    for at, (sent, pause) in enumerate(row):
        now += pause
        alike = [
            sent.ends[shared(before.messages, sent.messages)]
            for before, _ in row[:at]
            if before.ends[0] == sent.ends[0]
        ]
        assert cache.take(sent, now).cached <= max(alike, default=0)


@given(rules, rows)
@settings(max_examples=100, deadline=None)
def test_marks_of_ones_own_never_read_more_than_the_best(rules: Rules, row: list[tuple[Outgoing, float]]) -> None:
    own, best, now = Cache(rules), Cache(rules), 0.0
    for sent, pause in row:
        now += pause
        ideal = Outgoing(messages=sent.messages, ends=sent.ends)
        assert own.take(sent, now).cached <= best.take(ideal, now).cached


@pytest.mark.parametrize("name", ["anthropic", "anthropic-1h"])
@given(front=st.sampled_from((0, 500, 12_000)), sizes=st.lists(st.integers(1, 3_000), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_an_uncut_conversation_costs_the_closed_formula(name: str, front: int, sizes: list[int]) -> None:
    """Everything is written once, as soon as it is long enough, and read by each request that follows."""
    tariff = TARIFFS[name]
    cache = Cache(tariff.rules)
    messages = tuple(said(Role.USER, f"{at}") for at in range(len(sizes)))
    paid = [
        tariff.dollars(cache.take(Outgoing.of(front, messages[:end], sizes[:end]), end, output=10))
        for end in range(1, len(sizes) + 1)
    ]
    prompts = [front + sum(sizes[:end]) for end in range(1, len(sizes) + 1)]
    short = sum(prompt for prompt in prompts if prompt < tariff.rules.least)
    kept = [prompt for prompt in prompts if prompt >= tariff.rules.least]
    usage = Usage(prompt=sum(prompts), cached=sum(kept[:-1]), cache_written=sum(kept[-1:]), output=10 * len(sizes))
    assert usage.prompt - usage.cached - usage.cache_written == short
    assert sum(paid) == pytest.approx(tariff.dollars(usage))
