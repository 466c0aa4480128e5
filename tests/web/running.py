"""The app over real HTTP, in a thread of its own, and a page that talks to it."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Condition, Event as Signal, Thread
from types import TracebackType
from typing import Any, Self

import uvicorn

from everlong.agent import AgentConfig
from everlong.cli.app import lone_app
from everlong.engine import Threads
from everlong.llm import Endpoint, ScriptedServer, Window, echo
from everlong.llm.scripted.script import Script
from everlong.store import MemoryThreads
from everlong.web.api.guard import Guard
from everlong.web.app import AppState, Setup
from everlong.web.apps import Apps
from everlong.web.state.sources import Source

__all__ = ["Page", "RunningApp", "Stream", "an_app"]

SECONDS = 60.0
PAGE = {"x-everlong": "page"}
NOT_BUILT = Path("nothing-is-built")


class RunningApp:
    """`with RunningApp(setup) as app: …`; `app.page()` talks to it."""

    def __init__(
        self,
        setup: Setup,
        guard: Guard | None = None,
        built: Path = NOT_BUILT,
        port: int = 0,
        apps: Callable[[Setup], Apps] | None = None,
    ) -> None:
        self.state = AppState(setup)
        self._web_app = lone_app(self.state if apps is None else apps(setup), guard or Guard(), built)
        self._socket = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self._socket.getsockname()[1]
        self._ready = Signal()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = Thread(target=lambda: asyncio.run(self._serve()), name="app", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        config = uvicorn.Config(
            self._web_app, lifespan="on", log_level="error", access_log=False, timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.005)
        self._ready.set()
        await serving

    def run(self, work: Callable[[], object]) -> None:
        """Do something in the event loop of the app."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(work)

    def page(self) -> "Page":
        """A page of this app."""
        return Page(self.port)


@dataclass(slots=True)
class Page:
    """Talks to the API as the page does; `headers` may be changed to be somebody else."""

    port: int
    headers: dict[str, str] = field(default_factory=lambda: dict(PAGE))

    def raw(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers of one request."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body, self.headers if headers is None else headers)
            response = connection.getresponse()
            return response.status, response.read(), {name.lower(): value for name, value in response.getheaders()}
        finally:
            connection.close()

    def ask(self, method: str, path: str, said: Any = None) -> tuple[int, Any]:
        """Status and JSON of one request."""
        status, body, _ = self.raw(method, path, None if said is None else json.dumps(said).encode())
        return status, json.loads(body)

    def get(self, path: str) -> Any:
        """What is there."""
        status, told = self.ask("GET", path)
        assert status == 200, told
        return told

    def do(self, method: str, path: str, said: Any = None) -> Any:
        """Change something that may be changed."""
        status, told = self.ask(method, path, said if said is not None else {})
        assert status in (200, 201, 202), told
        return told

    def thread(self, title: str = "A talk", **fields: Any) -> str:
        """A new thread; with a title nobody is asked for one."""
        name: str = self.do("POST", "/everlong/api/threads", fields)["id"]
        if title:
            self.do("PATCH", f"/everlong/api/threads/{name}", {"title": title})
        return name

    def rows(self, thread: str, query: str = "") -> list[dict[str, Any]]:
        """Its rows."""
        rows: list[dict[str, Any]] = self.get(f"/everlong/api/threads/{thread}/rows?limit=500{query}")["rows"]
        return rows

    def listen(self, thread: str, last: str = "") -> "Stream":
        """The events of a thread from now on, or from the one of that name on."""
        return Stream(self, f"/everlong/api/threads/{thread}/events", last)

    def say(self, thread: str, text: str, **more: Any) -> list[dict[str, Any]]:
        """Say something and wait until the turn is over; all that was told."""
        with self.listen(thread) as stream:
            self.do("POST", f"/everlong/api/threads/{thread}/turn", {"text": text, **more})
            return stream.until("ended")

    def compact(self, thread: str, focus: str = "") -> list[dict[str, Any]]:
        """Ask for a summary and wait for its end."""
        with self.listen(thread) as stream:
            self.do("POST", f"/everlong/api/threads/{thread}/compact", {"focus": focus})
            return stream.until("compacting", state=("done", "failed", "skipped"))


class Stream:
    """A stream of events that is read in a thread of its own."""

    def __init__(self, page: Page, path: str, last: str = "") -> None:
        self._connection = HTTPConnection("127.0.0.1", page.port, timeout=SECONDS)
        self._connection.request("GET", path, headers=page.headers | ({"last-event-id": last} if last else {}))
        self._response: HTTPResponse = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        self.events: list[dict[str, Any]] = []
        #: Of each event the name (its number, and its thread in a stream of many) and the kind ("" mostly).
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.last = ""
        self._news = Condition()
        self._begun = False
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()
        with self._news:  # from here on nothing is missed
            assert self._news.wait_for(lambda: self._begun, SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sock = self._response.fp.raw._sock if self._response.fp is not None else None  # type: ignore[attr-defined]
        if sock is not None:
            sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(SECONDS)
        self._connection.close()

    def _read(self) -> None:
        kind = ""
        try:
            for line in self._response:
                with self._news:
                    self._begun = True
                    if line.startswith(b"id: "):
                        self.last, kind = line[4:].decode().strip(), ""
                    elif line.startswith(b"event: "):
                        kind = line[7:].decode().strip()
                    elif line.startswith(b"data: "):
                        self.names.append(self.last)
                        self.kinds.append(kind)
                        self.events.append(json.loads(line[6:]))
                    self._news.notify_all()
        except (OSError, ValueError, AttributeError):
            pass

    def wait(self, fits: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """All events up to the first that fits."""
        with self._news:
            found = self._news.wait_for(lambda: any(map(fits, self.events)), SECONDS)
            assert found, [event["type"] for event in self.events]
            return self.events[: next(at for at, event in enumerate(self.events) if fits(event)) + 1]

    def wait_for_end(self) -> None:
        """Until the server ends the stream."""
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()

    def titled(self) -> str:
        """The title that the thread gets."""
        title: str = self.wait(lambda event: event["type"] == "title" and bool(event["title"]))[-1]["title"]
        return title

    def until(self, kind: str, **fields: Sequence[Any]) -> list[dict[str, Any]]:
        """All events up to the first of that kind, its fields among the values."""
        return self.wait(
            lambda event: event["type"] == kind and all(event[name] in values for name, values in fields.items())
        )


@contextmanager
def an_app(
    script: Script = echo,
    *,
    window: int = 16_384,
    told: bool = True,
    threads: Threads | None = None,
    folder: Path | None = None,
    guard: Guard | None = None,
    models: tuple[str, ...] = ("scripted",),
    answer_seconds: float = 60.0,
    sources: Sequence[Source] | None = None,
    built: Path = NOT_BUILT,
    config: AgentConfig | None = None,
    port: int = 0,
    apps: Callable[[Setup], Apps] | None = None,
) -> Iterator[tuple[RunningApp, ScriptedServer]]:
    """The app with one source, `main`, that does what the script says."""
    with ExitStack() as stack:
        server = stack.enter_context(ScriptedServer(script, window=Window(window, told=told), models=models))
        main = Source(name="main", endpoint=Endpoint(url=server.url, key="given-key-1234"))
        setup = Setup(
            threads=threads if threads is not None else MemoryThreads(),
            sources=(main,) if sources is None else sources,
            sources_file=None if folder is None else folder / "sources.json",
            config=config or AgentConfig(workspace=folder or Path(), system="You are a helpful assistant."),
            answer_seconds=answer_seconds,
        )
        yield stack.enter_context(RunningApp(setup, guard, built, port, apps)), server
