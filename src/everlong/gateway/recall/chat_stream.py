"""Our tool's calls in a stream of Chat Completions: hidden, and two streams as one."""

from typing import cast

from everlong.core import Json, JsonObject
from everlong.gateway.recall.editor import Event, Shown, StreamEditor
from everlong.gateway.recall.tool import NAME
from everlong.gateway.recall.usage import added
from everlong.wire import GrowingCalls

__all__ = ["ChatEditing"]

FRAME = ("id", "object", "created", "model")
THOUGHTS = "reasoning_details"
#: How an answer ends that has no calls left.
FINISHES = {"tool_calls": "stop", "function_call": "stop", "": "stop"}


class ChatEditing(StreamEditor):
    """Pieces of calls are told apart as the server numbers them; those that stay are numbered without gaps."""

    SIGNS = (b'"tool_calls"', b'"reasoning_details"')

    def __init__(self, earlier: Shown | None) -> None:
        super().__init__(earlier)
        self._calls = GrowingCalls()
        self._thoughts = earlier.places if earlier else 0
        self._frame: JsonObject = dict(earlier.frame) if earlier else {}
        self._finish = ""

    def edited(self, event: JsonObject) -> JsonObject | None:
        """One chunk. What comes after a held end (the usage) is held too."""
        choices = event.get("choices")
        if not isinstance(choices, list):
            return event
        self._note(event)
        out = self._framed(event)
        choice = choices[0] if choices else None
        changed = self._choice(choice) if isinstance(choice, dict) else choice
        if isinstance(choice, dict) and changed is not choice:
            out = out | {"choices": [changed, *choices[1:]]}
        if self.held:
            said = isinstance(changed, dict) and _says(changed.get("delta"))
            return {name: value for name, value in out.items() if name != "usage"} if said else None
        return out if changed is not None or choice is None else None

    def _note(self, event: JsonObject) -> None:
        if isinstance(event.get("usage"), dict):
            self.usage = cast(JsonObject, event["usage"])
        if not self._frame:
            self._frame = {name: event[name] for name in FRAME if name in event}

    def _framed(self, event: JsonObject) -> JsonObject:
        """The chunk as one of the first stream, with the usage of all."""
        if self.earlier is None:
            return event
        out = event | self._frame
        if isinstance(event.get("usage"), dict):
            out["usage"] = added(dict(self.earlier.usage), event["usage"])
        return out

    def _choice(self, choice: JsonObject) -> JsonObject | None:
        """The choice for the client, None if nothing of it is left."""
        delta = choice.get("delta")
        changed = self._delta(delta) if isinstance(delta, dict) else None
        out = choice if changed is None or changed is delta else choice | {"delta": changed}
        if isinstance(choice.get("usage"), dict):  # Moonshot's place for it
            self.usage = cast(JsonObject, choice["usage"])
            out = out | {"usage": added(dict(self.earlier.usage), self.usage)} if self.earlier else out
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._finish = finish
            if self.alone:
                self.held = True
                return out | {"finish_reason": None}
            return out
        idle = changed is not None and changed is not delta and not _says(changed) and "role" not in changed
        return None if idle else out

    def _delta(self, delta: JsonObject) -> JsonObject:
        out = delta
        if isinstance(delta.get("tool_calls"), list):
            out = self._without_ours(delta, cast(list[Json], delta["tool_calls"]))
        if isinstance(delta.get(THOUGHTS), list):
            out = self._renumbered(out)
        if self.earlier is not None and "role" in out:
            out = {name: value for name, value in out.items() if name != "role"}
        return out

    def _without_ours(self, delta: JsonObject, pieces: list[Json]) -> JsonObject:
        kept: list[Json] = []
        for piece in pieces:
            grown = self._calls.grew([_without_arguments(piece)])
            if not grown:
                kept.append(piece)
                continue
            names = [cast(JsonObject, cast(JsonObject, call)["function"])["name"] for call in self._calls.whole()]
            number = grown[0].number
            if names[number] == NAME:
                self.called = True
                continue
            self.others = True
            before = sum(name == NAME for name in names[:number])
            kept.append({**cast(JsonObject, piece), "index": number - before} if before else piece)
        if len(kept) == len(pieces):
            return delta if kept == pieces else delta | {"tool_calls": kept}
        rest: JsonObject = {name: value for name, value in delta.items() if name != "tool_calls"}
        return rest | {"tool_calls": kept} if kept else rest

    def _renumbered(self, delta: JsonObject) -> JsonObject:
        """Thoughts are joined by their number; those of the second stream are others."""
        base = self.earlier.places if self.earlier else 0
        pieces: list[Json] = []
        for piece in cast(list[Json], delta[THOUGHTS]):
            index = piece.get("index") if isinstance(piece, dict) else None
            if isinstance(piece, dict) and isinstance(index, int):
                self._thoughts = max(self._thoughts, base + index + 1)
                piece = piece | {"index": base + index}
            pieces.append(piece)
        return delta | {THOUGHTS: pieces} if base else delta

    def shown(self) -> Shown:
        """The frame of the chunks, the thoughts, the usage."""
        usage = added(dict(self.earlier.usage), self.usage) if self.earlier else self.usage
        return Shown(frame=self._frame, places=self._thoughts, usage=usage)

    def ending(self) -> list[Event]:
        """The last chunk, the usage where there was one, and the end."""
        shown = self.shown()
        finish = FINISHES.get(self._finish, self._finish)
        last: JsonObject = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        events: list[Event] = [("", {**shown.frame, **last})]
        if shown.usage:
            events.append(("", {**shown.frame, "choices": [], "usage": dict(shown.usage)}))
        return [*events, ("", "[DONE]")]


def _without_arguments(piece: Json) -> Json:
    """A numbered piece is told apart by its number; what it is called with need not be put together here."""
    function = piece.get("function") if isinstance(piece, dict) else None
    if not isinstance(piece, dict) or not isinstance(function, dict) or not isinstance(piece.get("index"), int):
        return piece
    return piece | {"function": {name: value for name, value in function.items() if name != "arguments"}}


def _says(delta: Json) -> bool:
    """Whether there is anything in it besides who speaks."""
    return isinstance(delta, dict) and any(value for name, value in delta.items() if name != "role")
