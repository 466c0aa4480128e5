"""Turns at a terminal: calls that need approval, failures, and what is sent."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from everlong.agent import Action
from everlong.llm import Answer, ReceivedRequest, Step, in_turn
from everlong.llm.scripted.script import Broken
from everlong.wire import Usage
from tests.cli.chat.talk import SECONDS, talking

LATE = Action(tool="shell", kind="command", subject="late", details="late")


def shelling(asked: ReceivedRequest) -> Step:
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


def test_for_this_thread_is_asked_once_in_a_thread(tmp_path: Path) -> None:
    with talking(tmp_path, shelling) as talk:
        talk.person.answers = ["t"]
        talk.say("make it")
        talk.say("again")
        assert len(talk.person.asked) == 1
    assert (tmp_path / "made.txt").exists()


def test_where_nobody_can_be_asked_nothing_is_done(tmp_path: Path) -> None:
    with talking(tmp_path, shelling, asked=False) as talk:
        assert "there is no one to ask" in talk.say("make it")
    assert not (tmp_path / "made.txt").exists()


def test_a_broken_answer_is_told_and_the_next_turn_goes_on(tmp_path: Path) -> None:
    script = in_turn([Broken(Answer(text="one two three"), 2)])
    with talking(tmp_path, script, tools=False) as talk:
        assert "✗ the connection was lost" in talk.say("first")
        assert talk.chat.error == "the connection was lost"
        assert "second" in talk.say("second")
        assert talk.chat.error == ""


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
        assert re.search(rf"{sign}\d+ / 16,000 tokens · \d+ %  scripted", line)


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


def test_what_is_too_long_to_be_seen_is_refused_unasked(tmp_path: Path) -> None:
    command = json.dumps({"command": "echo hi" + " " * 21_000 + "; touch made.txt"})
    with talking(tmp_path, in_turn([Answer(calls=(("shell", command),)), Answer(text="ok")])) as talk:
        talk.person.answers = ["y"]
        assert "shell was not allowed: it is too long to show" in talk.say("do it")
        assert talk.person.asked == []
    assert not (tmp_path / "made.txt").exists()


def test_a_question_whose_call_is_over_is_not_asked(tmp_path: Path) -> None:
    with talking(tmp_path, in_turn([Answer(text="ok")])) as talk:
        asking = talk.chat.worker.start(talk.chat.inbox.approve(LATE))
        question = talk.chat.inbox.items.get(timeout=SECONDS)
        asking.cancel()
        talk.chat.worker.do(asyncio.sleep(0))  # behind the cancelling
        talk.chat.inbox.items.put(question)
        talk.say("go on")
        assert talk.person.asked == []
