"""A change of a fact whose connection is cut at its commit is made once, whether the commit held or not."""

import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from select import select
from typing import Literal
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import pytest

from everlong.store.postgres import PostgresThreads
from tests.store.postgres_server import database_url, drop_database
from tests.store.writer import one_more

SOCKET = ".s.PGSQL.5432"


class Proxy:
    """A socket before the server's that cuts the next connection that commits: before the commit, or after it."""

    def __init__(self, folder: Path, server: Path) -> None:
        self._server = str(server)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / SOCKET))
        self._listening.listen()
        self.cut: Literal["", "before", "after"] = ""
        #: What is done between the cut and the client's hearing of it.
        self.meanwhile: Callable[[], object] = lambda: None
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                threading.Thread(target=self._forward, args=(client, server), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, suppress(OSError):
            while True:
                ready, _, _ = select([client, server], [], [])
                if server in ready:
                    client.sendall(server.recv(1 << 16))
                if client in ready:
                    data = client.recv(1 << 16)
                    if not data:
                        return
                    if self.cut and b"COMMIT" in data:
                        self._end(server, data)
                        return
                    server.sendall(data)

    def _end(self, server: socket.socket, commit: bytes) -> None:
        if self.cut == "after":
            server.sendall(commit)
            server.recv(1 << 16)  # it is committed, and the client never hears of it
        self.cut = ""
        server.close()
        self.meanwhile()


@pytest.fixture
def url() -> Iterator[str]:
    given = database_url()
    yield given
    drop_database(given)


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # a short name: that of a socket has a limit
    made = Proxy(folder, Path(parse_qs(urlsplit(url).query)["host"][0]) / SOCKET)
    yield made
    made.close()
    shutil.rmtree(folder)


@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize("others", [0, 1, 3])
def test_it_is_made_once(url: str, proxy: Proxy, cut: Literal["before", "after"], others: int) -> None:
    """Others may change the fact after the commit that was lost: what they did is not taken for ours."""
    host = quote(str(Path(proxy._listening.getsockname()).parent), safe="")
    with (
        PostgresThreads(url) as direct,
        PostgresThreads(urlunsplit(urlsplit(url)._replace(query=f"host={host}"))) as store,
    ):
        proxy.meanwhile = lambda: [direct.change_fact("count", "it", one_more) for _ in range(others)]
        for turn in range(3):  # the first time the fact is made, then it is changed
            proxy.cut = cut
            after = int(store.change_fact("count", "it", one_more) or "")
            before = turn * (others + 1)
            assert after == before + 1 + (others if cut == "before" else 0)
            assert proxy.cut == ""
            assert direct.fact("count", "it") == str(before + 1 + others)


@pytest.mark.parametrize("cut", ["before", "after"])
def test_it_is_dropped_once(url: str, proxy: Proxy, cut: Literal["before", "after"]) -> None:
    host = quote(str(Path(proxy._listening.getsockname()).parent), safe="")
    with (
        PostgresThreads(url) as direct,
        PostgresThreads(urlunsplit(urlsplit(url)._replace(query=f"host={host}"))) as store,
    ):
        direct.keep_fact("k", "it", "1")
        proxy.cut = cut
        proxy.meanwhile = (lambda: direct.keep_fact("k", "it", "new")) if cut == "after" else (lambda: None)
        assert store.change_fact("k", "it", lambda _: None) is None
        assert direct.fact("k", "it") == ("new" if cut == "after" else None), "what came after it stays"
