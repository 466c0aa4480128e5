"""Compaction under the prompts of real agents: much system text, long answers asked for, no storms, no false refusals.

An agent reads file after file, several times what the window takes. `make test` plays the small windows, `make soak`
all of them.
"""

import itertools
import os
from dataclasses import dataclass

import pytest

from everlong.core import EventKind, Point
from everlong.engine.blocking_engine import BlockingEngine
from everlong.engine.budget import NEW_SHARE, counter_for
from everlong.engine.contracts import Call, Prepared
from everlong.engine.engine import Engine
from everlong.engine.settings import Settings
from everlong.errors import BudgetImpossible, ContextOverflow
from everlong.store import MemoryThreads
from everlong.wire import Usage, valid
from tests.core.build import calls, result, system, user

WINDOWS = (8_192, 16_384, 32_768, 65_536, 131_072, 200_000, 1_000_000)
SHORT = WINDOWS[:3]
SOAK = bool(os.environ.get("EVERLONG_SOAK"))
FIXED = (0.0, 0.25, 0.5, 0.7)
ASKED = (None, 4_096, 32_000)
MODELS = ("gpt-4o", "nobody-knows-me")
STEPS = 12  # that fill the movable part
TASK = "Mend the ledger of the harbour office, file by file."


def page(tokens: int, number: int) -> str:
    """A text of about so many tokens, different for each number."""
    return "\n".join(f"line {number}.{at} value {at * 7919 % 9973} of the ledger" for at in range(max(1, tokens // 13)))


@dataclass
class Agent:
    """An agent in a window, with a prompt of so many tokens; `sent` is what it sent."""

    window: int
    prompt: int
    asked: int | None
    model: str = "gpt-4o"
    reports: bool = True

    def __post_init__(self) -> None:
        self.engine: BlockingEngine = Engine(MemoryThreads(), settings=Settings(window=self.window)).blocking
        self.call = Call(model=self.model, max_tokens=self.asked)
        self.engine.append("t", [system(page(self.prompt, 0)), user(TASK)])
        self.sent: list[Prepared] = []

    def ask(self) -> Prepared:
        """One request; the provider counts what we count."""
        prepared = self.engine.prepare("t", self.call)
        self.sent.append(prepared)
        usage = Usage(prompt=self.tokens(prepared), output=20) if self.reports else None
        self.engine.record_usage(prepared, usage)
        return prepared

    def read(self, tokens: int) -> None:
        """One more file."""
        number = len(self.sent)
        self.engine.append("t", [calls(f"call{number}"), result(f"call{number}", page(tokens, number))])

    def work(self, filled: float) -> None:
        """Read files until the movable part was filled so many times."""
        step = max(60, self.ask().budget.movable // STEPS)
        for _ in range(int(filled * STEPS)):
            self.read(step)
            self.ask()

    def tokens(self, prepared: Prepared) -> int:
        """What the provider counts for a request."""
        return counter_for(self.model).messages(prepared.request.messages)

    @property
    def points(self) -> list[Point]:
        """Every compaction."""
        rows = self.engine.context.threads.points("t")
        return [row.entry for row, _ in rows if isinstance(row.entry, Point)]

    @property
    def new_between(self) -> list[int]:
        """Tokens that were new from one compaction to the next."""
        return [later.tokens_before - earlier.tokens_after for earlier, later in itertools.pairwise(self.points)]

    def breaks(self) -> int:
        """How often a request did not begin as the one before."""
        messages = [prepared.request.messages for prepared in self.sent]
        return sum(later[: len(one)] != one for one, later in itertools.pairwise(messages))


@pytest.mark.parametrize("window", WINDOWS if SOAK else SHORT)
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fixed", FIXED)
def test_law6_whatever_the_prompt_takes_compactions_are_rare_and_nothing_that_fits_is_refused(
    window: int, fixed: float, asked: int | None, model: str
) -> None:
    agent = Agent(window, int(fixed * window), asked, model)
    agent.work(3)
    assert 3 <= len(agent.points) <= 8
    assert agent.breaks() == len(agent.points)
    least = NEW_SHARE * min(prepared.budget.movable for prepared in agent.sent)
    assert all(new >= least * 0.98 for new in agent.new_between)  # a message has its frame
    for prepared in agent.sent:
        assert valid("openai-chat", prepared.request.messages)
        assert agent.tokens(prepared) + (prepared.request.max_tokens or 1) <= window
        assert user(TASK) in prepared.request.messages


@pytest.mark.parametrize("reports", [True, False], ids=["usage", "no usage"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("window", [4_096, *(WINDOWS if SOAK else SHORT)])
def test_nothing_is_compacted_before_85_percent_of_what_is_usable(window: int, model: str, reports: bool) -> None:
    agent = Agent(window, window // 8, None, model, reports)
    step = agent.ask().budget.movable // 40
    while not agent.points:
        agent.read(step)
        last = agent.ask()
    before = agent.points[0].tokens_before
    budget = last.budget
    usable = window - budget.reply - budget.fixed
    assert 0.85 * usable <= before - budget.fixed <= usable


#: window, system text, max_tokens, model: refused by us before, although each of them fits
FITS = [
    (32_000, 22_000, 4_096, "nobody-knows-me"),
    (64_000, 28_000, 32_000, "claude-sonnet-4-5"),
    (32_768, 26_000, 8_192, "gpt-4o"),
    (32_768, 30_000, 8_192, "gpt-4o"),
    (16_384, 9_000, 32_000, "qwen3-coder"),
    (8_192, 7_000, None, "gpt-4o"),
]


@pytest.mark.parametrize(("window", "prompt", "asked", "model"), FITS)
def test_law2_the_reserve_gives_way_before_anyone_is_refused(
    window: int, prompt: int, asked: int | None, model: str
) -> None:
    agent = Agent(window, prompt, asked, model)
    agent.work(2)
    for prepared in agent.sent:
        allowed = prepared.request.max_tokens
        assert agent.tokens(prepared) + (allowed or 1) <= window
        assert (allowed is None) is (asked is None)
        assert allowed is None or 1_024 <= allowed <= (asked or 0)
    events = agent.engine.context.threads.events("t")
    shortened = [event for event in events if event.kind is EventKind.REPLY_SHORTENED]
    sent_shorter = [prepared for prepared in agent.sent if (prepared.request.max_tokens or 0) < (asked or 0)]
    assert [event.tokens_after for event in shortened] == [prepared.request.max_tokens for prepared in sent_shorter]


def test_an_answer_is_never_shorter_than_its_thinking() -> None:
    agent = Agent(32_000, 24_000, 16_000, "claude-sonnet-4-5")
    agent.call = Call(model=agent.model, max_tokens=16_000, thinking=4_000)
    agent.work(2)
    assert all(4_001 <= (prepared.request.max_tokens or 0) < 16_000 for prepared in agent.sent)


def test_law2_what_cannot_fit_by_an_exact_count_is_refused_and_the_parts_add_up() -> None:
    agent = Agent(32_000, 33_000, 8_192)
    with pytest.raises(BudgetImpossible) as refused:
        agent.ask()
    parts = dict(refused.value.parts)
    assert parts.keys() == {"system text", "last user message", "the shortest answer"}
    assert parts["the shortest answer"] == 1_024
    assert refused.value.limit == 32_000 < refused.value.needed == sum(parts.values())
    assert f"needs at least {refused.value.needed:,} tokens, but the limit is 32,000" in str(refused.value)


def test_where_sizes_are_estimated_the_provider_decides() -> None:
    agent = Agent(32_000, 33_000, 8_192, "nobody-knows-me")
    assert agent.ask().request.max_tokens == 1_024


def test_who_has_little_to_move_is_told_once_what_takes_the_window() -> None:
    agent = Agent(32_768, 27_000, 4_096)
    agent.work(2)
    events = agent.engine.context.threads.events("t")
    told = [
        event.reason for event in events if event.kind is EventKind.CONTEXT_WARNED and "can free only" in event.reason
    ]
    assert len(told) == 1
    assert "system text 2" in told[0]
    assert "a shorter system text" in told[0]


def test_a_large_last_message_is_no_storm_and_brings_nothing_back() -> None:
    agent = Agent(65_536, 5_000, 32_000)
    agent.work(2)
    agent.engine.append("t", [user("Look at this: " + page(28_000, 999))])
    before = len(agent.points)
    step = agent.ask().budget.movable // STEPS
    for _ in range(2 * STEPS):
        agent.read(step)
        agent.ask()
    assert len(agent.points) - before <= 6
    assert agent.breaks() == len(agent.points)


def test_a_soft_cap_below_the_prompt_is_no_storm() -> None:
    agent = Agent(128_000, 20_000, None)
    agent.engine = Engine(agent.engine.context.threads, settings=Settings(window=128_000, soft_cap=16_000)).blocking
    agent.ask()
    for _ in range(30):
        agent.read(500)
        agent.ask()
    assert 2 <= len(agent.points) <= 12
    assert agent.breaks() == len(agent.points)


def test_a_window_that_is_only_guessed_refuses_nothing() -> None:
    agent = Agent(128_000, 1_000, 500)
    for number in range(20):
        agent.read(500 + number)
        agent.ask()
    agent.read(500)
    refused = agent.engine.prepare("t", agent.call)
    again = agent.engine.recover(refused, ContextOverflow("too long"))
    assert again.counted < refused.counted
    agent.engine.record_usage(again, None)
    agent.engine.append("t", [user("Look at this: " + page(20_000, 999))])
    assert agent.engine.prepare("t", agent.call).window.context < 20_000 < agent.ask().counted
