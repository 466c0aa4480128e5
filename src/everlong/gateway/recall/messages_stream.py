"""Our tool's calls in a stream of Anthropic Messages: hidden, and two streams as one."""

from typing import cast

from everlong.core import Json, JsonObject
from everlong.gateway.recall.editor import Event, Shown, StreamEditor
from everlong.gateway.recall.tool import NAME
from everlong.gateway.recall.usage import added

__all__ = ["MessagesEditing"]

#: How an answer ends that has no calls left.
STOPS = {"tool_use": "end_turn", "": "end_turn"}


class MessagesEditing(StreamEditor):
    """Content blocks that start, grow and stop; those that stay are numbered without gaps."""

    SIGNS = (b"content_block_start", b"message_start", b"message_delta")

    def __init__(self, earlier: Shown | None) -> None:
        super().__init__(earlier)
        self._next = earlier.places if earlier else 0
        self._ours: set[int] = set()
        self._places: dict[int, int] = {}
        self._stop = ""

    def edited(self, event: JsonObject) -> JsonObject | None:
        """One event."""
        index = event.get("index")
        at = index if isinstance(index, int) else 0
        match event.get("type"):
            case "message_start":
                message = event.get("message")
                self._note(message.get("usage") if isinstance(message, dict) else None)
                return event if self.earlier is None else None
            case "content_block_start":
                return self._started(event, at)
            case "content_block_delta" | "content_block_stop":
                return None if at in self._ours else self._placed(event, at)
            case "message_delta":
                return self._ended(event)
            case "message_stop":
                self.held = self.held or self.alone
                return None if self.held else event
        return event

    def _started(self, event: JsonObject, at: int) -> JsonObject | None:
        block = event.get("content_block")
        if isinstance(block, dict) and block.get("type") == "tool_use":
            if block.get("name") == NAME:
                self.called = True
                self._ours.add(at)
                return None
            self.others = True
        place = self._next if self.touched else at
        self._places[at] = place
        self._next = place + 1
        return self._placed(event, at)

    def _placed(self, event: JsonObject, at: int) -> JsonObject:
        place = self._places.get(at, at)
        return event if place == at else event | {"index": place}

    def _ended(self, event: JsonObject) -> JsonObject | None:
        self._note(event.get("usage"))
        delta = event.get("delta")
        stop = delta.get("stop_reason") if isinstance(delta, dict) else None
        self._stop = stop if isinstance(stop, str) else self._stop
        if self.alone:
            self.held = True
            return None
        return event if self.earlier is None else event | {"usage": dict(self.shown().usage)}

    def _note(self, usage: Json) -> None:
        """Figures come twice, at the start and at the end; the last that is given counts."""
        if isinstance(usage, dict):
            self.usage = self.usage | {name: value for name, value in usage.items() if value is not None}

    def shown(self) -> Shown:
        """How many blocks, and the usage."""
        usage = added(dict(self.earlier.usage), self.usage) if self.earlier else self.usage
        return Shown(places=self._next, usage=usage)

    def ending(self) -> list[Event]:
        """The reason to stop, with the usage, and the end."""
        delta: Json = {"stop_reason": STOPS.get(self._stop, self._stop), "stop_sequence": None}
        usage = cast(Json, dict(self.shown().usage))
        return [
            ("message_delta", {"type": "message_delta", "delta": delta, "usage": usage}),
            ("message_stop", {"type": "message_stop"}),
        ]
