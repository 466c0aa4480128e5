"""What a client drops when it resends an assistant's message, found again by the call it belongs to.

Signatures and sealed reasoning belong to the calls they led to, and providers refuse the calls without them; clients
drop what their format does not name. Pure: what is remembered, under which call, and where it goes back to. What a
client did send is never overwritten; messages without calls are left alone. Only what a provider sent is ever put
back, so a provider that does not know a field never gets it.

A call is known by its id, its tool and its arguments: some servers count ids from zero in every conversation.
Arguments are compared as values, because clients write them again in their own way.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from everlong.core import Json, JsonObject, JsonText, ref_of
from everlong.wire.fields import dump, load

__all__ = ["Find", "OpaqueParts", "ThoughtParts"]

#: What was kept under a key, None if nothing.
Find: TypeAlias = Callable[[str], JsonText | None]

#: Marks of arguments as they were written, by their hash: a client sends the same ones with every request.
_MARKS: dict[str, str] = {}
MOST_MARKS = 20_000


class OpaqueParts(ABC):
    """What a format's clients drop of an answer, and how it is put back."""

    #: For each kind of sealed thought the field that holds the seal.
    SEALS: Mapping[str, str] = {}

    @abstractmethod
    def call_id(self, call: Json) -> str | None:
        """Return the id of a call; "" if it has none, None if it is no call."""

    @abstractmethod
    def call_content(self, call: JsonObject) -> tuple[Json, Json]:
        """Return the name of the called tool and the arguments."""

    @abstractmethod
    def parts(self, members: Sequence[Json], model: str = "") -> dict[str, JsonText]:
        """Return what must be remembered of a model's answer (a message, or its items), under keys of its calls.

        Without `model` everything counts; with one, only what that model wants back.
        """

    @abstractmethod
    def restored(self, members: list[JsonObject], find: Find) -> list[JsonObject]:
        """Return messages of a client with what it dropped; the same objects if nothing is missing."""

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
        """What is kept for a call: the text under its key, and under its id that there is something."""
        return {self.call_id(call) or "": "", self.call_key(call): kept}

    def _kept(self, call: JsonObject, find: Find) -> JsonText | None:
        """What was kept for a call. Most calls have nothing, and their arguments are then not looked at."""
        return None if find(self.call_id(call) or "") is None else find(self.call_key(call))


class ThoughtParts(OpaqueParts):
    """Blocks or items of sealed thinking that come before the call they led to."""

    @abstractmethod
    def _is_own(self, block: JsonObject) -> bool:
        """Return whether a block that is not a call is the assistant's; blocks of others may stand beside it."""

    def _thoughts(self, blocks: Sequence[Json]) -> dict[str, JsonText]:
        """Under each call the thoughts since the call before it, with the number of words in between."""
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
        """The blocks with the thoughts that are missing; the same list if none is."""
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
            if kept and all(block in known for block in sent):  # another thought in its place is the client's own doing
                before = _placed([block for block in before if not self._is_thought(block)], kept)
            whole += [*blocks[done:start], *before]
            done = end
        whole += blocks[done:]
        return blocks if whole == blocks else whole

    def _stretches(self, blocks: Sequence[Json]) -> list[tuple[int, int, JsonObject]]:
        """Where the words and thoughts before each call begin and end, and the call."""
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
    """Put the thoughts back among the text, counted from the end, which is the call."""
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
    """Numbers in one form: some clients write 1.0 as 1."""
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
