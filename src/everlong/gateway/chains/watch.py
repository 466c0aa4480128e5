"""Watch requests that create, extend, change or delete conversations stored at a provider."""

from collections.abc import Sequence
from urllib.parse import unquote

from everlong.core import Json
from everlong.errors import Refused
from everlong.gateway.chains.links import Chains, Link, raw
from everlong.gateway.request import Piece, decoded, pieces_of_list, pieces_of_object
from everlong.wire import FORMATS, Held

__all__ = ["Watch"]

#: How each format names what its provider stores.
HELD = tuple(each.server_side.held for each in FORMATS.values() if each.server_side and each.server_side.held)
LARGEST_ANSWER = 1024 * 1024  # bytes of an answer that is read


class Watch:
    """Watches one request and its answer, and changes neither. Most requests have nothing to do with conversations."""

    def __init__(self, chains: Chains, scope: str, method: str, path: str, body: bytes) -> None:
        self._chains = chains
        self._scope = scope
        self._held = next((held for held in HELD if _places(held, path)), None)
        self._does = (method, *(() if self._held is None else _places(self._held, path)))
        self._body = body
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes of the answer."""
        self._size += len(chunk)
        if self._held is not None and self._size <= LARGEST_ANSWER:
            self._parts.append(chunk)

    def end(self, status: int) -> None:
        """Record what the request changed, given the status of its answer."""
        held, chains, scope = self._held, self._chains, self._scope
        if held is None or not 200 <= status < 300:
            return
        match self._does:
            case ("POST", held.conversations):
                name = self._answered("id")
                if isinstance(name, str) and self._size <= LARGEST_ANSWER:
                    chains.begin(scope, name, Link(sent=raw(self._items()), depth=1))
            case ("POST", held.conversations, name, held.items):
                chains.add(scope, name, self._items())
            case ("DELETE", held.conversations, name, *_) | ("DELETE", held.answers, name):
                # Without the deleted item the links are wrong: if the past is needed, the provider is asked for it.
                chains.forget(scope, name)
            case _:
                pass

    def _items(self) -> Sequence[Piece]:
        try:
            given = pieces_of_object(self._body).get("items", b"null") if self._body else b"null"
            return () if decoded(given) is None else pieces_of_list(given, "items")
        except Refused:
            return ()

    def _answered(self, name: str) -> Json:
        try:
            return decoded(pieces_of_object(b"".join(self._parts)).get(name, b"null"))
        except Refused:
            return None


def _places(held: Held, path: str) -> tuple[str, ...]:
    """Return the parts of the path: its beginning, and the names in it.

    Example: /conversations/conv_1/items -> ("/conversations", "conv_1", "/items")
    """
    start = next((each for each in (held.conversations, held.answers) if f"{path}/".startswith(f"{each}/")), "")
    if not start:
        return ()
    name, below, rest = path.removeprefix(start).strip("/").partition("/")
    inner = f"/{rest}".rstrip("/") if below else ""
    return tuple(each for each in (start, unquote(name), inner) if each)
