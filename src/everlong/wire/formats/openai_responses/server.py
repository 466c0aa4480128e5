"""Responses for a server: errors, the canonical form of an item, usage, opaque items."""

from collections.abc import Mapping, Sequence
from typing import cast

from everlong.core import Json, JsonObject, JsonText
from everlong.wire.formats.format import Deltas, Place
from everlong.wire.formats.hidden_tool import Event
from everlong.wire.formats.opaque import Find, ThoughtParts
from everlong.wire.formats.openai_errors import error_body, error_object, overflow_text
from everlong.wire.formats.openai_responses.compaction import COMPACTION
from everlong.wire.formats.openai_responses.exchange import WHOLE
from everlong.wire.formats.openai_responses.hidden_tool import TOOL, sendable
from everlong.wire.formats.openai_responses.items import CALLS, OUTPUTS
from everlong.wire.formats.openai_responses.messages import COMPACTIONS
from everlong.wire.formats.server import Canonical, Errors, Held, ServerSide, UsageShape

__all__ = ["DELTAS", "SERVER", "THOUGHTS", "ItemParts"]

# --- errors ----------------------------------------------------------------------------------------

#: The fields of a failed response besides its error.
FAILED_RESPONSE: Mapping[str, Json] = {
    "id": "resp_everlong",
    "object": "response",
    "created_at": 0,
    "status": "failed",
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": "",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": None,
}


def _error_events(status: int, kind: str, message: str, sequence: int) -> list[Event]:
    """Return an `error`, on which OpenAI's SDK raises, then a `response.failed`, which Codex waits for.

    The fields of the error are repeated next to it: OpenAI documents one form and sends the other.
    """
    error = error_object(status, kind, message)
    beside: JsonObject = {name: error[name] for name in ("code", "message", "param")}
    first: JsonObject = {"type": "error", "sequence_number": sequence, **beside, "error": error}
    response: JsonObject = {**FAILED_RESPONSE, "error": {name: error[name] for name in ("code", "message")}}
    last: JsonObject = {"type": "response.failed", "sequence_number": sequence + 1, "response": response}
    return [("error", first), ("response.failed", last)]


# --- the canonical form of an item -----------------------------------------------------------------


def _in_blocks(item: JsonObject) -> JsonObject:
    """Return the item with its text as a block, as OpenAI's own clients write it."""
    content = item.get("content")
    if isinstance(content, str) and content and item.get("role") in ("user", "system", "developer"):
        return item | {"content": [{"type": "input_text", "text": content}]}
    return item


def _compared(item: JsonObject) -> JsonObject:
    """Return the item for comparison: a message with its type, and a single text block as a string."""
    item = item if "type" in item or "role" not in item else item | {"type": "message"}
    content = item.get("content")
    block = content[0] if isinstance(content, list) and len(content) == 1 else None
    if isinstance(block, dict) and block.get("type") in ("input_text", "output_text"):
        return item | {"content": block.get("text")}
    return item


def _of_assistant(kind: str | None, role: str | None) -> bool:
    if kind in OUTPUTS or kind in COMPACTIONS:
        return False
    return role == "assistant" or (role is None and kind != "message")


# --- opaque items ----------------------------------------------------------------------------------

#: Complete samples of the items that come before the call they led to.
THOUGHTS: tuple[JsonObject, ...] = (
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbGVk"},
)


class ItemParts(ThoughtParts):
    """Restores encrypted reasoning."""

    SEALS: Mapping[str, str] = {"reasoning": "encrypted_content"}

    def call_id(self, call: Json) -> str | None:
        """Return the id of an item that is a call."""
        if not isinstance(call, dict) or str(call.get("type")) not in CALLS:
            return None
        identity = call.get("call_id")
        return identity if isinstance(identity, str) else ""

    def call_content(self, call: JsonObject) -> tuple[Json, Json]:
        """Return the name and the arguments of a call, by its kind."""
        return call.get("name"), call.get(CALLS[str(call["type"])].payload)

    def parts(self, members: Sequence[Json], model: str = "") -> dict[str, JsonText]:  # noqa: ARG002 - all models alike
        """Return the reasoning of an answer's items that must be remembered."""
        return self._thoughts(members)

    def restored(self, members: list[JsonObject], find: Find) -> list[JsonObject]:
        """Return the items with the reasoning that is missing."""
        whole = self._with_thoughts(cast("list[Json]", members), find)
        return members if whole is members else [item for item in whole if isinstance(item, dict)]

    def _is_own(self, block: JsonObject) -> bool:
        return block.get("type") == "reasoning" or block.get("role") == "assistant"


# --- events that only add to one text --------------------------------------------------------------

TEXTS = frozenset(
    {
        "response.function_call_arguments.delta",
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
    }
)


def _split(event: JsonObject) -> tuple[Place, str] | None:
    kind, text, index = event.get("type"), event.get("delta"), event.get("output_index")
    if not isinstance(kind, str) or kind not in TEXTS:
        return None
    return ((kind, index), text) if isinstance(text, str) and isinstance(index, int) else None


def _join(place: Place, text: str) -> JsonObject:
    return {"type": place[0], "output_index": place[1], "delta": text}


ENDINGS = frozenset({"response.completed", "response.incomplete", "response.failed"})
DELTAS = Deltas(split=_split, join=_join, endings=ENDINGS)

HELD = Held(
    previous="previous_response_id",
    conversation="conversation",
    store="store",
    answers="/responses",
    inputs="/input_items",
    conversations="/conversations",
    items="/items",
    output="output",
    whole=WHOLE,
    resent=sendable,
)

SERVER = ServerSide(
    maker="openai",
    title="OpenAI",
    client_base="/v1",
    text_message=lambda text: {"role": "user", "content": text},
    held=HELD,
    compaction=COMPACTION,
    errors=Errors(body=error_body, events=_error_events, overflow=overflow_text),
    canonical=Canonical(
        form=_in_blocks, compared=_compared, noise=frozenset({"id", "status"}), of_assistant=_of_assistant
    ),
    usage=UsageShape(
        prompt="input_tokens",
        output="output_tokens",
        total="total_tokens",
        details="input_tokens_details",
        inner="response",
        known_by="status",
        whole=(b'"completed"', b'"incomplete"'),
        marks=(b"response.completed", b"response.incomplete", b"response.failed"),
        repeats=True,
    ),
    opaque=ItemParts(),
    tool=TOOL,
)
