"""Tool calls of a chat stream, put together from whatever pieces a server sends.

Which call a piece belongs to is told by its index, by its id, or by neither: some servers number all calls 0, some
none, some repeat id and name in every piece, some say them once.
"""

import json
from typing import cast

from everlong.core import Json, JsonObject
from everlong.engine import CallGrew
from everlong.llm.formats.shape import text_of
from everlong.wire import dump

__all__ = ["GrowingCalls"]

OURS = frozenset({"index", "id", "type", "function"})  # all else that stands in a piece is kept as it is


class GrowingCalls:
    """The calls so far, in the order they began."""

    def __init__(self) -> None:
        self._calls: list[JsonObject] = []
        self._by_index: dict[int, int] = {}
        self._by_id: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def whole(self) -> list[Json]:
        """All of them, as a message holds them."""
        return [*self._calls]

    def grew(self, pieces: Json) -> list[CallGrew]:
        """What the pieces of one chunk add."""
        listed = [piece for piece in pieces if isinstance(piece, dict)] if isinstance(pieces, list) else []
        return [self._one_grew(piece, at, len(listed)) for at, piece in enumerate(listed) if OURS & piece.keys()]

    def _one_grew(self, piece: JsonObject, at: int, together: int) -> CallGrew:
        function = piece.get("function")
        said = function if isinstance(function, dict) else {}
        place = self._place(piece, text_of(said.get("name")), at if together > 1 else len(self._calls) - 1)
        if place == len(self._calls):
            self._calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        self._note(piece, place)
        call = self._calls[place]
        whole = cast(dict[str, str], call["function"])
        call |= {name: value for name, value in piece.items() if name not in OURS}
        new_id = "" if call["id"] else text_of(piece.get("id"))
        call["id"] = text_of(call["id"]) or new_id
        name, arguments = _rest(whole["name"], text_of(said.get("name"))), _arguments(said.get("arguments"))
        whole["name"] += name
        whole["arguments"] += arguments
        return CallGrew(place, new_id, name, arguments)

    def _place(self, piece: JsonObject, name: str, neighbour: int) -> int:
        """Which call the piece belongs to; one more than there are if it begins another."""
        key, index = text_of(piece.get("id")), piece.get("index")
        new = len(self._calls)
        if key in self._by_id:
            return self._by_id[key]
        if isinstance(index, int):
            known = self._by_index.get(index, new)
            other = known < new and bool(key and name and self._calls[known]["id"])
            return new if other else known
        if key or not 0 <= neighbour < new:
            return new
        return (
            new if name and _is_json(cast(JsonObject, self._calls[neighbour]["function"])["arguments"]) else neighbour
        )

    def _note(self, piece: JsonObject, place: int) -> None:
        key, index = text_of(piece.get("id")), piece.get("index")
        if key:
            self._by_id[key] = place
        if isinstance(index, int):
            self._by_index[index] = place


def _rest(known: str, said: str) -> str:
    """What is new of a name that may be said in pieces, or again as a whole. Example: "read", "read" -> "" """
    return said.removeprefix(known) if said.startswith(known) else said


def _arguments(said: Json) -> str:
    return dump(said) if isinstance(said, dict | list) else text_of(said)


def _is_json(text: Json) -> bool:
    try:
        json.loads(text_of(text))
    except (ValueError, RecursionError):
        return False
    return True
