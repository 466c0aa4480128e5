"""Google's SDK: `types.Content`, as google-genai and the Agent Development Kit use it.

    Content(role="model", parts=[Part(function_call=FunctionCall(name="read", args={"path": "a.md"}))])

A content is the same as in a Gemini request, so the Gemini format reads and writes it. System text has its own field
there; in a list, it is a content with the role "system". Texts, parts and dicts, which the SDK accepts instead of
contents, are read too; changed ones are written as contents.
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
#: The SDK writes bytes in URL-safe base64, everyone else in standard base64. It reads both.
USUAL_ALPHABET = str.maketrans("-_", "+/")


def read(items: Sequence[Any]) -> list[Unit[Any]]:
    """Return each content as a separate unit. Calls and results without ids are paired over the whole list."""
    rows = [_row_of(item, at) for at, item in enumerate(items)]
    head = next((at for at, row in enumerate(rows) if row.get("role") != SYSTEM), len(rows))
    system = [_system_in(row) for row in rows[:head]]
    messages = GEMINI.read_messages([_seated(row) for row in rows[head:]])
    return [Unit((item,), (message,)) for item, message in zip(items, (*system, *messages), strict=True)]


def write(messages: Sequence[Message]) -> list[Any]:
    """Return new contents, with neighbours of one side joined as the provider requires."""
    from google.genai.types import Content  # noqa: PLC0415 - reading works without the SDK

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
    """Return a content as JSON, from any of the SDK's forms."""
    if isinstance(item, str):
        return {"role": "user", "parts": [{"text": item}]}
    if isinstance(item, dict):
        return cast(JsonObject, item)
    dump = getattr(item, "model_dump", None)
    if dump is None:
        raise WireError(f"a content cannot be a {type(item).__name__}", fmt=NAME, where=f"contents[{at}]")
    row = cast(JsonObject, dump(mode="json", exclude_none=True, by_alias=True, fallback=str))
    if type(item).__name__ == "Part":
        row = {"role": "user", "parts": [row]}
    parts = row.get("parts")
    return {**row, "parts": [_usual(part) for part in parts]} if isinstance(parts, list) else row


def _usual(part: Json) -> Json:
    """Return a part with its inline data in standard base64."""
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
    """Return the row; later system text, for which there is no place, becomes the user's."""
    return {**row, "role": "user"} if row.get("role") == SYSTEM else row


def join(items: list[Any]) -> list[Any]:
    """Return the contents with neighbours of one side joined into one, results first."""
    runs = [list(run) for _, run in groupby(items, key=_side)]
    if all(len(run) == 1 or _side(run[0]) == SYSTEM for run in runs):
        return items
    return [item for run in runs for item in (run if len(run) == 1 or _side(run[0]) == SYSTEM else [_joined(run)])]


def _side(item: Any) -> str:
    role = item.get("role") if isinstance(item, dict) else getattr(item, "role", None)
    return role if role in ("model", SYSTEM) else "user"


def _joined(run: list[Any]) -> Any:
    from google.genai.types import Content  # noqa: PLC0415 - reading works without the SDK

    rows = [Content.model_validate(_row_of(item, at)) for at, item in enumerate(run)]
    parts = [part for content in rows for part in content.parts or ()]
    return Content(role=_side(run[0]), parts=sorted(parts, key=lambda part: part.function_response is None))


#: Messages read here have Gemini as their origin, because that format knows what its provider accepts.
LIBRARY: Library[Any] = Library(
    name=NAME, packages=("google.genai",), read=read, write=write, fmt=GEMINI.name, join=join
)
