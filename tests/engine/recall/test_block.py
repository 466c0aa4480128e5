"""What is recalled by itself: for a question, whose parts and lacks are told apart, and in a tool loop for a step."""

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import CallId, EventKind, History, Message, Reasoning, Recalled, Role, Text, ToolCall
from everlong.engine.budget import counter_for
from everlong.engine.contracts import Call
from everlong.engine.engine import Engine
from everlong.engine.recall import block as recalled
from everlong.engine.recall.block import _lacking, _pieces
from everlong.engine.settings import Settings
from everlong.store import MemoryThreads
from everlong.wire import valid
from tests.core.build import result, system, user
from tests.engine.talking import FORMATS, pages


@pytest.mark.parametrize(
    ("said", "pieces"),
    [
        ("Which port? And who chose it?", ["Which port?", "And who chose it?"]),
        ("Which port was chosen?", []),
        ("Go on. Which port?\nWho chose it? Thanks!", ["Which port?", "Who chose it?"]),
        ("端口是多少？谁选的？", ["端口是多少？", "谁选的？"]),
        ("Port 8080, then?? And the host?", ["Port 8080, then?", "And the host?"]),
        ("No question. At all", []),
    ],
    ids=["two", "one", "among others", "Chinese", "two marks", "none"],
)
def test_several_questions_are_told_apart(said: str, pieces: list[str]) -> None:
    assert _pieces(said) == pieces


def test_a_pasted_line_without_end_is_read_once() -> None:
    # Read again from each of its letters this would take an hour.
    assert _pieces("Which port? Who chose it? " + "word " * 200_000) == ["Which port?", "Who chose it?"]


def test_only_words_that_are_nowhere_in_sight_are_lacking() -> None:
    assert _lacking("now run the harbour tests", (user("run the tests now"),)) == {"harbo"}


def test_of_a_long_paste_no_more_words_are_looked_for_than_a_query_has() -> None:
    pasted = " ".join(f"q{number}x" for number in range(5_000))
    assert len(_lacking(pasted, (user("nothing of it"),))) == 400


# --- in a tool loop ---------------------------------------------------------------------------------------------------

NAMED = "harbour_ledger_key"  # stands in one result, early, and in what the model says much later
SECRET = f"def {NAMED}():\n    return 'quay-7741-north'\n"
LARGEST = 400  # tokens of a block for a step
COUNTER = counter_for("gpt-4o")


@dataclass
class Loop:
    """An agent's tool loop past the window: each step a call with its words, and a page as its result."""

    fmt: str = "openai-chat"
    settings: Settings = field(default_factory=lambda: Settings(window=16_000, mode="trim"))
    sent: list[History] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = Engine(MemoryThreads(), settings=self.settings).blocking
        self.call = Call(model="gpt-4o", fmt=self.fmt, max_tokens=500)
        self.engine.append("t", [system("Work carefully."), user("Tidy up the harbour office, file by file.")])

    def step(self, number: int, words: str = "", page: str = "", *, signature: str = "") -> History:
        """One step, and the request that follows it."""
        thought = (Reasoning("Next.", signature),) if signature else ()
        said = (Text(words),) if words else ()
        call = ToolCall(CallId(f"c{number}"), "read_file", json.dumps({"path": f"src/part_{number}.py"}))
        answer = Message(Role.ASSISTANT, (*thought, *said, call))
        self.engine.append("t", [answer, result(f"c{number}", page or pages(number), name="read_file")])
        self.sent.append(self.engine.prepare("t", self.call).request.messages)
        return self.sent[-1]

    def compacted(self) -> "Loop":
        """The loop after a compaction that left the early result behind."""
        self.step(0, page=SECRET)
        number = 1
        while not self.points() or self.in_sight():
            self.step(number)
            number += 1
            assert number < 200, "what was read first never left"
        self.step(number)
        return self

    def points(self) -> int:
        return self.engine.context.threads.thread("t").points

    def in_sight(self) -> bool:
        return any("quay-7741-north" in text for message in self.sent[-1] for text in recalled._texts(message))

    def blocks(self) -> list[Message]:
        rows = self.engine.context.threads.read("t")
        return [row.entry.message for row in rows if isinstance(row.entry, Recalled)]


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_step_that_names_what_left_gets_it_once_behind_its_results(fmt: str) -> None:
    loop = Loop(fmt).compacted()
    before = loop.sent[-1]
    named = loop.step(900, f"Now I change {NAMED} as well.")
    (block,) = loop.blocks()
    assert "quay-7741-north" in block.text
    assert block.text.startswith("<background-"), "marked as background"
    assert COUNTER.message(block) <= LARGEST
    assert named[: len(before)] == before, "no byte before it changes"
    assert named[-1] == block, "behind the results of the step, never between a call and its result"
    assert valid(fmt, named)
    for number in range(901, 904):  # it stands where it is, and does not come twice
        later = loop.step(number, f"And {NAMED} again.")
        assert later[: len(named)] == named
        assert valid(fmt, later)
    assert loop.blocks() == [block]
    kinds = [event.kind for event in loop.engine.context.threads.events("t")]
    assert kinds.count(EventKind.RECALLED) == 1


def test_the_block_goes_with_the_next_compaction() -> None:
    loop = Loop().compacted()
    loop.step(900, f"Now I change {NAMED} as well.")
    (block,), before = loop.blocks(), loop.points()
    for number in range(901, 1_000):
        if loop.points() > before:
            break
        loop.step(number)
    assert loop.points() > before
    assert block not in loop.sent[-1]


UNCERTAIN: dict[str, dict[str, str]] = {
    "words that are no names": {"words": "Now I change the harbour ledger as well."},
    "a name that is in sight": {"words": "I read src/part_900.py with read_file."},
    "a name that stands nowhere": {"words": "Now I write lighthouse_keeper_key."},
    "nothing said": {},
    "only the result names it": {"page": f"x = {NAMED}()"},
    "thoughts that are bound to the loop": {"words": f"Now I change {NAMED} as well.", "signature": "c2lnbmVk"},
}


@pytest.mark.parametrize("said", UNCERTAIN.values(), ids=UNCERTAIN)
def test_nothing_is_recalled_where_it_is_not_certain(said: dict[str, str]) -> None:
    loop = Loop().compacted()
    loop.step(900, **said)  # type: ignore[arg-type]
    assert not loop.blocks()


def test_a_name_that_stands_everywhere_says_nothing() -> None:
    loop = Loop()
    for number in range(20):
        loop.step(number, page=f"{pages(number)}\n{NAMED}({number})")
    while not loop.points():
        loop.step(number := number + 1)
    loop.step(900, f"Now I change {NAMED} as well.")
    assert not loop.blocks()


def test_recall_share_0_recalls_nothing_for_a_step() -> None:
    loop = Loop(settings=Settings(window=16_000, mode="trim", recall_share=0.0)).compacted()
    loop.step(900, f"Now I change {NAMED} as well.")
    assert not loop.blocks()


@settings(max_examples=8, deadline=None)
@given(st.lists(st.sampled_from([NAMED, "function_1_3", "function_2_7", "src/part_1.py", ""]), min_size=6, max_size=14))
def test_recall_never_changes_what_was_sent(names: list[str]) -> None:
    loop = Loop().compacted()
    for number, name in enumerate(names, 900):
        before, points = loop.sent[-1], loop.points()
        after = loop.step(number, f"Now I look at {name}." if name else "")
        assert loop.points() > points or after[: len(before)] == before
        assert valid(loop.fmt, after)
        assert all(COUNTER.message(block) <= LARGEST for block in loop.blocks())
