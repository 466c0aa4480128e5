"""Turns as they are seen: words as they come, calls, questions, the meter; and nothing of a stranger acts."""

import asyncio
import json
import re
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from rich.console import Console

from everlong.agent import DEFAULT_CONFIG, CallEnded, CallStarted, Entered, Outcome, TurnEnded
from everlong.cli.chat.drawing import LONGEST_OPEN, Blocks, markdown
from everlong.cli.chat.keyboard import completions
from everlong.cli.chat.program import event_json
from everlong.cli.chat.sample import begin_sample, sample_talk
from everlong.cli.chat.screen import MOST_SHOWN, Screen, meter_text
from everlong.cli.chat.setup import ChatOptions, choose, provider_of_key
from everlong.cli.words.chinese import CHINESE
from everlong.cli.words.english import ENGLISH
from everlong.cli.words.wording import Words
from everlong.core import EventKind, Message, Role, Text
from everlong.engine import CallGrew, Failed, Finished, Meter, Restarted, Said, Thought
from everlong.errors import ContextOverflow, InputError, ProviderError
from everlong.llm import Answer, Asked, Broken, Step, in_turn
from everlong.tokens import Counter
from everlong.wire import Usage
from tests.cli.chat.talk import SECONDS, Person, talking

HOSTILE = "red\x1b[31m \x1b]0;title\x07 \x9b2J back\x08 \u202egnp.exe\u202c \x00nul \ud800half &#x202e;x &#27;[2J"
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


# --- blocks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complete", "left"),
    [
        ("one", [], "one"),
        ("one\n\ntwo", ["one\n\n"], "two"),
        ("```py\na\n\nb\n```\nafter", ["```py\na\n\nb\n```\n"], "after"),
        ("~~~\n```\n~~~\n", ["~~~\n```\n~~~\n"], ""),
        ("````\n```\n````\nx", ["````\n```\n````\n"], "x"),
        ("\n\n\n", ["", "", ""], ""),
    ],
    ids=["open", "paragraph", "fence with an empty line", "other fence inside", "longer fence", "empty lines"],
)
def test_text_is_cut_into_blocks_that_are_complete(text: str, complete: list[str], left: str) -> None:
    blocks = Blocks()
    assert blocks.add(text) == complete
    assert blocks.open == left


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab `~\n", max_size=120), st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_no_word_is_lost_however_the_pieces_fall(text: str, sizes: list[int]) -> None:
    blocks, seen, at, turn = Blocks(), [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        seen += blocks.add(text[at : at + size])
        at, turn = at + size, turn + 1
    seen.append(blocks.end())
    assert "".join("".join(seen).split()) == "".join(text.split())


def test_a_block_that_does_not_end_is_closed_by_us_and_its_fence_opened_again() -> None:
    blocks = Blocks()
    done = blocks.add("```py\n" + "x = 1\n" * LONGEST_OPEN)
    assert len(done) > 1
    assert all(block.startswith("```py\n") and block.endswith("\n```\n") for block in done)
    assert blocks.open.startswith("```py\n")
    assert len(blocks.open) < LONGEST_OPEN


# --- what is seen -----------------------------------------------------------------------------------


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


# --- turns ------------------------------------------------------------------------------------------


def shelling(asked: Asked) -> Step:
    if asked.messages[-1].results:
        return Answer(text="Done.")
    return Answer(calls=(("shell", '{"command": "echo made > made.txt"}'),))


@pytest.mark.parametrize(
    ("answers", "made"),
    [(["y"], 1), (["yes"], 1), (["n"], 0), ([""], 0), (["what?"], 0)],
    ids=["y", "yes", "n", "nothing", "nonsense"],
)
def test_the_shell_asks_first(tmp_path: Path, answers: list[str], made: int) -> None:
    with talking(tmp_path, shelling) as talk:
        talk.person.answers = answers
        seen = talk.say("make it")
        assert "echo made > made.txt" in seen
        assert len(talk.person.asked) == 1
    assert (tmp_path / "made.txt").exists() == bool(made)


def test_always_is_asked_once_in_a_chat(tmp_path: Path) -> None:
    with talking(tmp_path, shelling) as talk:
        talk.person.answers = ["a"]
        talk.say("make it")
        talk.say("again")
        assert len(talk.person.asked) == 1
    assert (tmp_path / "made.txt").exists()


def test_where_nobody_can_be_asked_nothing_is_done(tmp_path: Path) -> None:
    with talking(tmp_path, shelling) as talk:
        talk.chat.person = None
        assert "nobody can be asked here" in talk.say("make it")
    assert not (tmp_path / "made.txt").exists()


def test_a_broken_answer_is_told_and_the_next_turn_goes_on(tmp_path: Path) -> None:
    script = in_turn([Broken(Answer(text="one two three"), 2)])
    with talking(tmp_path, script, tools=False) as talk:
        assert "✗ the connection was lost" in talk.say("first")
        assert talk.chat.error == "the connection was lost"
        assert "second" in talk.say("second")
        assert talk.chat.error == ""


@pytest.mark.parametrize(
    ("meter", "text", "certainty"),
    [
        (Meter(tokens=3_412, limit=8_192, exact=True, known=True), "3 412 / 8 192 tokens · 42 %", "exact"),
        (Meter(tokens=3_412, limit=8_192, exact=False, known=True), "~3 412 / 8 192 tokens · 42 %", "estimated"),
        (Meter(tokens=12, limit=128_000, exact=False, known=False), "~12 / ? tokens (128 000 assumed)", "unknown"),
    ],
    ids=["exact", "estimated", "unknown"],
)
def test_the_meter_says_how_sure_it_is(meter: Meter, text: str, certainty: str) -> None:
    assert meter_text(meter, Words(ENGLISH, "chat")) == text
    assert meter.certainty == certainty


@pytest.mark.parametrize(
    ("answer", "sign"),
    [
        (Answer(text="hi"), " "),
        (Answer(text="hi", reported=False), "~"),
        (Answer(text="hi", usage=Usage(prompt=15_999_999, output=5)), "~"),
        (Answer(text="hi", usage=Usage(prompt=1, output=5)), "~"),
    ],
    ids=["reported", "nothing reported", "far too much", "far too little"],
)
def test_the_meter_believes_what_can_be_true(tmp_path: Path, answer: Answer, sign: str) -> None:
    with talking(tmp_path, lambda _: answer, tools=False) as talk:
        line = talk.say("what is in the window now? " * 20).splitlines()[-1]
        assert re.search(rf"{sign}\d+ / 16 000 tokens · \d+ %  scripted", line)


def test_looking_changes_nothing(tmp_path: Path) -> None:
    with talking(tmp_path, tools=False) as talk:
        talk.say("hello")
        session = talk.chat.session
        threads = session.engine.threads
        before = (threads.thread(session.thread).length, len(threads.events(session.thread)))
        first = talk.chat.worker.do(session.preview())
        second = talk.chat.worker.do(session.preview())
        assert first == second
        assert before == (threads.thread(session.thread).length, len(threads.events(session.thread)))


# --- where it begins --------------------------------------------------------------------------------


def test_the_sample_fills_a_small_window_and_is_soon_cut(tmp_path: Path) -> None:
    with talking(tmp_path, lambda _: Answer(text="Indeed. " * 60), window=4_096, tools=False, small=True) as talk:
        messages, window = talk.chat.worker.do(begin_sample(talk.chat.session))
        assert (window, messages > 4) == (4_096, True)
        turns = [talk.say(f"question {number}") for number in range(8)]
        threads = talk.chat.session.engine.threads
        assert threads.events(talk.chat.session.thread, kinds=[EventKind.CONTEXT_COMPRESSED])
        assert any("cut:" in seen for seen in turns)


def test_the_sample_has_questions_and_answers_in_words() -> None:
    talk = sample_talk(Counter("gpt-4o"), 3_000)
    assert [message.role for message in talk] == [Role.USER, Role.ASSISTANT] * (len(talk) // 2)
    assert all(message.text and not message.calls for message in talk)
    assert Counter("gpt-4o").messages(talk) <= 3_000
    assert all(message.text.isascii() or len(message.text) for message in sample_talk(Counter(), 900, latin=True))


@pytest.mark.parametrize(
    ("key", "provider"),
    [("sk-ant-x", "anthropic"), ("sk-or-v1", "openrouter"), ("gsk_1", "groq"), ("AIzaSy", "google"), ("sk-x", "")],
)
def test_keys_are_known_by_their_beginning(key: str, provider: str) -> None:
    assert provider_of_key(key) == provider


@pytest.mark.parametrize(
    ("options", "environment", "answers", "url"),
    [
        ({"local": True}, {"OPENAI_API_KEY": "k"}, [], None),
        ({"upstream": "http://gate:8333/v1"}, {"OPENAI_API_KEY": "k"}, [], "http://gate:8333/v1"),
        ({"upstream": "deepseek"}, {}, [], "https://api.deepseek.com/v1"),
        ({}, {"OPENAI_API_KEY": "k"}, [], "https://api.openai.com/v1"),
        ({}, {"EVERLONG_UPSTREAM": "http://gate/v1"}, [], "http://gate/v1"),
        ({}, {}, ["1"], None),
        ({}, {}, [""], None),
        ({}, {}, ["2", "sk-ant-secret"], "https://api.anthropic.com/v1"),
        ({}, {}, ["2", "http://gate/v1", "key"], "http://gate/v1"),
        ({}, {}, ["2", "ollama"], "http://127.0.0.1:11434/v1"),
        ({}, {}, ["2", "sk-unknown", "mistral"], "https://api.mistral.ai/v1"),
    ],
)
def test_where_the_model_comes_from(
    options: dict[str, object], environment: dict[str, str], answers: list[str], url: str | None
) -> None:
    person = Person(answers)
    chosen = ChatOptions(language=ENGLISH, **options)  # type: ignore[arg-type]
    endpoint = choose(chosen, DEFAULT_CONFIG, environment, person, Words(ENGLISH, "chat"))
    assert (endpoint and endpoint.url) == url
    assert not person.answers
    assert "secret" not in repr(endpoint)


@pytest.mark.parametrize(
    ("upstream", "key"),
    [
        ("openai", "openai-key"),
        ("https://api.openai.com/v1", "openai-key"),
        ("http://gate/v1", "gateway-key"),
        ("deepseek", ""),
        ("ollama", ""),
    ],
)
def test_a_key_goes_to_its_owner_only(upstream: str, key: str) -> None:
    environment = {"OPENAI_API_KEY": "openai-key", "EVERLONG_KEY": "gateway-key"}
    chosen = ChatOptions(language=ENGLISH, upstream=upstream)
    endpoint = choose(chosen, DEFAULT_CONFIG, environment, None, Words(ENGLISH, "chat"))
    assert endpoint is not None
    assert endpoint.key == key


def test_without_a_model_and_without_a_person_there_is_one_clear_line() -> None:
    with pytest.raises(InputError, match="--local, --upstream URL, or set a key"):
        choose(ChatOptions(language=ENGLISH), DEFAULT_CONFIG, {}, None, Words(ENGLISH, "chat"))


@pytest.mark.parametrize(
    ("line", "found"),
    [("/thr", ["/threads ", "/threshold "]), ("/x", []), ("hello", []), ("/image ", ["a.png", "sub/"])],
)
def test_tab_completes_commands_and_paths(tmp_path: Path, line: str, found: list[str]) -> None:
    (tmp_path / "a.png").touch()
    (tmp_path / "sub").mkdir()
    start = f"{line}{tmp_path}/" if line == "/image " else line
    prefix = f"{tmp_path}/" if line == "/image " else ""
    assert completions(start, ["/threads", "/threshold", "/image"], ["/image"]) == [prefix + each for each in found]


def test_what_is_too_long_to_be_seen_is_said_before_it_is_allowed(tmp_path: Path) -> None:
    command = json.dumps({"command": "true " + "x" * 5_000 + "; rm -rf everything"})
    with talking(tmp_path, in_turn([Answer(calls=(("shell", command),)), Answer(text="ok")])) as talk:
        assert "… and 1 033 more characters" in talk.say("do it")


def test_a_question_whose_call_is_over_is_not_asked(tmp_path: Path) -> None:
    with talking(tmp_path, in_turn([Answer(text="ok")])) as talk:
        asking = talk.chat.worker.start(talk.chat.inbox.approve("shell", "command: late"))
        question = talk.chat.inbox.items.get(timeout=SECONDS)
        asking.cancel()
        talk.chat.worker.do(asyncio.sleep(0))  # behind the cancelling
        talk.chat.inbox.items.put(question)
        talk.say("go on")
        assert talk.person.asked == []


@pytest.mark.parametrize("width", [30, 44, 100])
def test_the_figures_of_the_meter_are_seen_in_a_narrow_terminal(width: int) -> None:
    seen = StringIO()
    screen = Screen(Console(file=seen, width=width, color_system=None), Words(CHINESE, "chat"))
    screen.meter(Meter(tokens=1_339, limit=16_000, exact=True, known=True), "a-model-with-quite-a-long-name")
    assert "1 339 / 16 000 token · 8 %" in seen.getvalue()
    assert seen.getvalue().count("\n") == 1


def test_a_block_is_drawn_without_empty_lines_around_it() -> None:
    seen = StringIO()
    out = Console(file=seen, width=40, color_system=None)
    for block in ("- one\n- two\n\n", "```py\nx = 1\n```\n", "| a |\n|---|\n| 1 |\n"):
        out.print(markdown(block))
    lines = [line.strip() for line in seen.getvalue().splitlines()]
    assert all(lines)
    assert lines[:3] == ["• one", "• two", "x = 1"]
