"""The hidden tool in Anthropic Messages: hide its blocks and join two answers."""

from collections.abc import Sequence
from typing import cast

from everlong.core import Json, JsonObject
from everlong.wire.formats.anthropic.messages import write_message
from everlong.wire.formats.hidden_tool import Event, HiddenTool, Shown, StreamEditor, added_usage, list_in, object_in

__all__ = ["TOOL", "MessagesEditor"]

#: The stop reasons of an answer without calls, by those of an answer with calls.
STOPS = {"tool_use": "end_turn", "": "end_turn"}


class MessagesEditor(StreamEditor):
    """Edits content blocks that start, grow and stop; those that stay are numbered without gaps."""

    SIGNS = (b"content_block_start", b"message_start", b"message_delta")

    def __init__(self, tool: str, earlier: Shown | None = None) -> None:
        super().__init__(tool, earlier)
        self._next = earlier.places if earlier else 0
        self._ours: set[int] = set()
        self._places: dict[int, int] = {}
        self._stop = ""

    def edited(self, event: JsonObject) -> JsonObject | None:
        """Return one event for the client."""
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
            if block.get("name") == self.tool:
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
        """Record usage. Figures come at the start and at the end; the last value of each counts."""
        if isinstance(usage, dict):
            self.usage = self.usage | {name: value for name, value in usage.items() if value is not None}

    def shown(self) -> Shown:
        """Return how many blocks were shown, and the usage."""
        usage = added_usage(dict(self.earlier.usage), self.usage) if self.earlier else self.usage
        return Shown(places=self._next, usage=usage)

    def ending(self) -> list[Event]:
        """Return the events that end the answer: the stop reason with the usage, and the end."""
        delta: Json = {"stop_reason": STOPS.get(self._stop, self._stop), "stop_sequence": None}
        usage = cast(Json, dict(self.shown().usage))
        return [
            ("message_delta", {"type": "message_delta", "delta": delta, "usage": usage}),
            ("message_stop", {"type": "message_stop"}),
        ]


# --- whole answers ---------------------------------------------------------------------------------


def _declare(name: str, description: str, parameters: Json) -> JsonObject:
    return {"name": name, "description": description, "input_schema": parameters}


def _hide(answer: JsonObject, tool: str) -> JsonObject:
    blocks = list_in(answer.get("content"))
    kept = [block for block in blocks if not (_is_call(block) and object_in(block).get("name") == tool)]
    if len(kept) == len(blocks):
        return answer
    shown = answer | {"content": kept}
    if not any(map(_is_call, kept)):
        stop = answer.get("stop_reason")
        shown["stop_reason"] = STOPS.get(stop, stop) if isinstance(stop, str) else stop
    return shown


def _is_call(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use"


def _join(first: JsonObject, second: JsonObject) -> JsonObject:
    content = [*list_in(first.get("content")), *list_in(second.get("content"))]
    return second | {"id": first.get("id"), "content": content}


def _blocks(messages: Sequence[Json]) -> list[Json]:
    return [block for message in messages for block in list_in(object_in(message).get("content"))]


def _with_results(message: Json, results: list[Json]) -> list[Json]:
    """Put the results of an answer into the message after it, before any text."""
    blocks = [block for result in results for block in list_in(object_in(result).get("content"))]
    fields = object_in(message)
    if fields.get("role") != "user":
        return [*results, message]
    content = fields.get("content")
    words: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else list_in(content)
    return [fields | {"content": [*blocks, *words]}]


TOOL = HiddenTool(
    declare=_declare,
    resent=write_message,
    editor=MessagesEditor,
    hide=_hide,
    join=_join,
    blocks=_blocks,
    with_results=_with_results,
)
