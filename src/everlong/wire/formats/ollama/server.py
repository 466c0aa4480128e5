"""Ollama's chat for a server: errors, the canonical form of a message, usage."""

from collections.abc import Sequence

from everlong.core import Json, JsonObject, JsonText, ref_of
from everlong.wire.fields import dump
from everlong.wire.formats.format import Deltas, Place
from everlong.wire.formats.hidden_tool import Event, object_in
from everlong.wire.formats.ollama.exchange import MADE
from everlong.wire.formats.ollama.hidden_tool import TOOL
from everlong.wire.formats.opaque import Find, OpaqueParts
from everlong.wire.formats.pairs import paired_after
from everlong.wire.formats.server import Canonical, Errors, ServerSide, UsageShape, writable

__all__ = ["DELTAS", "SERVER"]


class CallParts(OpaqueParts):
    """Restores nothing, because Ollama seals nothing. A call without an id is identified by its function."""

    def call_id(self, call: Json) -> str | None:
        """Return the id of an entry of `tool_calls`, otherwise one made from its function and arguments."""
        if not isinstance(call, dict):
            return None
        identity = call.get("id")
        if isinstance(identity, str) and identity and not identity.startswith(MADE):
            return identity
        return ref_of(dump([*self.call_content(call)]))

    def call_content(self, call: JsonObject) -> tuple[Json, Json]:
        """Return the name and the arguments."""
        function = object_in(call.get("function"))
        return function.get("name"), function.get("arguments")

    def parts(self, members: Sequence[Json], model: str = "") -> dict[str, JsonText]:  # noqa: ARG002 - see the class
        """Return nothing: the model does not need what clients drop."""
        return {}

    def restored(self, members: list[JsonObject], find: Find) -> list[JsonObject]:  # noqa: ARG002 - see the class
        """Return the messages unchanged."""
        return members


def _error_body(_status: int, _kind: str, message: str) -> JsonObject:
    return {"error": writable(message)}


def _error_events(status: int, kind: str, message: str, _sequence: int) -> list[Event]:
    return [("", _error_body(status, kind, message))]


def _overflow(limit: int | None, needed: int | None) -> str:
    """Return Ollama's message for a request that does not fit, with the figures as its runner words them."""
    words = "the input length exceeds the context length"
    if limit is None or needed is None:
        return f"{words}." if limit is None else f"{words} of {limit} tokens."
    return f"{words}: the request ({needed} tokens) exceeds the available context size ({limit} tokens)."


# --- the canonical form of a message ---------------------------------------------------------------


def _plain(message: JsonObject) -> JsonObject:
    """Return the message with its role in lower case, as the server reads it."""
    role = message.get("role")
    return message | {"role": role.lower()} if isinstance(role, str) and not role.islower() else message


# --- events that only add to one text --------------------------------------------------------------


def _split(event: JsonObject) -> tuple[Place, str] | None:
    message = event.get("message")
    if not isinstance(message, dict) or event.get("done") or event.get("error"):
        return None
    pieces = [(name, value) for name, value in message.items() if value and name != "role"]
    if len(pieces) != 1:
        return None
    name, value = pieces[0]
    return ((name, 0), value) if isinstance(value, str) and name in ("content", "thinking") else None


def _join(place: Place, text: str) -> JsonObject:
    return {"message": {"role": "assistant", place[0]: text}, "done": False}


DELTAS = Deltas(split=_split, join=_join)

SERVER = ServerSide(
    maker="ollama",
    title="Ollama",
    errors=Errors(body=_error_body, events=_error_events, overflow=_overflow),
    canonical=Canonical(form=_plain, noise=frozenset({"index"}), pair=paired_after),
    usage=UsageShape(
        field="",
        prompt="prompt_eval_count",
        output="eval_count",
        known_by="done",
        whole=(b"true",),
        marks=(b'"done":true', b'"done": true'),
    ),
    opaque=CallParts(),
    tool=TOOL,
)
