"""Restore what clients drop when they resend an assistant's message, by the call it belongs to.

Signatures and sealed reasoning belong to the calls they led to, and providers refuse the calls without them; but
clients drop what their format does not define. This module defines what to remember, under which call, and where to put
it back. Pure. It never overwrites what a client sent and ignores messages without calls. It restores only what the
provider sent, so a provider never gets a field that it does not know.

A call is identified by its id, its tool and its arguments: some servers count ids from zero in every conversation.
Arguments are compared as values, because clients write the JSON differently.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from everlong.core import Json, JsonObject, JsonText, ref_of
from everlong.wire.fields import dump, load

__all__ = ["Find", "OpaqueParts", "ThoughtParts"]

#: Returns what was kept under a key; None if there is nothing.
Find: TypeAlias = Callable[[str], JsonText | None]

#: A cache of digests of arguments, by the hash of their text: a client repeats them in every request.
_MARKS: dict[str, str] = {}
MOST_MARKS = 20_000


class OpaqueParts(ABC):
    """What a format's clients drop from an answer, and how to put it back."""

    #: For each kind of sealed thought, the field with the seal.
    SEALS: Mapping[str, str] = {}

    @abstractmethod
    def call_id(self, call: Json) -> str | None:
        """Return the id of a call; "" if it has none, None if it is not a call."""

    @abstractmethod
    def call_content(self, call: JsonObject) -> tuple[Json, Json]:
        """Return the name of the called tool and the arguments."""

    @abstractmethod
    def parts(self, members: Sequence[Json], model: str = "") -> dict[str, JsonText]:
        """Return what to remember of a model's answer (a message, or its items), under keys of its calls.

        Without `model` everything counts; with one, only what that model wants back.
        """

    @abstractmethod
    def restored(self, members: list[JsonObject], find: Find) -> list[JsonObject]:
        """Return a client's messages with what it dropped; the same objects if nothing is missing."""

    def call_key(self, call: JsonObject) -> str:
        """Return the key of a call that has an id.

        Example: {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}} -> toolu_1:8a5d…
        """
        return f"{self.call_id(call)}:{_mark(*self.call_content(call))}"

    def seal(self, block: Json) -> str:
        """Return the seal of a sealed thought; "" for anything else."""
        if not isinstance(block, dict):
            return ""
        seal = block.get(self.SEALS.get(str(block.get("type")), ""))
        return seal if isinstance(seal, str) else ""

    def _keys(self, call: JsonObject, kept: JsonText) -> dict[str, JsonText]:
        """Return what to keep for a call: the text under its key, and an empty entry under its id."""
        return {self.call_id(call) or "": "", self.call_key(call): kept}

    def _kept(self, call: JsonObject, find: Find) -> JsonText | None:
        """Return what was kept for a call. Most calls have no entry under their id, which saves parsing arguments."""
        return None if find(self.call_id(call) or "") is None else find(self.call_key(call))


class ThoughtParts(OpaqueParts):
    """Blocks or items of sealed thinking that come before the call they led to."""

    @abstractmethod
    def _is_own(self, block: JsonObject) -> bool:
        """Return whether a block that is not a call is the assistant's; others' blocks may be next to it."""

    def _thoughts(self, blocks: Sequence[Json]) -> dict[str, JsonText]:
        """Return, under each call, the thoughts since the previous call, each with the number of blocks in between."""
        parts: dict[str, JsonText] = {}
        for start, end, call in self._stretches(blocks):
            thoughts = [
                [sum(not self._is_thought(other) for other in blocks[at + 1 : end]), block]
                for at, block in enumerate(blocks[start:end], start)
                if self._is_sealed(block)
            ]
            if thoughts:
                parts |= self._keys(call, dump(cast(Json, thoughts)))
        return parts

    def _with_thoughts(self, blocks: list[Json], find: Find) -> list[Json]:
        """Return the blocks with missing thoughts restored; the same list if none is missing."""
        whole: list[Json] = []
        done = 0
        for start, end, call in self._stretches(blocks):
            before = blocks[start:end]
            text = self._kept(call, find)
            kept = (
                [(distance, thought) for distance, thought in cast("list[tuple[int, Json]]", load(text))]
                if text
                else []
            )
            sent = [block for block in before if self._is_thought(block)]
            known = [thought for _, thought in kept]
            if kept and all(block in known for block in sent):  # a different thought is the client's own choice
                before = _placed([block for block in before if not self._is_thought(block)], kept)
            whole += [*blocks[done:start], *before]
            done = end
        whole += blocks[done:]
        return blocks if whole == blocks else whole

    def _stretches(self, blocks: Sequence[Json]) -> list[tuple[int, int, JsonObject]]:
        """Return where the text and thoughts before each call begin and end, and the call."""
        stretches = []
        start = 0
        for at, block in enumerate(blocks):
            if not isinstance(block, dict):
                continue
            call = self.call_id(block)
            if call is None and self._is_own(block):
                continue
            if call:
                stretches.append((start, at, block))
            start = at + 1
        return stretches

    def _is_thought(self, block: Json) -> bool:
        return isinstance(block, dict) and str(block.get("type")) in self.SEALS

    def _is_sealed(self, block: Json) -> bool:
        return isinstance(block, dict) and self._is_thought(block) and bool(block.get(self.SEALS[str(block["type"])]))


def _placed(words: list[Json], kept: list[tuple[int, Json]]) -> list[Json]:
    """Put the thoughts back into the text, at their distance from the call."""
    placed: list[Json] = []
    for left in range(len(words), -1, -1):
        placed += [thought for distance, thought in kept if min(distance, len(words)) == left]
        placed += words[len(words) - left :][:1]
    return placed


# --- what a call was called with -------------------------------------------------------------------


def _mark(name: Json, arguments: Json) -> str:
    if not isinstance(arguments, str):
        return _mark_of(name, arguments)
    known = ref_of(f"{name}\n{arguments}")
    mark = _MARKS.get(known)
    if mark is None:
        if len(_MARKS) >= MOST_MARKS:
            _MARKS.clear()
        mark = _MARKS[known] = _mark_of(name, _value(arguments))
    return mark


def _value(arguments: str) -> Json:
    try:
        value: Json = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return arguments
    return value


def _mark_of(name: Json, arguments: Json) -> str:
    try:
        return ref_of(json.dumps([name, _plain(arguments)], sort_keys=True))
    except RecursionError:
        return ref_of(str(name))


def _plain(value: Json) -> Json:
    """Return a value with whole floats as integers: some clients write 1.0 as 1."""
    match value:
        case dict():
            plain: JsonObject = {name: _plain(inner) for name, inner in value.items()}
            return plain
        case list():
            return [_plain(inner) for inner in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value
