"""Turns as they are seen: words as they come, calls, the meter; and nothing of a stranger acts."""

import json
import re
from io import StringIO

import pytest
from rich.console import Console

from everlong.agent import CallEnded, CallStarted, Entered, Outcome, TurnEnded
from everlong.cli.chat.drawing import markdown
from everlong.cli.chat.program import event_json
from everlong.cli.chat.screen import MOST_SHOWN, Screen, meter_text
from everlong.cli.words.chinese import CHINESE
from everlong.cli.words.english import ENGLISH
from everlong.cli.words.wording import Words
from everlong.core import Message, Role, Text
from everlong.engine import CallGrew, Failed, Finished, Meter, Restarted, Said, Thought
from everlong.errors import ContextOverflow, ProviderError
from everlong.wire import Usage

HOSTILE = "red\x1b[31m \x1b]0;title\x07 \x9b2J back\x08 \u202egnp.exe\u202c \x00nul \ud800half &#x202e;x &#27;[2J"


STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(*events: object, terminal: bool = True, height: int = 25) -> str:
    out = StringIO()
    console = Console(
        file=out,
        width=80,
        height=height,
        force_terminal=terminal,
        color_system=None,
        highlight=False,
        legacy_windows=False,
    )
    screen = Screen(console, Words(ENGLISH, "chat"))
    screen.begin()
    for event in events:
        screen.show(event)  # type: ignore[arg-type]
    screen.end()
    return out.getvalue()


def without_moves(text: str) -> str:
    """What is written, without the moves of the cursor that redraw what is open."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_hostile_words_reach_no_terminal_raw(terminal: bool) -> None:
    events = [
        Thought(HOSTILE + "\n\n"),
        *(Said(piece) for piece in HOSTILE),
        CallStarted("c", HOSTILE, json.dumps({"path": HOSTILE})),
        CallEnded("c", HOSTILE, Outcome(HOSTILE, failed=True), 0.1),
        Restarted(HOSTILE),
        Failed(ProviderError(HOSTILE), begun=True),
    ]
    seen = shown(*events, terminal=terminal).replace("\r", "")
    moves = set(re.findall(r"\x1b\[[0-9;?]*[A-Za-z]", seen))
    assert moves <= {"\x1b[?25l", "\x1b[?25h", "\x1b[1A", "\x1b[2K", "\x1b[0m"}
    assert not STEERING.search(without_moves(seen))
    assert "red" in seen


def test_links_say_where_they_lead() -> None:
    out = StringIO()
    Console(file=out, width=80, force_terminal=True).print(markdown("[your bank](http://evil.example)"))
    assert "http://evil.example" in out.getvalue()
    assert "\x1b]8" not in out.getvalue()


def test_an_answer_without_end_is_shown_as_far_as_it_is_worth() -> None:
    piece = "kettle " * 1_000
    events = [Said(piece + "\n\n") for _ in range(MOST_SHOWN // len(piece) + 50)]
    seen = shown(*events)
    assert seen.count("kettle") < 1.5 * MOST_SHOWN / len("kettle ")
    assert "the answer continues" in seen
    assert shown(*events, terminal=False).count("kettle") == 1_000 * len(events)


def test_a_line_without_end_does_not_wait_in_a_pipe() -> None:
    assert shown(*(Said("kettle " * 100) for _ in range(500)), terminal=False).strip() == ("kettle " * 50_000).strip()


def test_what_is_open_is_never_taller_than_the_terminal() -> None:
    code = "```\n" + "\n".join(f"line {n}" for n in range(100))
    seen = shown(*(Said(line + "\n") for line in code.split("\n")), height=20)
    ups = max((run.count("\x1b[1A") for run in re.findall(r"(?:\x1b\[2K|\x1b\[1A|\r)+", seen)), default=0)
    assert ups < 20
    assert without_moves(seen).count("line 57\n") <= 20
    assert "line 99" in seen


def test_a_pipe_gets_the_answer_as_it_was_written_and_nothing_else() -> None:
    answer = "# One\n\n```\ncode\n```\n\n* two\n  last"
    seen = shown(Thought("hm"), *(Said(piece) for piece in re.findall(r"(?s).{1,3}", answer)), terminal=False)
    assert seen == answer + "\n"


def test_a_call_that_was_stopped_before_it_began_is_told_too() -> None:
    seen = shown(CallStarted("c", "shell", '{"command": "ls"}'), TurnEnded("interrupted", 1), terminal=False)
    assert "✗ 1 shell ls · stopped" in seen
    assert "■ stopped" in seen


EVENTS = [
    Said("x"),
    Thought("x"),
    CallGrew(0, "c", "n", "{}"),
    Restarted("why"),
    Finished(Message(Role.ASSISTANT, (Text("x"),)), Usage(prompt=3, output=1), "stop"),
    Finished(Message(Role.ASSISTANT, (Text("x"),)), None, "length"),
    Failed(ContextOverflow("too long"), begun=False),
    Entered(Message(Role.USER, (Text("x"),))),
    CallStarted("c", "n", "{}"),
    CallEnded("c", "n", Outcome("x"), 0.5),
    TurnEnded("done", 1, 4),
    TurnEnded("interrupted", 1, 4),
    TurnEnded("most steps", 40, 4),
    TurnEnded("failed", 1, 4),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_can_be_seen_and_written_as_json(event: object) -> None:
    shown(event)
    written = json.loads(json.dumps(event_json(event)))  # type: ignore[arg-type]
    assert written["event"]


UNKNOWN = "~12 tokens · window unknown, 96,000 assumed"


@pytest.mark.parametrize(
    ("meter", "text", "certainty"),
    [
        (Meter(tokens=3_412, limit=8_192, exact=True, known=True), "3,412 / 8,192 tokens · 42 %", "exact"),
        (Meter(tokens=3_412, limit=8_192, exact=False, known=True), "~3,412 / 8,192 tokens · 42 %", "estimated"),
        (
            Meter(tokens=12, limit=128_000, exact=False, known=False),
            "~12 tokens · window unknown, 128,000 assumed",
            "unknown",
        ),
    ],
    ids=["exact", "estimated", "unknown"],
)
def test_the_meter_says_how_sure_it_is(meter: Meter, text: str, certainty: str) -> None:
    assert meter_text(meter, Words(ENGLISH, "chat")) == text
    assert meter.certainty == certainty


@pytest.mark.parametrize("width", [30, 44, 100])
def test_the_figures_of_the_meter_are_seen_in_a_narrow_terminal(width: int) -> None:
    seen = StringIO()
    screen = Screen(Console(file=seen, width=width, color_system=None), Words(CHINESE, "chat"))
    screen.meter(Meter(tokens=1_339, limit=16_000, exact=True, known=True), "a-model-with-quite-a-long-name")
    assert "1,339 / 16,000 token · 8 %" in seen.getvalue()
    assert seen.getvalue().count("\n") == 1
