"""Serve the files of the built page: only those in the folder, by exact name. A name never becomes a path."""

from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from everlong.errors import Refused
from everlong.web.api.endpoint import NO_STORE
from everlong.web.api.guard import HEADERS, Guard
from everlong.web.words import NOT_BUILT

__all__ = ["PageFiles"]

INDEX = "index.html"
ASSETS = "assets/"  # names with a hash of their content in them
FOREVER = "public, max-age=31536000, immutable"
MEDIA_TYPES = {
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
COMMAND = "<code>python -m everlong.web.build</code>"


@dataclass(slots=True)
class PageFiles:
    """An ASGI application that serves a folder of built files."""

    guard: Guard
    folder: Path
    _files: dict[str, Path] | None = None
    _changed: float = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        try:
            self.guard.check_page(request)
            response = self._response(_file_name(request))
        except Refused as error:
            response = Response(str(error), error.status, media_type="text/plain")
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    def _response(self, name: str) -> Response:
        path = self._list_files().get(name)
        if path is None and name == INDEX:
            return HTMLResponse(_not_built(), 503, NO_STORE)
        if path is None:
            raise Refused("there is no such file", status=404, kind="no_file")
        cache = FOREVER if name.startswith(ASSETS) else "no-cache"
        return FileResponse(path, headers={"cache-control": cache, "content-type": MEDIA_TYPES[path.suffix]})

    def _list_files(self) -> dict[str, Path]:
        """Return the files by name; the folder is read again when the page was built again."""
        try:
            changed = (self.folder / INDEX).stat().st_mtime
        except OSError:
            return {}
        if self._files is None or changed != self._changed:
            self._files = {
                path.relative_to(self.folder).as_posix(): path
                for path in self.folder.rglob("*")
                if path.suffix in MEDIA_TYPES and path.is_file() and not path.is_symlink()
            }
            self._changed = changed
        return self._files


def _file_name(request: Request) -> str:
    """Return the file that is wanted. Example: /assets/app-1a2b.js -> "assets/app-1a2b.js"; / -> "index.html\""""
    names = request.path_params
    return ASSETS + str(names["file"]) if "file" in names else str(names.get("name", INDEX))


def _not_built() -> str:
    paragraphs = (f'<p lang="{language}">{text.format(command=COMMAND)}</p>' for language, text in NOT_BUILT.items())
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Everlong</title>'
    return "\n".join((head, *paragraphs, "</html>"))
