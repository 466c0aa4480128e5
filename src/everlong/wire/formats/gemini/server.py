"""Gemini for a server: errors, the canonical form of a content, usage, thought signatures."""

from collections.abc import Mapping, Sequence
from typing import cast

from everlong.core import Json, JsonObject, JsonText
from everlong.wire.fields import dump, load
from everlong.wire.formats.format import Deltas, Place
from everlong.wire.formats.gemini.hidden_tool import TOOL
from everlong.wire.formats.gemini.messages import UNSIGNED_CALL
from everlong.wire.formats.gemini.rules import in_camel_case
from everlong.wire.formats.hidden_tool import Event, list_in, object_in
from everlong.wire.formats.opaque import Find, OpaqueParts
from everlong.wire.formats.pairs import paired_after
from everlong.wire.formats.server import Canonical, Errors, ServerSide, UsageShape, error_type, writable

__all__ = ["DELTAS", "SERVER", "SignatureParts"]

# --- errors ----------------------------------------------------------------------------------------

#: The names of statuses.
ERROR_TYPES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}


def _error_body(status: int, _kind: str, message: str) -> JsonObject:
    return {"error": {"code": status, "message": writable(message), "status": error_type(ERROR_TYPES, status)}}


def _error_events(status: int, kind: str, message: str, _sequence: int) -> list[Event]:
    return [("", _error_body(status, kind, message))]


def _overflow(limit: int | None, needed: int | None) -> str:
    count = "" if needed is None else f" ({needed})"
    allowed = "" if limit is None else f" ({limit})"
    return f"The input token count{count} exceeds the maximum number of tokens allowed{allowed}."


# --- the canonical form of a content ---------------------------------------------------------------

SIGNATURE = "thoughtSignature"
#: Fields with a tool's own data, in which names must stay as they are.
CONTENTS = frozenset({"args", "response"})
#: Fields of a part that are objects with fields of their own.
HOLDERS = frozenset({"functionCall", "functionResponse", "inlineData", "fileData", "videoMetadata"})


def _listed(content: JsonObject) -> JsonObject:
    """Return the content with its parts in a list; a single part may come without one."""
    parts = content.get("parts")
    return content | {"parts": [parts]} if isinstance(parts, dict) else content


def _compared(content: JsonObject) -> JsonObject:
    """Return the content in camelCase, with the role "user" if it has none, without signatures made up by a client.

    Some clients put one on the calls of the current turn and remove it when the turn is over.
    """
    parts: list[Json] = [_without_made_up(_camel(part)) for part in list_in(content.get("parts"))]
    return {"role": "user"} | content | {"parts": parts}


def _camel(value: Json) -> Json:
    """Return the fields of a part in camelCase, without those that are null."""
    if not isinstance(value, dict):
        return value
    spelled = {in_camel_case(name): field for name, field in value.items()}
    named: JsonObject = {
        name: _camel(field) if name in HOLDERS else field for name, field in spelled.items() if field is not None
    }
    return named


def _without_made_up(part: Json) -> Json:
    if not isinstance(part, dict) or part.get(SIGNATURE) != UNSIGNED_CALL:
        return part
    return {name: value for name, value in part.items() if name != SIGNATURE}


def _system(instruction: Json) -> Json:
    """Return system text for comparison: the parts of a text or content, without its role."""
    if isinstance(instruction, str):
        return [{"text": instruction}]
    parts = object_in(instruction).get("parts")
    return [_camel(part) for part in ([parts] if isinstance(parts, dict) else list_in(parts))]


# --- thought signatures ----------------------------------------------------------------------------


class SignatureParts(OpaqueParts):
    """Restores the signatures of calls: the provider refuses a call of the current turn without its signature."""

    def call_id(self, call: Json) -> str | None:
        """Return the id of a call; one without an id is identified by its function."""
        inner = self._call(call)
        if inner is None:
            return None
        identity = inner.get("id")
        return identity if isinstance(identity, str) and identity else f"call_{inner.get('name')}"

    def call_content(self, call: JsonObject) -> tuple[Json, Json]:
        """Return the name and the arguments."""
        inner = self._call(call) or {}
        return inner.get("name"), inner.get("args") or {}

    def seal(self, block: Json) -> str:
        """Return the signature of a part that is not a call."""
        seal = _signature(object_in(block)) if self._call(block) is None else ""
        return "" if seal == UNSIGNED_CALL else seal

    def parts(self, members: Sequence[Json], model: str = "") -> dict[str, JsonText]:  # noqa: ARG002 - all models alike
        """Return the signatures of a content that must be remembered, each under its call."""
        parts: dict[str, JsonText] = {}
        for part in list_in(object_in(members[0]).get("parts")) if members else ():
            signature = _signature(object_in(part))
            if signature and self._call(part) is not None:
                parts |= self._keys(cast(JsonObject, part), dump(signature))
        return parts

    def restored(self, members: list[JsonObject], find: Find) -> list[JsonObject]:
        """Return the contents with the signatures that calls of the model lack."""
        return [self._restored(each, find) if each.get("role") == "model" else each for each in members]

    def _restored(self, content: JsonObject, find: Find) -> JsonObject:
        parts = list_in(content.get("parts"))
        whole = [self._signed(part, find) for part in parts]
        return content if all(new is old for new, old in zip(whole, parts, strict=True)) else content | {"parts": whole}

    def _signed(self, part: Json, find: Find) -> Json:
        if not isinstance(part, dict) or self._call(part) is None or _signature(part) not in ("", UNSIGNED_CALL):
            return part
        kept = self._kept(part, find)
        return part | {SIGNATURE: load(kept)} if kept else part

    @staticmethod
    def _call(part: Json) -> JsonObject | None:
        fields = object_in(part)
        return next((object_in(fields[key]) for key in ("functionCall", "function_call") if fields.get(key)), None)


def _signature(part: JsonObject) -> str:
    signature = part.get(SIGNATURE) or part.get("thought_signature")
    return signature if isinstance(signature, str) else ""


# --- events that only add to one text --------------------------------------------------------------

TEXT: Place = ("text", 0)
THOUGHT: Place = ("thought", 0)


def _split(event: JsonObject) -> tuple[Place, str] | None:
    """Return place and text of a chunk that only adds text. Its usage may be dropped: the last chunk has it all."""
    candidates = event.get("candidates")
    if not isinstance(candidates, list) or len(candidates) != 1:
        return None
    candidate = candidates[0]
    if not isinstance(candidate, dict) or candidate.get("finishReason"):
        return None
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    part = parts[0] if isinstance(parts, list) and len(parts) == 1 else None
    text = part.get("text") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(text, str):
        return None
    if len(part) == 1:
        return TEXT, text
    return (THOUGHT, text) if len(part) == 2 and part.get("thought") is True else None


def _join(place: Place, text: str) -> JsonObject:
    part: JsonObject = {"text": text} if place == TEXT else {"text": text, "thought": True}
    return {"candidates": [{"content": {"role": "model", "parts": [part]}}]}


DELTAS = Deltas(split=_split, join=_join)

SERVER = ServerSide(
    maker="google",
    title="Gemini",
    client_header=b"x-goog-api-key",
    counted=lambda tokens: {"totalTokens": tokens},
    errors=Errors(body=_error_body, events=_error_events, overflow=_overflow),
    canonical=Canonical(form=_listed, compared=_compared, system=_system, pair=paired_after),
    usage=UsageShape(
        field="usageMetadata",
        prompt="promptTokenCount",
        output="candidatesTokenCount",
        output_beside=("thoughtsTokenCount",),
        total="totalTokenCount",
        cached="cachedContentTokenCount",
        beside=("toolUsePromptTokenCount",),
        known_by="candidates",
        whole=(b'"finishReason"',),
        marks=(b'"usageMetadata"', b'"finishReason"'),
    ),
    opaque=SignatureParts(),
    tool=TOOL,
)
