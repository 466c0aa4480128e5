"""The app on several processes: two `everlong serve` on one Postgres are one app, whichever a page reaches."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event as Signal

import pytest

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Step, Window
from everlong.llm.scripted.script import Script
from tests.gateway.processes import ServingProcess
from tests.store.postgres_server import database_url, drop_database
from tests.web.running import Page

API = "/everlong/api/threads"
WORDS = " ".join(f"word{at}" for at in range(4_000))


@pytest.fixture
def store() -> Iterator[str]:
    url = database_url()
    yield url
    drop_database(url)


@contextmanager
def servers(
    count: int, script: Script, store: str, folder: Path
) -> Iterator[tuple[tuple[ServingProcess, ...], ScriptedServer]]:
    """Servers of one app, and the model that all of them ask."""
    file = folder / "serve.toml"
    file.write_text("app_lease = 3.0\ngrace = 1.0\naccess_log = false\n")
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedServer(script, window=Window(16_384, told=True)))
        options = ("--config", str(file), "--upstream", model.url, "--store", store)
        yield tuple(stack.enter_context(ServingProcess(*options, folder=folder)) for _ in range(count)), model


def shown(events: list[dict[str, str]]) -> str:
    """What a page has drawn."""
    return "".join(event["text"] for event in events if event["type"] == "said")


def test_two_processes_are_one_app(store: str, tmp_path: Path) -> None:
    def script(asked: ReceivedRequest) -> Step:
        if "command" not in asked.messages[1].text:
            return Answer(text=WORDS, between=0.005)
        done = asked.messages[-1].results
        return Answer(text="It is done.") if done else Answer(calls=(("shell", '{"command": "echo boats"}'),))

    with servers(2, script, store, tmp_path) as ((first, second), _):
        here, there = Page(first.port), Page(second.port)
        _seen_steered_and_stopped(here, there)
        here.do("PUT", "/everlong/api/settings", {"tools": True, "threshold": 60})
        _asked_and_answered(here, there)
        assert there.get("/everlong/api/settings")["threshold"] == 60


def _seen_steered_and_stopped(here: Page, there: Page) -> None:
    thread = here.thread()
    with there.listen(thread) as early:
        here.do("POST", f"{API}/{thread}/turn", {"text": "talk"})
        early.wait(lambda _: len(shown(early.events)) > 60)
        with there.listen(thread) as late:  # opened while the turn runs elsewhere
            late.wait(lambda _: len(shown(late.events)) > 200)
            assert {"type": "running", "running": True} in late.events
            there.do("POST", f"{API}/{thread}/turn", {"text": "and say more", "id": "message-two"})
            refused = there.ask("DELETE", f"{API}/{thread}/rows/1")
            assert (refused[0], refused[1]["error"]["kind"]) == (409, "answering")
            assert there.do("POST", f"{API}/{thread}/stop") == {"stopped": True}
            late.wait(lambda event: event == {"type": "running", "running": False})
            assert WORDS.startswith(shown(late.events))
        early.wait(lambda event: event == {"type": "running", "running": False})
        assert WORDS.startswith(shown(early.events))
        told = [event["row"]["order"] for event in early.events if event["type"] == "row"]
        assert told == sorted(set(told)), "each row once"
    rows = here.rows(thread)
    assert [row["text"] for row in rows if row["role"] == "user"] == ["talk", "and say more"]
    assert rows == there.rows(thread)
    stopped = [row for row in rows if row["role"] == "assistant"]
    assert [row["ending"] for row in stopped] == ["stopped"]
    assert len(stopped[0]["text"]) > 200


def _asked_and_answered(here: Page, there: Page) -> None:
    thread = here.thread()
    with there.listen(thread) as stream:
        here.do("POST", f"{API}/{thread}/turn", {"text": "run a command"})
        ask = stream.until("ask")[-1]
        assert "echo boats" in ask["details"]
        with there.listen(thread) as late:  # a page that comes later is asked too
            assert late.until("ask")[-1] == ask
        path = f"{API}/{thread}/answer"
        assert there.ask("POST", path, {"id": ask["id"], "answer": "perhaps"})[0] == 400
        there.do("POST", path, {"id": ask["id"], "answer": "once"})
        stream.until("ended", reason=["done"])
        assert there.ask("POST", path, {"id": ask["id"], "answer": "no"})[0] == 404
    *_, result, answer = there.rows(thread)
    assert "boats" in result["results"][0]["text"]
    assert answer["text"] == "It is done."


def test_turns_outlive_their_process(store: str, tmp_path: Path) -> None:
    silent = Signal()

    def script(asked: ReceivedRequest) -> Step:
        if "silent" not in asked.messages[-1].text:
            return Answer(text=WORDS, between=0.005)
        if silent.is_set():
            return Answer(text="Here I am.")
        silent.set()
        return Answer(text="never", before=600.0)

    with servers(3, script, store, tmp_path) as ((first, second, third), model):
        here, there = Page(first.port), Page(third.port)
        spoken, unspoken = here.thread(), here.thread()
        with there.listen(spoken) as words, there.listen(unspoken) as silence, here.listen(spoken) as seen:
            here.do("POST", f"{API}/{spoken}/turn", {"text": "talk"})
            here.do("POST", f"{API}/{unspoken}/turn", {"text": "be silent"})
            words.wait(lambda _: len(shown(words.events)) > 100)
            assert silent.wait(30)
            first.end(signal.SIGKILL)
            seen.wait_for_end()
            retried = there.ask("POST", f"{API}/{spoken}/retry", {})
            assert retried[1]["error"]["kind"] == "running", "nobody answers a second time"
            words.until("ended", reason=["interrupted"])
            words.wait(lambda event: event == {"type": "running", "running": False})
            silence.until("ended", reason=["done"])
        (answer,) = [row for row in there.rows(spoken) if row["role"] == "assistant"]
        assert answer["ending"] == "broken off"
        assert answer["text"].startswith(shown(seen.events))
        assert WORDS.startswith(answer["text"])
        # Nothing was said and no tool was called: the turn was begun again.
        assert [row["text"] for row in there.rows(unspoken)][-2:] == ["be silent", "Here I am."]
        assert len(model.requests) == 3
        _handed_over_in_order(second, there)


def _handed_over_in_order(ending: ServingProcess, there: Page) -> None:
    thread = there.thread()
    with there.listen(thread) as stream:
        Page(ending.port).do("POST", f"{API}/{thread}/turn", {"text": "talk"})
        stream.wait(lambda _: len(shown(stream.events)) > 100)
        ending.end(signal.SIGTERM)
        stream.wait(lambda event: event == {"type": "running", "running": False})
    answer = there.rows(thread)[-1]
    assert (answer["role"], answer["ending"]) == ("assistant", "broken off")
    assert answer["text"].startswith(shown(stream.events))


def test_several_workers_serve_the_app_on_postgres(store: str, tmp_path: Path) -> None:
    with (
        ScriptedServer(lambda _: Answer(text="Yes.")) as model,
        ServingProcess("--upstream", model.url, "--store", store, "--workers", "2", folder=tmp_path) as serving,
    ):
        page = Page(serving.port)
        for _ in range(5):  # two interpreters have to start, and a connection waits until one takes it
            with suppress(TimeoutError):
                page.get("/everlong/api/state")
                break
        assert page.say(page.thread(), "hello")[-1]["reason"] == "done"  # each request may reach another process
    assert "The chat app is at http://" in "".join(serving.errors)


def test_several_workers_on_a_file_say_that_the_app_is_not_served(tmp_path: Path) -> None:
    options = ("--upstream", "http://127.0.0.1:9/v1", "--store", str(tmp_path / "threads.db"), "--workers", "2")
    with ServingProcess(*options, folder=tmp_path) as serving:
        pass
    said = "".join(serving.errors)
    assert "not served: with 2 processes it needs Postgres" in said
    assert "The chat app is at" not in said
