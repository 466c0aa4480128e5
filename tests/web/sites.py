"""Other servers for tests in a browser: an upstream that writes what it likes, a site that attacks; and the whole of
`everlong serve` between them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

import pytest

from everlong.cli.app import chat_app
from tests.gateway.running import RunningGateway

__all__ = ["Site", "a_server"]


@dataclass(slots=True)
class Site:
    """A server at a free port of this machine. `answers` are headers and body by path; `asked` is all it was asked."""

    answers: Mapping[str, tuple[Mapping[str, str], str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        return self._server.server_port

    def __enter__(self) -> Self:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                site.asked.append(f"{self.command} {self.path}")
                self.rfile.read(int(self.headers.get("content-length", 0)))
                headers, body = site.answers.get(
                    self.path, ({"content-type": "application/json"}, '{"data": [{"id": "m"}]}')
                )
                self.send_response_only(200)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None:
                return

        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
            setattr(Handler, f"do_{method}", Handler.answer)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def a_server(upstream: Site, folder: Path, **options: Any) -> Iterator[RunningGateway]:
    """The gateway and the app on one port, as `everlong serve` serves them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_CONFIG_HOME", "EVERLONG_CACHE"):
            patch.setenv(name, str(folder))
        patch.setenv("EVERLONG_OFFLINE", "1")
        patch.chdir(folder)
        url = f"http://127.0.0.1:{upstream.port}/v1"
        with RunningGateway(upstream=url, beside=lambda config: partial(chat_app, config), **options) as gateway:
            yield gateway
