"""A message that is sent again under its name is said once: after a lost answer, and after the end of the program."""

from everlong.core import Message, Role, Text
from everlong.llm import Answer, in_turn
from everlong.store import MemoryThreads
from tests.web.running import an_app

NAME = "3f0c2a11-6f0e-4a52-9a44-0e7e2f0f8a01"


def test_the_same_message_sent_again_is_said_and_answered_once() -> None:
    with an_app(in_turn([Answer(text="Yes."), Answer(text="Twice!")])) as (app, server):
        page = app.page()
        thread = page.thread()
        page.say(thread, "Are you there?", id=NAME)
        page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "Are you there?", "id": NAME})
        rows = page.rows(thread)
        assert [(row["role"], row["text"]) for row in rows[1:]] == [("user", "Are you there?"), ("assistant", "Yes.")]
        assert rows[1]["id"] == NAME
        assert len(server.requests) == 1


def test_what_enters_a_running_turn_has_its_name_too() -> None:
    slowly = Answer(text="word " * 200, between=0.01)
    with an_app(in_turn([slowly, Answer(text="Done.")])) as (app, _):
        page = app.page()
        thread = page.thread()
        with page.listen(thread) as stream:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "Begin"})
            stream.until("said")
            for _ in range(2):
                page.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": "And the tide?", "id": NAME})
            stream.until("ended")
        assert [row["text"] for row in page.rows(thread) if row["role"] == "user"] == ["Begin", "And the tide?"]


def test_a_message_that_was_stored_before_the_program_ended_is_answered_when_it_is_sent_again() -> None:
    threads = MemoryThreads()
    with an_app(in_turn([Answer(text="Here I am.")]), threads=threads) as (app, _):
        page = app.page()
        thread = page.thread(model="main/scripted")
        threads.append(thread, [Message(Role.USER, (Text("Hello?"),))], ids=[NAME])
        page.say(thread, "Hello?", id=NAME)
        assert [row["text"] for row in page.rows(thread)] == ["Hello?", "Here I am."]


def test_a_message_that_was_refused_may_be_sent_again() -> None:
    with an_app(in_turn([Answer(text="Yes.")]), sources=()) as (app, _):
        page = app.page()
        thread = page.thread()
        for _ in range(2):
            assert page.ask("POST", f"/everlong/api/threads/{thread}/turn", {"text": "Hello", "id": NAME})[0] == 409
        told = page.ask("POST", f"/everlong/api/threads/{thread}/turn", {"text": "Hello", "id": "a\nb"})
        assert told == (400, {"error": {"kind": "input", "message": "id must have 8 to 64 letters, digits or hyphens"}})
