"""The language model on this machine: fetched and started in the background, watched, and given up if wanted."""

from pathlib import Path
from threading import Event as Signal

from everlong.errors import InputError
from everlong.llm import Endpoint, Fetch, ScriptedServer
from everlong.store import MemoryThreads
from everlong.web.app import Setup
from everlong.web.state.sources import Source
from tests.web.running import Page, RunningApp

LOCAL = "/everlong/api/local"
SIZE = 1_000


def until(page: Page, *states: str) -> dict[str, object]:
    """What is told once it is in one of these states; each question is answered at once."""
    while True:
        told: dict[str, object] = page.get(LOCAL)
        if told["state"] in states:
            return told


def source_at(server: ScriptedServer) -> Source:
    return Source(name="local", endpoint=Endpoint(url=server.url), models=("local",), local=True)


def test_it_is_fetched_and_started_once_and_then_answers() -> None:
    goes_on, begun = Signal(), []
    with ScriptedServer(models=("local",)) as server:

        def start(fetch: Fetch) -> Source:
            begun.append(1)
            fetch.begin(SIZE)
            fetch.came(400)
            goes_on.wait(60)
            fetch.came(SIZE)
            return source_at(server)

        with RunningApp(Setup(threads=MemoryThreads(), start_local=start)) as app:
            page = app.page()
            assert page.get("/everlong/api/state")["first_run"]
            assert page.get(LOCAL) == {"state": "off", "done": 0, "size": 0, "reason": ""}
            page.do("POST", LOCAL)
            told = until(page, "fetching")
            assert (told["size"], told["state"]) == (SIZE, "fetching")
            page.do("POST", LOCAL)  # once more does nothing
            goes_on.set()
            until(page, "on")
            page.do("POST", LOCAL)
            state = page.get("/everlong/api/state")
            assert (state["first_run"], state["default_model"], len(begun)) == (False, "local/local", 1)
            thread = page.thread()
            page.say(thread, "hi")
            assert page.rows(thread)[-1]["text"] == "hi"


def test_a_download_is_given_up_and_can_be_begun_again() -> None:
    begun = []

    def start(fetch: Fetch) -> Source:
        begun.append(1)
        fetch.begin(SIZE)
        while True:
            fetch.came(10)  # raises once it is cancelled

    with RunningApp(Setup(threads=MemoryThreads(), start_local=start)) as app:
        page = app.page()
        for _ in range(2):
            page.do("POST", LOCAL)
            until(page, "fetching")
            assert page.do("DELETE", LOCAL)["state"] == "off"
        assert len(begun) == 2
        page.do("POST", LOCAL)
        until(page, "fetching")  # and the end of the server ends it too


def test_why_it_does_not_start_is_told_and_nothing_is_added() -> None:
    def start(_: Fetch) -> Source:
        raise InputError("a local model needs one more package")

    with RunningApp(Setup(threads=MemoryThreads(), start_local=start)) as app:
        page = app.page()
        page.do("POST", LOCAL)
        assert until(page, "failed")["reason"] == "a local model needs one more package"
        assert page.get("/everlong/api/state")["first_run"]


def test_a_server_without_one_says_so(tmp_path: Path) -> None:
    with RunningApp(Setup(threads=MemoryThreads(), sources_file=tmp_path / "sources.json")) as app:
        page = app.page()
        assert page.get(LOCAL)["state"] == "none"
        status, told = page.ask("POST", LOCAL, {})
        assert (status, told["error"]["kind"]) == (409, "no_local")
