"""Google's SDK: `types.Content`, as google-genai and the Agent Development Kit use it.

    Content(role="model", parts=[Part(function_call=FunctionCall(name="read", args={"path": "a.md"}))])

A content says what the same object says in a Gemini request, so the Gemini format reads and writes it. System text has
a field of its own there; in a list it is a content of the role "system". Texts, parts and dicts, which the SDK takes
in place of contents, are read too; what was changed comes back as contents.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, cast

from everlong.core import Json, JsonObject, Message, Role, head_length
from everlong.errors import WireError
from everlong.wire.document import Document
from everlong.wire.formats import GEMINI
from everlong.wire.libraries.library import Library, Unit

__all__ = ["LIBRARY", "write_rows"]

NAME = "google-genai"
SYSTEM = "system"
#: The SDK writes bytes in the alphabet for addresses, the rest of the world in the usual one. It reads both.
USUAL_ALPHABET = str.maketrans("-_", "+/")


def read(items: Sequence[Any]) -> list[Unit[Any]]:
    """Return each content as a unit of its own; calls and results without ids are paired over the whole list."""
    rows = [_row_of(item, at) for at, item in enumerate(items)]
    head = next((at for at, row in enumerate(rows) if row.get("role") != SYSTEM), len(rows))
    system = [_system_in(row) for row in rows[:head]]
    messages = GEMINI.read_messages([_seated(row) for row in rows[head:]])
    return [Unit((item,), (message,)) for item, message in zip(items, (*system, *messages), strict=True)]


def write(messages: Sequence[Message]) -> list[Any]:
    """Return new contents, with neighbours of one side as the provider wants them."""
    from google.genai.types import Content  # noqa: PLC0415 - read is of use without the SDK

    return [Content.model_validate(row) for row in write_rows(messages)]


def write_rows(messages: Sequence[Message]) -> list[JsonObject]:
    """Return contents as dicts, for `Content.model_validate`."""
    head = head_length(messages)
    rows: list[JsonObject] = []
    for message in messages[:head]:
        rows += [{**row, "role": SYSTEM} for row in GEMINI.write_message(_as_user(message))]
    body = GEMINI.write_body(Document(fmt=GEMINI.name, messages=tuple(messages[head:])))
    return [*rows, *cast("list[JsonObject]", body["contents"])]


# --- rows of a Gemini request ------------------------------------------------------------------


def _row_of(item: Any, at: int) -> JsonObject:
    """The content as JSON, whichever of the SDK's forms it has."""
    if isinstance(item, str):
        return {"role": "user", "parts": [{"text": item}]}
    if isinstance(item, dict):
        return cast(JsonObject, item)
    dump = getattr(item, "model_dump", None)
    if dump is None:
        raise WireError(f"a content is no {type(item).__name__}", fmt=NAME, where=f"contents[{at}]")
    row = cast(JsonObject, dump(mode="json", exclude_none=True, by_alias=True, fallback=str))
    if type(item).__name__ == "Part":
        row = {"role": "user", "parts": [row]}
    parts = row.get("parts")
    return {**row, "parts": [_usual(part) for part in parts]} if isinstance(parts, list) else row


def _usual(part: Json) -> Json:
    """A part with its bytes in the usual alphabet; those of pictures are looked into, others are not touched."""
    if not isinstance(part, dict):
        return part
    blob, response = part.get("inlineData"), part.get("functionResponse")
    if isinstance(blob, dict) and isinstance(blob.get("data"), str):
        return {**part, "inlineData": {**blob, "data": cast(str, blob["data"]).translate(USUAL_ALPHABET)}}
    nested = response.get("parts") if isinstance(response, dict) else None
    if isinstance(response, dict) and isinstance(nested, list):
        return {**part, "functionResponse": {**response, "parts": [_usual(inner) for inner in nested]}}
    return part


def _system_in(row: JsonObject) -> Message:
    message = GEMINI.read_message({**row, "role": "user"})
    return Message(Role.SYSTEM, message.parts, origin=message.origin, extra=message.extra)


def _as_user(message: Message) -> Message:
    return Message(Role.USER, message.parts, origin=message.origin, extra=message.extra)


def _seated(row: JsonObject) -> JsonObject:
    """System text that comes later has no place there: it is said by the user."""
    return {**row, "role": "user"} if row.get("role") == SYSTEM else row


def join(items: list[Any]) -> list[Any]:
    """Return contents of which no two neighbours are of one side: where they are, one content, results first."""
    runs = [list(run) for _, run in groupby(items, key=_side)]
    if all(len(run) == 1 or _side(run[0]) == SYSTEM for run in runs):
        return items
    return [item for run in runs for item in (run if len(run) == 1 or _side(run[0]) == SYSTEM else [_joined(run)])]


def _side(item: Any) -> str:
    role = item.get("role") if isinstance(item, dict) else getattr(item, "role", None)
    return role if role in ("model", SYSTEM) else "user"


def _joined(run: list[Any]) -> Any:
    from google.genai.types import Content  # noqa: PLC0415 - read is of use without the SDK

    rows = [Content.model_validate(_row_of(item, at)) for at, item in enumerate(run)]
    parts = [part for content in rows for part in content.parts or ()]
    return Content(role=_side(run[0]), parts=sorted(parts, key=lambda part: part.function_response is None))


#: What is read has the origin of the format, which knows what its provider takes.
LIBRARY: Library[Any] = Library(
    name=NAME, packages=("google.genai",), read=read, write=write, fmt=GEMINI.name, join=join
)
