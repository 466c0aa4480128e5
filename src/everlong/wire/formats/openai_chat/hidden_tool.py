"""The hidden tool in Chat Completions: hide pieces of its calls and join two answers."""

from collections.abc import Sequence
from typing import cast

from everlong.core import Json, JsonObject
from everlong.wire.formats.hidden_tool import Event, HiddenTool, Shown, StreamEditor, added_usage, list_in, object_in
from everlong.wire.formats.openai_chat.exchange import GrowingCalls
from everlong.wire.formats.openai_chat.messages import write_message
from everlong.wire.framing import DONE

__all__ = ["TOOL", "ChatEditor"]

FRAME = ("id", "object", "created", "model")
THOUGHTS = "reasoning_details"
#: The finish reasons of an answer without calls, by those of an answer with calls.
FINISHES = {"tool_calls": "stop", "function_call": "stop", "": "stop"}
#: Fields of a message that continue in the second answer.
TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
LISTS = ("reasoning_details", "thinking_blocks", "annotations")


class ChatEditor(StreamEditor):
    """Assigns pieces to calls by the server's numbers, and numbers the calls that stay without gaps."""

    SIGNS = (b'"tool_calls"', b'"reasoning_details"')

    def __init__(self, tool: str, earlier: Shown | None = None) -> None:
        super().__init__(tool, earlier)
        self._calls = GrowingCalls()
        self._thoughts = earlier.places if earlier else 0
        self._frame: JsonObject = dict(earlier.frame) if earlier else {}
        self._finish = ""

    def edited(self, event: JsonObject) -> JsonObject | None:
        """Return one chunk for the client. What follows a held end (the usage) is held too."""
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
        """Return the chunk with the frame of the first stream and the usage of all streams."""
        if self.earlier is None:
            return event
        out = event | self._frame
        if isinstance(event.get("usage"), dict):
            out["usage"] = added_usage(dict(self.earlier.usage), event["usage"])
        return out

    def _choice(self, choice: JsonObject) -> JsonObject | None:
        """Return the choice for the client; None if nothing of it is left."""
        delta = choice.get("delta")
        changed = self._delta(delta) if isinstance(delta, dict) else None
        out = choice if changed is None or changed is delta else choice | {"delta": changed}
        if isinstance(choice.get("usage"), dict):  # where Moonshot puts it
            self.usage = cast(JsonObject, choice["usage"])
            out = out | {"usage": added_usage(dict(self.earlier.usage), self.usage)} if self.earlier else out
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
            if names[number] == self.tool:
                self.called = True
                continue
            self.others = True
            before = sum(name == self.tool for name in names[:number])
            kept.append({**cast(JsonObject, piece), "index": number - before} if before else piece)
        if len(kept) == len(pieces):
            return delta if kept == pieces else delta | {"tool_calls": kept}
        rest: JsonObject = {name: value for name, value in delta.items() if name != "tool_calls"}
        return rest | {"tool_calls": kept} if kept else rest

    def _renumbered(self, delta: JsonObject) -> JsonObject:
        """Renumber thoughts, because clients join those with the same number, and a second stream has others."""
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
        """Return the frame of the chunks, the number of thoughts and the usage."""
        usage = added_usage(dict(self.earlier.usage), self.usage) if self.earlier else self.usage
        return Shown(frame=self._frame, places=self._thoughts, usage=usage)

    def ending(self) -> list[Event]:
        """Return the last chunk, the usage if there was one, and the end."""
        shown = self.shown()
        finish = FINISHES.get(self._finish, self._finish)
        last: JsonObject = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        events: list[Event] = [("", {**shown.frame, **last})]
        if shown.usage:
            events.append(("", {**shown.frame, "choices": [], "usage": dict(shown.usage)}))
        return [*events, ("", DONE)]


def _without_arguments(piece: Json) -> Json:
    """Return a numbered piece without its arguments: its number identifies it, so they need not be collected."""
    function = piece.get("function") if isinstance(piece, dict) else None
    if not isinstance(piece, dict) or not isinstance(function, dict) or not isinstance(piece.get("index"), int):
        return piece
    return piece | {"function": {name: value for name, value in function.items() if name != "arguments"}}


def _says(delta: Json) -> bool:
    """Whether a delta has anything besides the role."""
    return isinstance(delta, dict) and any(value for name, value in delta.items() if name != "role")


# --- whole answers ---------------------------------------------------------------------------------


def _declare(name: str, description: str, parameters: Json) -> JsonObject:
    function: JsonObject = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def _hide(answer: JsonObject, tool: str) -> JsonObject:
    choice = _choice(answer)
    hidden = _hide_in(choice, tool)
    rest = cast(list[Json], answer["choices"])[1:] if choice else []
    return answer if hidden is choice else answer | {"choices": [hidden, *rest]}


def _hide_in(choice: JsonObject, tool: str) -> JsonObject:
    message = object_in(choice.get("message"))
    calls = list_in(message.get("tool_calls"))
    kept = [call for call in calls if object_in(object_in(call).get("function")).get("name") != tool]
    if len(kept) == len(calls):
        return choice
    rest: JsonObject = {name: value for name, value in message.items() if name != "tool_calls"}
    if kept:
        return choice | {"message": rest | {"tool_calls": kept}}
    finish = choice.get("finish_reason")
    ended = FINISHES.get(finish, finish) if isinstance(finish, str) else finish
    return choice | {"message": rest, "finish_reason": ended}


def _join(first: JsonObject, second: JsonObject) -> JsonObject:
    before, after = object_in(_choice(first).get("message")), object_in(_choice(second).get("message"))
    message = before | after
    for name in TEXTS:
        texts = [text for text in (before.get(name), after.get(name)) if isinstance(text, str)]
        if texts:
            message[name] = "".join(texts)
    for name in LISTS:
        if name in before or name in after:
            message[name] = [*list_in(before.get(name)), *list_in(after.get(name))]
    frame: JsonObject = {name: first[name] for name in ("id", "created") if name in first}
    return second | frame | {"choices": [_choice(second) | {"message": message}]}


def _choice(answer: JsonObject) -> JsonObject:
    choices = list_in(answer.get("choices"))
    return object_in(choices[0]) if choices else {}


def _blocks(messages: Sequence[Json]) -> list[Json]:
    return [call for message in messages for call in list_in(object_in(message).get("tool_calls"))]


TOOL = HiddenTool(declare=_declare, resent=write_message, editor=ChatEditor, hide=_hide, join=_join, blocks=_blocks)
