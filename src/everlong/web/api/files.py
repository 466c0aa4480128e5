"""Serve the built page and its files: only those in the folder, by exact name. A name never becomes a path.

The page says by their digests which script and which style are its own. Where they lie does not count: whatever else
is served from the same address, an upstream's answer too, cannot become a script of the page.
"""

import re
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from everlong.web.api.endpoint import NO_STORE
from everlong.web.words import NOT_BUILT

__all__ = ["Page", "PageFiles"]

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
SCRIPT = re.compile(rb'<script [^>]*integrity="(sha256-[A-Za-z0-9+/=]{44})"')
STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)
#: What the page may do besides its own script and style: show pictures that it holds, and talk to its own server.
RIGHTS = (
    "img-src data: blob:; connect-src 'self'; worker-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def policy_of(page: bytes) -> str:
    """Return the policy of a page: its own script and style run, by their digests, and nothing else."""
    scripts = [digest.decode() for digest in SCRIPT.findall(page)]
    styles = [f"sha256-{b64encode(sha256(text).digest()).decode()}" for text in STYLE.findall(page)]
    quoted = [" ".join(f"'{digest}'" for digest in digests) or "'none'" for digests in (scripts, styles)]
    return f"default-src 'none'; script-src {quoted[0]}; style-src {quoted[1]}; {RIGHTS}"


@dataclass(slots=True)
class PageFiles:
    """An ASGI application that serves a folder of built files."""

    folder: Path
    page: bytes = b""
    policy_of_page: str = policy_of(b"")
    _files: dict[str, Path] | None = None
    _changed: float = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a file."""
        name = _file_name(Request(scope, receive))
        path = self.files().get(name)
        if path is None:
            response: Response = Response("there is no such file", 404, media_type="text/plain")
        else:
            cache = FOREVER if name.startswith(ASSETS) else "no-cache"
            response = FileResponse(path, headers={"cache-control": cache, "content-type": MEDIA_TYPES[path.suffix]})
        await response(scope, receive, send)

    def files(self) -> dict[str, Path]:
        """Return the files by name; the folder is read again when the page was built again."""
        index = self.folder / INDEX
        try:
            changed = index.stat().st_mtime
            if self._files is None or changed != self._changed:
                self.page = index.read_bytes()
                self.policy_of_page = policy_of(self.page)
                self._files = {
                    path.relative_to(self.folder).as_posix(): path
                    for path in self.folder.rglob("*")
                    if path.suffix in MEDIA_TYPES and path.is_file() and not path.is_symlink()
                }
                self._changed = changed
        except OSError:
            return {}
        return self._files


@dataclass(frozen=True, slots=True)
class Page:
    """An ASGI application that is the page itself, with a policy of its own."""

    built: PageFiles

    @property
    def policy(self) -> str:
        """The policy of the page that was served last."""
        return self.built.policy_of_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for the page."""
        if INDEX in self.built.files():
            response = HTMLResponse(self.built.page, headers={"cache-control": "no-cache"})
        else:
            response = HTMLResponse(_not_built(), 503, NO_STORE)
        await response(scope, receive, send)


def _file_name(request: Request) -> str:
    """Return the file that is wanted. Example: /assets/app-1a2b.js -> "assets/app-1a2b.js\""""
    names = request.path_params
    return ASSETS + str(names["file"]) if "file" in names else str(names["name"])


def _not_built() -> str:
    paragraphs = (f'<p lang="{language}">{text.format(command=COMMAND)}</p>' for language, text in NOT_BUILT.items())
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Everlong</title>'
    return "\n".join((head, *paragraphs, "</html>"))
