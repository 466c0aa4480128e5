"""Anthropic Messages for a server: errors, the canonical form of a message, usage, opaque blocks."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

from everlong.core import Json, JsonObject, JsonText
from everlong.wire.formats.allowances import anthropic_allowances
from everlong.wire.formats.anthropic.hidden_tool import TOOL
from everlong.wire.formats.format import Deltas, Place
from everlong.wire.formats.hidden_tool import Event, object_in
from everlong.wire.formats.opaque import Find, ThoughtParts
from everlong.wire.formats.server import (
    Canonical,
    Compaction,
    Errors,
    LongContext,
    ServerSide,
    UsageShape,
    error_type,
    writable,
)

__all__ = ["DELTAS", "ERROR_TYPES", "SERVER", "THOUGHTS", "BlockParts"]

# --- errors ----------------------------------------------------------------------------------------

#: The names of statuses.
ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def _error_body(status: int, _kind: str, message: str) -> JsonObject:
    return {"type": "error", "error": {"type": error_type(ERROR_TYPES, status), "message": writable(message)}}


def _error_events(status: int, kind: str, message: str, _sequence: int) -> list[Event]:
    return [("error", _error_body(status, kind, message))]


def _overflow(limit: int | None, needed: int | None) -> str:
    known = limit is not None and needed is not None
    return f"prompt is too long: {needed} tokens > {limit} maximum." if known else "prompt is too long."


# --- the canonical form of a message ---------------------------------------------------------------


def _in_blocks(message: JsonObject) -> JsonObject:
    """Return the message with its text as a block, which cache marks need."""
    return message | {"content": as_blocks(message["content"])} if "content" in message else message


def as_blocks(content: Json) -> Json:
    """Return a content, and that of its tool results, as blocks; the same object if nothing changes."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else content
    if not isinstance(content, list):
        return content
    blocks = [_result_in_blocks(block) for block in content]
    return content if all(new is old for new, old in zip(blocks, content, strict=True)) else blocks


def _result_in_blocks(block: Json) -> Json:
    if not isinstance(block, dict) or block.get("type") != "tool_result":
        return block
    inner = block.get("content")
    blocks = as_blocks(inner) if isinstance(inner, str) else inner
    return block if blocks is inner else block | {"content": blocks}


# --- opaque blocks ---------------------------------------------------------------------------------

#: Complete samples of the blocks that come before the call they led to.
THOUGHTS: tuple[JsonObject, ...] = (
    {"type": "thinking", "thinking": "First the files.", "signature": "c2lnbmVk"},
    {"type": "redacted_thinking", "data": "c2VhbGVk"},
)


class BlockParts(ThoughtParts):
    """Restores signed and redacted thinking."""

    SEALS: Mapping[str, str] = {"thinking": "signature", "redacted_thinking": "data"}

    def call_id(self, call: Json) -> str | None:
        """Return the id of a `tool_use` block."""
        if not isinstance(call, dict) or call.get("type") != "tool_use":
            return None
        identity = call.get("id")
        return identity if isinstance(identity, str) else ""

    def call_content(self, call: JsonObject) -> tuple[Json, Json]:
        """Return the name and the input."""
        return call.get("name"), call.get("input")

    def parts(self, members: Sequence[Json], model: str = "") -> dict[str, JsonText]:  # noqa: ARG002 - all models alike
        """Return the thinking of a message that must be remembered."""
        content = object_in(members[0]).get("content") if members else None
        return self._thoughts(content) if isinstance(content, list) else {}

    def restored(self, members: list[JsonObject], find: Find) -> list[JsonObject]:
        """Return the messages with the thinking that assistants' messages lack."""
        return [self._restored(each, find) if each.get("role") == "assistant" else each for each in members]

    def _restored(self, message: JsonObject, find: Find) -> JsonObject:
        content = message.get("content")
        if not isinstance(content, list):
            return message
        whole = self._with_thoughts(content, find)
        return message if whole is content else message | {"content": whole}

    def _is_own(self, block: JsonObject) -> bool:  # noqa: ARG002 - true for all blocks
        return True


# --- events that only add to one text --------------------------------------------------------------

TEXTS: Mapping[str, str] = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def _split(event: JsonObject) -> tuple[Place, str] | None:
    delta, index = event.get("delta"), event.get("index")
    if event.get("type") != "content_block_delta" or not isinstance(delta, dict) or not isinstance(index, int):
        return None
    kind = delta.get("type")
    text = delta.get(TEXTS[kind]) if isinstance(kind, str) and kind in TEXTS else None
    return ((cast(str, kind), index), text) if isinstance(text, str) and len(delta) == 2 else None


def _join(place: Place, text: str) -> JsonObject:
    kind, index = place
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, TEXTS[kind]: text}}


DELTAS = Deltas(split=_split, join=_join, endings=frozenset({"message_stop"}))

#: The window of one million tokens. All models newer than those in `without` have it, with or without the beta.
LONG_CONTEXT = LongContext(
    tokens=1_000_000,
    header=b"anthropic-beta",
    field="anthropic_beta",
    beta="context-1m-2025-08-07",
    suffix="[1m]",
    without=re.compile(r"claude-(?:[123]\b|instant)|haiku|opus-4(?:[-.@][015]\b|[-.@]20\d{6}|\[|$)"),
)

# --- compaction by Anthropic -----------------------------------------------------------------------

CACHE_MARK = "cache_control"
#: Beginnings of the types of edits with which the provider drops or replaces a part of the history.
SHORTENING = ("clear_tool_uses", "compact")


def _context_management(value: Json) -> Json:
    """Return the field without edits that shorten the history."""
    edits = value.get("edits") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(edits, list):
        return value
    left = [edit for edit in edits if not (isinstance(edit, dict) and str(edit.get("type")).startswith(SHORTENING))]
    return value | {"edits": left} if left else None


def _since_compaction(messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the messages from the last compaction on, with its text first, as a user message.

    The provider drops everything before such a block and reads its text instead:
    {"role": "assistant", "content": [{"type": "compaction", "content": "The user builds …"}, {"type": "text", …}]}
    """
    for at in range(len(messages) - 1, -1, -1):
        content = messages[at].get("content")
        blocks = content if isinstance(content, list) else []
        for place in range(len(blocks) - 1, -1, -1):
            block = blocks[place]
            text = block.get("content") if isinstance(block, dict) and block.get("type") == "compaction" else None
            if isinstance(block, dict) and isinstance(text, str) and text.strip():
                marked = {CACHE_MARK: block[CACHE_MARK]} if CACHE_MARK in block else {}
                message: JsonObject = {"role": "user", "content": [{"type": "text", "text": text, **marked}]}
                rest = blocks[place + 1 :]
                return [message, *([messages[at] | {"content": rest}] if rest else []), *messages[at + 1 :]]
    return messages


COMPACTION = Compaction(
    fields={"context_management": _context_management}, sign=b'"compaction"', read=_since_compaction
)


SERVER = ServerSide(
    maker="anthropic",
    title="Anthropic",
    long_context=LONG_CONTEXT,
    client_header=b"anthropic-version",
    counted=lambda tokens: {"input_tokens": tokens},
    allowances=anthropic_allowances,
    errors=Errors(body=_error_body, events=_error_events, overflow=_overflow),
    canonical=Canonical(form=_in_blocks, system=as_blocks),
    usage=UsageShape(
        prompt="input_tokens",
        output="output_tokens",
        beside=("cache_read_input_tokens", "cache_creation_input_tokens"),
        inner="message",
        known_by="type",
        whole=(b'"message"',),
        marks=(b"message_start", b"message_delta"),
    ),
    compaction=COMPACTION,
    opaque=BlockParts(),
    tool=TOOL,
)
