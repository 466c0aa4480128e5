"""Download one file from a package index without pip, within limits and only if its digest is the expected one.

The variables of pip or uv name the index; the default is pypi.org. Its list of files may be JSON or HTML. The usual
variables name a proxy.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from http.client import HTTPException
from pathlib import Path
from threading import Event as Signal
from typing import IO
from urllib.error import HTTPError
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import Request, urlopen

from everlong.errors import InputError

__all__ = ["UNWATCHED", "Fetch", "Limits", "download"]

#: Variables that name an index; the first that is set counts.
INDEXES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
USUAL_INDEX = "https://pypi.org/simple"
LISTS = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
LONGEST_LIST = 8 << 20  # bytes
SILENCE = 60.0  # seconds that a server may send nothing
BLOCK = 1 << 20
LINK = re.compile(r"""<a\b[^>]*\bhref\s*=\s*["']([^"'>]+)["']""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a file must be: its size in bytes, and its digest."""

    size: int
    sha256: str


class Fetch:
    """The progress of a download: bytes received and expected. Safe in any thread."""

    def __init__(self) -> None:
        self.size = 0
        self.done = 0
        self._cancelled = Signal()

    def begin(self, size: int) -> None:
        """Set how many bytes are expected."""
        self.size, self.done = size, 0

    def came(self, done: int) -> None:
        """Set how many bytes have arrived. Raises InputError if the download was cancelled."""
        self.done = min(done, self.size)
        if self.cancelled:
            raise InputError("it was cancelled")

    @property
    def cancelled(self) -> bool:
        """Whether the download was cancelled."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Cancel the download at the next bytes."""
        self._cancelled.set()


UNWATCHED = Fetch()


def download(
    project: str,
    file: str,
    folder: Path,
    limits: Limits,
    environment: Mapping[str, str],
    fetch: Fetch = UNWATCHED,
) -> Path:
    """Fetch a file of a project into the folder and return its path. Raises InputError without text of a server."""
    index = next((value for name in INDEXES if (value := environment.get(name, "").strip())), USUAL_INDEX)
    page = f"{index.rstrip('/')}/{project}/"
    try:
        with _opened(page, LISTS) as answer:
            listed = answer.read(LONGEST_LIST + 1)
        if len(listed) > LONGEST_LIST:
            raise InputError(f"the file list of {project} is too long")
        with _opened(_address(listed, file, page), "*/*") as answer:
            return _written(answer, folder / file, limits, fetch)
    except HTTPError as error:
        error.close()
        raise InputError(f"the package index answered {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"the package index cannot be reached: {str(reason)[:120]}") from None


def _opened(url: str, accepted: str) -> IO[bytes]:
    """Open an address of an index. A name and a password in it are sent as a header."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise InputError("the address of a package index must start with http:// or https://")
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    request = Request(plain, headers={"Accept": accepted})
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {b64encode(login.encode()).decode()}")
    answer: IO[bytes] = urlopen(request, timeout=SILENCE)
    return answer


def _address(listed: bytes, file: str, page: str) -> str:
    """Return the address of a file from the list of an index."""
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        for row in json.loads(listed)["files"]:
            if row["filename"] == file:
                return urljoin(page, str(row["url"]))
    for link in LINK.findall(listed.decode("utf-8", "replace")):
        address = urljoin(page, unescape(link))
        if unquote(urlsplit(address).path).rpartition("/")[2] == file:
            return address.partition("#")[0]
    raise InputError(f"the package index has no {file}")


def _written(answer: IO[bytes], path: Path, limits: Limits, fetch: Fetch) -> Path:
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as target:
        while block := answer.read(BLOCK):
            size += len(block)
            fetch.came(size)
            if size > limits.size:
                break
            digest.update(block)
            target.write(block)
    if size != limits.size or digest.hexdigest() != limits.sha256:
        path.unlink()
        raise InputError("the downloaded file is not the expected one")
    return path
