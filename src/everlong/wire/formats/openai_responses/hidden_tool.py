"""The hidden tool in Responses: hide its items and join two answers."""

from collections.abc import Sequence
from typing import cast

from everlong.core import Json, JsonObject, Message
from everlong.wire.formats.hidden_tool import Event, HiddenTool, Shown, StreamEditor, added_usage, list_in, object_in
from everlong.wire.formats.openai_responses.items import CALLS, OUTPUTS
from everlong.wire.formats.openai_responses.messages import write_message

__all__ = ["TOOL", "ResponsesEditor", "sendable"]

BEGINS = frozenset({"response.created", "response.in_progress", "response.queued"})
ENDS = frozenset({"response.completed", "response.incomplete"})
FRAME = ("id", "created_at")


def _calls(item: Json, tool: str) -> bool:
    """Whether an item is a call of the tool."""
    return isinstance(item, dict) and item.get("type") == "function_call" and item.get("name") == tool


def _is_call(item: Json) -> bool:
    return isinstance(item, dict) and str(item.get("type")) in CALLS


class ResponsesEditor(StreamEditor):
    """Edits output items that are added, grow and are done; those that stay are numbered without gaps.

    The last event has the whole answer, with the id of the first stream, because clients check it.
    """

    SIGNS = (b"response.output_item.", b"response.completed", b"response.incomplete")

    def __init__(self, tool: str, earlier: Shown | None = None) -> None:
        super().__init__(tool, earlier)
        self._next = earlier.places if earlier else 0
        self._sequence = earlier.sequence if earlier else None
        self._ours: set[int] = set()
        self._places: dict[int, int] = {}
        self._items: list[Json] = []
        self._response: JsonObject = {}
        self._end = "response.completed"

    def edited(self, event: JsonObject) -> JsonObject | None:
        """Return one event for the client."""
        kind, index = str(event.get("type")), event.get("output_index")
        at = index if isinstance(index, int) else None
        if kind in BEGINS:
            return event if self.earlier is None else None
        if kind == "response.output_item.added" and at is not None:
            self._added(event, at)
        if at is not None and at in self._ours:
            return None
        if kind == "response.output_item.done":
            self._items.append(event.get("item"))
        if kind in ENDS:
            return self._ended(event)
        return self._numbered(self._reframed(event), at)

    def _added(self, event: JsonObject, at: int) -> None:
        item = event.get("item")
        if _calls(item, self.tool):
            number = event.get("sequence_number")
            if not self.touched and isinstance(number, int):
                self._sequence = number
            self.called = True
            self._ours.add(at)
            return
        self.others = self.others or _is_call(item)
        self._places[at] = self._next if self.touched else at
        self._next = self._places[at] + 1

    def _numbered(self, event: JsonObject, at: int | None) -> JsonObject:
        out = event
        if at is not None and self._places.get(at, at) != at:
            out = out | {"output_index": self._places[at]}
        if self.touched and self._sequence is not None and "sequence_number" in event:
            out = out | {"sequence_number": self._sequence}
            self._sequence += 1
        return out

    def _ended(self, event: JsonObject) -> JsonObject | None:
        response = event.get("response")
        self._response = response if isinstance(response, dict) else {}
        name = self._response.get("id")
        self.response = name if isinstance(name, str) else ""
        self._end = str(event["type"])
        usage = self._response.get("usage")
        self.usage = usage if isinstance(usage, dict) else {}
        self._look(self._response.get("output"))
        if self.alone:
            self.held = True
            return None
        if not self.touched:
            return event
        return self._numbered(event | {"response": self._whole()}, None)

    def _look(self, output: Json) -> None:
        """Check the whole answer at the end: some servers have the call only there."""
        for item in output if isinstance(output, list) else []:
            self.called = self.called or _calls(item, self.tool)
            self.others = self.others or (_is_call(item) and not _calls(item, self.tool))

    def _shown_items(self) -> list[Json]:
        before = [*self.earlier.items] if self.earlier else []
        output = self._response.get("output")
        items = output if isinstance(output, list) and output else self._items
        return [*before, *(item for item in items if not _calls(item, self.tool))]

    def _whole(self) -> JsonObject:
        """Return the answer as the client knows it."""
        usage = dict(self.shown().usage) or None
        return self._response | self._frame() | {"output": self._shown_items(), "usage": usage}

    def _reframed(self, event: JsonObject) -> JsonObject:
        """Return an event of a later stream with the id of the answer that the client knows."""
        response = event.get("response")
        known = self.earlier is not None and isinstance(response, dict)
        return event | {"response": cast(JsonObject, response) | self._frame()} if known else event

    def _frame(self) -> JsonObject:
        if self.earlier:
            return dict(self.earlier.frame)
        return {name: self._response[name] for name in FRAME if name in self._response}

    def shown(self) -> Shown:
        """Return the items so far, the number of the next event and the usage."""
        usage = added_usage(dict(self.earlier.usage), self.usage) if self.earlier else self.usage
        items = tuple(self._shown_items())
        return Shown(frame=self._frame(), places=self._next, sequence=self._sequence, items=items, usage=usage)

    def ending(self) -> list[Event]:
        """Return the whole answer without our call."""
        event: JsonObject = {"type": self._end, "response": self._whole()}
        if self._sequence is not None:
            event["sequence_number"] = self._sequence
        return [(self._end, event)]


# --- whole answers ---------------------------------------------------------------------------------


def _declare(name: str, description: str, parameters: Json) -> JsonObject:
    return {"type": "function", "name": name, "description": description, "parameters": parameters, "strict": False}


def sendable(items: Sequence[Json]) -> list[JsonObject]:
    """Return the items without reasoning that is not sealed.

    The provider knows such reasoning only by its id, and may not have stored it. If one is left out, the other items
    lose their ids, under which the provider would look for it.
    """
    known = [item for item in items if isinstance(item, dict)]
    sealed = [item for item in known if item.get("type") != "reasoning" or item.get("encrypted_content")]
    if len(sealed) == len(known):
        return known
    return [{name: value for name, value in item.items() if name != "id"} for item in sealed]


def _resent(message: Message) -> list[JsonObject]:
    return sendable(cast("list[Json]", write_message(message)))


def _hide(answer: JsonObject, tool: str) -> JsonObject:
    items = list_in(answer.get("output"))
    kept = [item for item in items if not _calls(item, tool)]
    return answer if len(kept) == len(items) else answer | {"output": kept}


def _join(first: JsonObject, second: JsonObject) -> JsonObject:
    """Join two answers, with the id of the second, which a later request may name."""
    return second | {"output": [*list_in(first.get("output")), *list_in(second.get("output"))]}


def _called_elsewhere(items: list[Json]) -> frozenset[str]:
    called = {str(object_in(item).get("call_id")) for item in items if _is_call(item)}
    answered = [item for item in items if str(object_in(item).get("type")) in OUTPUTS]
    return frozenset(str(object_in(item).get("call_id")) for item in answered) - called


TOOL = HiddenTool(
    declare=_declare,
    resent=_resent,
    editor=ResponsesEditor,
    hide=_hide,
    join=_join,
    blocks=list,
    called_elsewhere=_called_elsewhere,
)
