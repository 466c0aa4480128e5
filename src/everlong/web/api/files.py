"""Serve the built page and its files: only those in the folder, by exact name. A name never becomes a path.

The page's policy lists its own scripts and style by their digests, not by their addresses. So nothing else that is
served from the same address, such as an upstream's answer, can become a script of the page.

This holds for scripts that are loaded later too: the page's import map gives the digest of each, the policy lists it,
and the browser accepts an import only if both agree (Chromium 127, Safari 18, Firefox 138; an older one does not load
these scripts, and the rest works). The keyword 'strict-dynamic' would be shorter, but then any script that got in could
load any other; 'self' would let an upstream's answer be a script. Policies have no digests for workers, frames, fonts
and the manifest: for these the policy says 'self', and the boundary serves nothing but these files for such uses.

A second page draws diagrams in a frame of the first. What it draws is not trusted, so it has no rights at all: it has
no origin, loads nothing, and talks only to the page around it.
"""

import re
from base64 import b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from everlong.web.api.endpoint import NO_STORE
from everlong.web.words import NOT_BUILT

__all__ = ["DIAGRAMS", "Page", "PageFiles"]

INDEX, DIAGRAMS = "index.html", "diagrams.html"
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
IMPORTS = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)
IMPORTED = re.compile(rb'"(sha256-[A-Za-z0-9+/=]{44})"')
STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)
INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
NOBODY = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
#: What the page may do besides its own scripts and style: show pictures that it holds, and talk to its own server.
RIGHTS = (
    "img-src data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; frame-src 'self'; "
    f"manifest-src 'self'; {NOBODY}"
)
#: What a file may do if it is a worker: talk to its own server.
POLICY_OF_FILES = f"default-src 'none'; connect-src 'self'; {NOBODY}"


def policy_of(page: bytes) -> str:
    """Return the policy of a page: its own scripts and style run, by their digests, and nothing else."""
    scripts = [digest.decode() for digest in SCRIPT.findall(page)]
    for imports in IMPORTS.findall(page):
        scripts += [_digest(imports), *(digest.decode() for digest in IMPORTED.findall(imports))]
    styles = [_digest(text) for text in STYLE.findall(page)]
    quoted = [" ".join(f"'{digest}'" for digest in digests) or "'none'" for digests in (scripts, styles)]
    return f"default-src 'none'; script-src {quoted[0]}; style-src {quoted[1]}; {RIGHTS}"


def policy_of_diagrams(page: bytes) -> str:
    """Return the policy of the page that draws: its own script and any styles are allowed, nothing else."""
    scripts = " ".join(f"'{_digest(text)}'" for text in INLINE.findall(page)) or "'none'"
    return (
        f"sandbox allow-scripts; default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )


def _digest(text: bytes) -> str:
    return f"sha256-{b64encode(sha256(text).digest()).decode()}"


POLICIES = {INDEX: policy_of, DIAGRAMS: policy_of_diagrams}


@dataclass(slots=True)
class PageFiles:
    """An ASGI application that serves a folder of built files."""

    folder: Path
    policy: str = POLICY_OF_FILES
    #: The pages among the files, by name, each with its policy.
    pages: dict[str, tuple[bytes, str]] = field(default_factory=dict)
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
                self._files = {
                    path.relative_to(self.folder).as_posix(): path
                    for path in self.folder.rglob("*")
                    if path.suffix in MEDIA_TYPES and path.is_file() and not path.is_symlink()
                }
                texts = {name: self._files[name].read_bytes() for name in POLICIES if name in self._files}
                self.pages = {name: (text, POLICIES[name](text)) for name, text in texts.items()}
                self._changed = changed
        except OSError:
            return {}
        return self._files


@dataclass(frozen=True, slots=True)
class Page:
    """An ASGI application that serves one of the pages, with its own policy."""

    built: PageFiles
    name: str = INDEX

    @property
    def policy(self) -> str:
        """The policy of the page that was served last."""
        return self.built.pages[self.name][1] if self.name in self.built.pages else policy_of(b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for the page. The page that draws may be cached: its address contains its digest."""
        self.built.files()
        if self.name in self.built.pages:
            cache = "no-cache" if self.name == INDEX else FOREVER
            response = HTMLResponse(self.built.pages[self.name][0], headers={"cache-control": cache})
        else:
            response = HTMLResponse(_not_built(), 503, NO_STORE)
        await response(scope, receive, send)


def _file_name(request: Request) -> str:
    """Return the requested file. Example: /assets/app-1a2b.js -> "assets/app-1a2b.js\""""
    names = request.path_params
    return ASSETS + str(names["file"]) if "file" in names else str(names["name"])


def _not_built() -> str:
    paragraphs = (f'<p lang="{language}">{text.format(command=COMMAND)}</p>' for language, text in NOT_BUILT.items())
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Everlong</title>'
    return "\n".join((head, *paragraphs, "</html>"))
