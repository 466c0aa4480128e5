"""Chat Completions as clients speak it to a server of ours: errors, one form of a message, usage."""

from typing import cast

from everlong.core import Json, JsonObject
from everlong.wire.formats.format import Deltas, Place
from everlong.wire.formats.hidden_tool import Event
from everlong.wire.formats.openai_chat.hidden_tool import TOOL
from everlong.wire.formats.openai_chat.opaque import ChatParts
from everlong.wire.formats.openai_errors import error_body, overflow_text
from everlong.wire.formats.server import Canonical, Errors, ServerSide, UsageShape
from everlong.wire.framing import DONE

__all__ = ["DELTAS", "SERVER"]


def _error_events(status: int, kind: str, message: str, _sequence: int) -> list[Event]:
    return [("", error_body(status, kind, message)), ("", DONE)]


# --- one form of a message -------------------------------------------------------------------------


def _plain(message: JsonObject) -> JsonObject:
    """The message with text as a string, which old servers want, and calls without the numbers that streams give."""
    text = _lone_text(message.get("content"))
    message = message if text is None else message | {"content": text}
    return message | {"tool_calls": _unnumbered(message["tool_calls"])} if "tool_calls" in message else message


def _lone_text(content: Json) -> str | None:
    """The text of a content that is one plain block of it; a block with a cache mark is not plain."""
    block = content[0] if isinstance(content, list) and len(content) == 1 else None
    if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
        return None
    return cast(str, block["text"]) if block.keys() <= {"type", "text"} else None


def _unnumbered(calls: Json) -> Json:
    if not isinstance(calls, list):
        return calls
    return [_without_number(call) if isinstance(call, dict) else call for call in calls]


def _without_number(call: JsonObject) -> JsonObject:
    return {name: field for name, field in call.items() if name != "index"}


# --- events that hold nothing but more of one text -------------------------------------------------

OTHER_CHOICE: Place = ("choices", 1)  # of several answers to one chat the first is read
TEXTS = ("content", "reasoning_content", "reasoning")


def _split(event: JsonObject) -> tuple[Place, str] | None:
    choices = event.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or event.get("usage"):
        return None
    choice = choices[0]
    if isinstance(choice, dict) and choice.get("index"):
        return OTHER_CHOICE, ""
    if not isinstance(choice, dict) or choice.get("finish_reason") or choice.get("usage"):
        return None
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return None
    pieces = [(name, value) for name, value in delta.items() if value and name != "role"]
    if len(pieces) != 1:
        return None
    name, value = pieces[0]
    if isinstance(value, str) and name in TEXTS:
        return (name, 0), value
    return _split_arguments(value) if name == "tool_calls" else None


def _split_arguments(calls: Json) -> tuple[Place, str] | None:
    """More of the arguments of a call whose name is known."""
    call = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    if not isinstance(call, dict) or call.keys() != {"index", "function"}:
        return None
    index, function = call["index"], call["function"]
    if not isinstance(index, int) or not isinstance(function, dict) or function.keys() != {"arguments"}:
        return None
    more = function["arguments"]
    return (("arguments", index), more) if isinstance(more, str) else None


def _join(place: Place, text: str) -> JsonObject:
    name, index = place
    if place == OTHER_CHOICE:
        return {}
    delta: JsonObject = {name: text}
    if name == "arguments":
        delta = {"tool_calls": [{"index": index, "function": delta}]}
    return {"choices": [{"index": 0, "delta": delta}]}


DELTAS = Deltas(split=_split, join=_join)

SERVER = ServerSide(
    maker="openai",
    errors=Errors(body=error_body, events=_error_events, overflow=overflow_text),
    canonical=Canonical(form=_plain, noise=frozenset({"index"})),
    usage=UsageShape(
        prompt="prompt_tokens",
        output="completion_tokens",
        total="total_tokens",
        details="prompt_tokens_details",
        known_by="object",
        whole=(b'"chat.completion"',),
        marks=(b'"usage"', b"[DONE]"),
        frame=frozenset({"created", "id", "model", "object", "service_tier", "system_fingerprint"}),
    ),
    opaque=ChatParts(),
    tool=TOOL,
)
