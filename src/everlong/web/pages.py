"""The page's files as they were built: only those that are there, by their exact names. Names never become paths."""

from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from everlong.errors import Refused
from everlong.web.guarding import HEADERS, Guard

__all__ = ["BUILT", "Pages"]

BUILT = Path(__file__).parent / "built"
INDEX = "index.html"
ASSETS = "assets/"  # names with a hash of their content in them
FOR_EVER = "public, max-age=31536000, immutable"
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Everlong</title>
<h1>The page is not built yet</h1>
<p>The server runs, and its API answers. Build the page once with <code>python -m everlong.web.building</code>
and load this again.</p>
<p lang="zh">页面尚未构建。请运行 <code>python -m everlong.web.building</code>，然后刷新。</p></html>"""


@dataclass(slots=True)
class Pages:
    """Serves a folder of built files."""

    guard: Guard
    folder: Path = BUILT
    _files: dict[str, Path] | None = None
    _read: float = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            self.guard.check_page(request)
            response = self._response(_name(request))
        except Refused as error:
            response = Response(str(error), error.status, media_type="text/plain")
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    def _response(self, name: str) -> Response:
        files = self._found()
        path = files.get(name)
        if path is None and name == INDEX:
            return HTMLResponse(NOT_BUILT, 503, {"cache-control": "no-store"})
        if path is None:
            raise Refused("there is no such file", status=404, kind="no_file")
        cached = FOR_EVER if name.startswith(ASSETS) else "no-cache"
        return FileResponse(path, headers={"cache-control": cached, "content-type": KINDS[path.suffix]})

    def _found(self) -> dict[str, Path]:
        """The files by name, looked for again when the page was built again."""
        try:
            changed = (self.folder / INDEX).stat().st_mtime
        except OSError:
            return {}
        if self._files is None or changed != self._read:
            self._files = {
                path.relative_to(self.folder).as_posix(): path
                for path in self.folder.rglob("*")
                if path.suffix in KINDS and path.is_file() and not path.is_symlink()
            }
            self._read = changed
        return self._files


def _name(request: Request) -> str:
    """The file that is asked for. Example: /assets/app-1a2b.js -> "assets/app-1a2b.js"; / -> "index.html\""""
    asked = request.path_params
    return ASSETS + str(asked["file"]) if "file" in asked else str(asked.get("name", INDEX))
