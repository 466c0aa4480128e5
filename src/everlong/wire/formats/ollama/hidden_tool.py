"""The hidden tool in Ollama's chat: calls are complete, and the last line has the usage."""

from collections.abc import Sequence

from everlong.core import Json, JsonObject
from everlong.wire.formats.hidden_tool import Event, HiddenTool, Shown, StreamEditor, added_usage, list_in, object_in
from everlong.wire.formats.ollama.messages import write_message

__all__ = ["TOOL", "OllamaEditor", "declare"]

FRAME = ("model", "created_at")
#: Figures of the whole answer in the last line; those of two answers are added.
COUNTS = (
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
)
TEXTS = ("content", "thinking")


class OllamaEditor(StreamEditor):
    """Removes our calls from lines with calls, and holds back the last line."""

    SIGNS = (b'"tool_calls"',)

    def __init__(self, tool: str, earlier: Shown | None = None) -> None:
        super().__init__(tool, earlier)
        self._frame: JsonObject = dict(earlier.frame) if earlier else {}

    def edited(self, event: JsonObject) -> JsonObject | None:
        """Return one line for the client."""
        message = event.get("message")
        if not isinstance(message, dict):
            return event
        if not self._frame:
            self._frame = {name: event[name] for name in FRAME if name in event}
        shown = self._without_ours(message)
        out = event if shown is message else event | {"message": shown}
        if event.get("done") is not True:
            return out if shown is message or _says(shown) else None
        self.usage = _counts(event)
        if self.alone:
            self.held = True
            unfinished = {name: value for name, value in out.items() if name not in (*COUNTS, "done_reason")}
            return unfinished | {"done": False} if _says(shown) else None
        return out if self.earlier is None else {**out, **self.shown().usage}

    def _without_ours(self, message: JsonObject) -> JsonObject:
        calls = list_in(message.get("tool_calls"))
        kept = [call for call in calls if _called(call) != self.tool]
        self.others = self.others or bool(kept)
        if len(kept) == len(calls):
            return message
        self.called = True
        return _with_calls(message, kept)

    def shown(self) -> Shown:
        """Return the fields that all lines share, and the usage."""
        usage = added_usage(dict(self.earlier.usage), self.usage) if self.earlier else self.usage
        return Shown(frame=self._frame, usage=usage)

    def ending(self) -> list[Event]:
        """Return the last line."""
        shown = self.shown()
        last: JsonObject = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
        return [("", {**shown.frame, **last, **shown.usage})]


def _called(call: Json) -> Json:
    return object_in(object_in(call).get("function")).get("name")


def _counts(event: JsonObject) -> JsonObject:
    return {name: event[name] for name in COUNTS if name in event}


def _with_calls(message: JsonObject, calls: list[Json]) -> JsonObject:
    rest: JsonObject = {name: value for name, value in message.items() if name != "tool_calls"}
    return rest | {"tool_calls": calls} if calls else rest


def _says(message: JsonObject) -> bool:
    return any(value for name, value in message.items() if name != "role")


# --- whole answers ---------------------------------------------------------------------------------


def declare(name: str, description: str, parameters: Json) -> JsonObject:
    """Return the declaration of a tool."""
    function: JsonObject = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def _hide(answer: JsonObject, tool: str) -> JsonObject:
    message = object_in(answer.get("message"))
    calls = list_in(message.get("tool_calls"))
    kept = [call for call in calls if _called(call) != tool]
    return answer if len(kept) == len(calls) else answer | {"message": _with_calls(message, kept)}


def _join(first: JsonObject, second: JsonObject) -> JsonObject:
    before, after = object_in(first.get("message")), object_in(second.get("message"))
    message = before | after
    for name in TEXTS:
        texts = [text for text in (before.get(name), after.get(name)) if isinstance(text, str)]
        if texts:
            message[name] = "".join(texts)
    frame: JsonObject = {name: first[name] for name in FRAME if name in first}
    return second | frame | {"message": message} | added_usage(_counts(first), _counts(second))


def _blocks(messages: Sequence[Json]) -> list[Json]:
    return [call for message in messages for call in list_in(object_in(message).get("tool_calls"))]


TOOL = HiddenTool(declare=declare, resent=write_message, editor=OllamaEditor, hide=_hide, join=_join, blocks=_blocks)
