"""The hidden tool in Gemini: hide its parts and join two answers."""

from collections.abc import Mapping, Sequence
from typing import cast

from everlong.core import Json, JsonObject, Message
from everlong.wire.formats.gemini.messages import write_history, write_message
from everlong.wire.formats.hidden_tool import Event, HiddenTool, Shown, StreamEditor, added_usage, list_in, object_in

__all__ = ["TOOL", "GeminiEditor"]

USAGE = "usageMetadata"
#: The fields that all chunks of an answer share.
FRAME = ("responseId", "modelVersion", "createTime")
DECLARATIONS = ("functionDeclarations", "function_declarations")
CALL = ("functionCall", "function_call")
WHOLE_JSON = ("responseMimeType", "response_mime_type")
USUAL_FINISH = "STOP"


class GeminiEditor(StreamEditor):
    """Edits chunks with a candidate, whose parts are complete. Most chunks have usage, which only grows."""

    SIGNS = (b'"functionCall"',)

    def __init__(self, tool: str, earlier: Shown | None = None) -> None:
        super().__init__(tool, earlier)
        self._frame: JsonObject = dict(earlier.frame) if earlier else {}
        self._finish = ""

    def edited(self, event: JsonObject) -> JsonObject | None:
        """Return one chunk for the client. What follows a held end is held too."""
        self._note(event)
        out = self._framed(event)
        candidates = event.get("candidates")
        candidate = object_in(candidates[0]) if isinstance(candidates, list) and candidates else {}
        if not candidate:
            return None if self.held else out
        shown = self._without_ours(candidate)
        finish = candidate.get("finishReason")
        if isinstance(finish, str) and finish:
            self._finish = finish
            self.held = self.held or self.alone
        if self.held:
            shown = {name: value for name, value in shown.items() if name != "finishReason"}
            out = {name: value for name, value in out.items() if name != USAGE}
        idle = shown is not candidate and not _parts(shown) and "finishReason" not in shown
        if idle:
            return None
        return out if shown is candidate else out | {"candidates": [shown, *cast("list[Json]", candidates)[1:]]}

    def _note(self, event: JsonObject) -> None:
        usage = event.get(USAGE)
        if isinstance(usage, dict):
            self.usage = self.usage | usage
        self._frame = self._frame or {name: event[name] for name in FRAME if name in event}

    def _framed(self, event: JsonObject) -> JsonObject:
        """Return the chunk with the frame of the first stream and the usage of all streams."""
        if self.earlier is None:
            return event
        usage = {USAGE: added_usage(dict(self.earlier.usage), self.usage)} if USAGE in event else {}
        return event | self._frame | cast(JsonObject, usage)

    def _without_ours(self, candidate: JsonObject) -> JsonObject:
        parts = _parts(candidate)
        kept = [part for part in parts if _called(part) != self.tool]
        self.called = self.called or len(kept) < len(parts)
        self.others = self.others or any(_called(part) is not None for part in kept)
        return candidate if len(kept) == len(parts) else _with_parts(candidate, kept)

    def shown(self) -> Shown:
        """Return the frame of the chunks and the usage."""
        usage = added_usage(dict(self.earlier.usage), self.usage) if self.earlier else self.usage
        return Shown(frame=self._frame, usage=usage)

    def ending(self) -> list[Event]:
        """Return the last chunk, with the stop reason and the usage."""
        shown = self.shown()
        content: JsonObject = {"role": "model", "parts": [{"text": ""}]}
        last: JsonObject = {"content": content, "finishReason": self._finish or USUAL_FINISH, "index": 0}
        usage: JsonObject = {USAGE: dict(shown.usage)} if shown.usage else {}
        return [("", {"candidates": [last], **usage, **shown.frame})]


def _called(part: Json) -> Json:
    """Return the name of the function that a part calls; None if it calls none."""
    fields = object_in(part)
    call = next((object_in(fields[key]) for key in CALL if key in fields), None)
    return None if call is None else call.get("name", "")


def _parts(candidate: JsonObject) -> list[Json]:
    return list_in(object_in(candidate.get("content")).get("parts"))


def _with_parts(candidate: JsonObject, parts: list[Json]) -> JsonObject:
    return candidate | {"content": object_in(candidate.get("content")) | {"parts": parts}}


# --- whole answers ---------------------------------------------------------------------------------


def declare(name: str, description: str, parameters: Json) -> JsonObject:
    """Return the declaration of a tool."""
    declaration: JsonObject = {"name": name, "description": description, "parametersJsonSchema": parameters}
    return {"functionDeclarations": [declaration]}


def _offer(tools: list[Json], tool: JsonObject) -> list[Json]:
    """Add a function to the existing declaration: some of Google's servers accept only one."""
    for at, each in enumerate(tools):
        fields = object_in(each)
        key = next((key for key in DECLARATIONS if isinstance(fields.get(key), list)), "")
        if key:
            more = [*list_in(fields[key]), *list_in(tool["functionDeclarations"])]
            return [*tools[:at], fields | {key: more}, *tools[at + 1 :]]
    return [*tools, tool]


def _declared(tool: Json) -> list[Json]:
    fields = object_in(tool)
    return [object_in(each).get("name") for key in DECLARATIONS for each in list_in(fields.get(key))]


def _may_offer(fields: Mapping[str, Json]) -> bool:
    """Whether a request with these fields may get a function of ours.

    Not if calls are forbidden, if several answers or structured output are requested, or with Google's own tools, which
    most models do not accept together with functions.
    """
    config, settings = object_in(fields.get("toolConfig")), object_in(fields.get("generationConfig"))
    calling = object_in(config.get("functionCallingConfig") or config.get("function_calling_config"))
    several = settings.get("candidateCount", settings.get("candidate_count")) not in (None, 1)
    formed = any(settings.get(name) not in (None, "text/plain") for name in WHOLE_JSON)
    tools = list_in(fields.get("tools"))
    own = any(set(object_in(tool)) - set(DECLARATIONS) for tool in tools)
    return not (calling.get("mode") == "NONE" or several or formed or own)


def _candidate(answer: JsonObject) -> JsonObject:
    candidates = list_in(answer.get("candidates"))
    return object_in(candidates[0]) if candidates else {}


def _hide(answer: JsonObject, tool: str) -> JsonObject:
    candidate = _candidate(answer)
    parts = _parts(candidate)
    kept = [part for part in parts if _called(part) != tool]
    if len(kept) == len(parts):
        return answer
    return answer | {"candidates": [_with_parts(candidate, kept), *cast("list[Json]", answer["candidates"])[1:]]}


def _join(first: JsonObject, second: JsonObject) -> JsonObject:
    before, after = _candidate(first), _candidate(second)
    frame: JsonObject = {name: first[name] for name in FRAME if name in first}
    whole = second | frame | {"candidates": [_with_parts(after, [*_parts(before), *_parts(after)])]}
    if isinstance(first.get(USAGE), dict) or isinstance(second.get(USAGE), dict):
        whole[USAGE] = added_usage(first.get(USAGE), second.get(USAGE))
    return whole


def _blocks(messages: Sequence[Json]) -> list[Json]:
    return [part for message in messages for part in list_in(object_in(message).get("parts"))]


def _answers(message: Message, results: Message) -> list[JsonObject]:
    """Return only the results; each repeats the name of its call."""
    return cast("list[JsonObject]", list_in(write_history((message, results))["contents"])[1:])


def _with_results(message: Json, results: list[Json]) -> list[Json]:
    """Put the results of an answer into the content after it, before any text."""
    fields = object_in(message)
    if fields.get("role") not in ("user", "function", None):
        return [*results, message]
    return [fields | {"parts": [*_blocks(results), *list_in(fields.get("parts"))]}]


def words_of(content: JsonObject) -> str:
    """Return the text of a content, without its thoughts."""
    parts = [object_in(part) for part in list_in(content.get("parts"))]
    texts = [part.get("text") for part in parts if part.get("thought") is not True]
    return "".join(text for text in texts if isinstance(text, str))


TOOL = HiddenTool(
    declare=declare,
    declared=_declared,
    offer=_offer,
    may_offer=_may_offer,
    looked_at=("toolConfig", "generationConfig", "tools"),
    resent=write_message,
    answers=_answers,
    editor=GeminiEditor,
    hide=_hide,
    join=_join,
    blocks=_blocks,
    with_results=_with_results,
    role="model",
    words=words_of,
)
