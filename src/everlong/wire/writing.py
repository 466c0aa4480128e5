"""A `Document` back to JSON or bytes, in its own format. What was not changed is written as it was read."""

import json
from dataclasses import replace
from typing import cast

from everlong.core import History, Json, JsonObject
from everlong.errors import WireError
from everlong.wire.document import Document
from everlong.wire.reading import BODY_FORMATS, LIST_FIELD, SESSION_FORMATS
from everlong.wire.sessions import chatbox

__all__ = ["value_of", "with_messages", "write"]

#: Ends of a line to some programs, though not to JSON; inside a file of lines they would tear a record.
LINE_ENDS = {sign: f"\\u{ord(sign):04x}" for sign in "\x85\u2028\u2029"}


def with_messages(document: Document, messages: History) -> Document:
    """The same document with another conversation in it."""
    return replace(document, messages=messages)


def value_of(document: Document) -> Json:
    """A request body again; a session as the list of its records."""
    if document.fmt in SESSION_FORMATS:
        return cast(Json, SESSION_FORMATS[document.fmt].render_document(document))
    if document.fmt == chatbox.FORMAT:
        return cast(Json, chatbox.render_body(document))
    body = cast(JsonObject, BODY_FORMATS[document.fmt].render_body(document))
    field = LIST_FIELD[document.fmt]
    # A list alone has no place for system text; where there is some, the body around it must come along.
    return body[field] if document.bare and body.keys() <= {field} else body


def write(document: Document) -> bytes:
    """The file: one JSON document, or one record a line where it was read so."""
    value = value_of(document)
    in_lines = document.lines or (document.fmt in SESSION_FORMATS and not document.bare)
    try:
        if in_lines and isinstance(value, list):
            return b"".join(_written(record) for record in value)
        return _written(value, indent=2)
    except RecursionError:
        raise WireError("nested too deeply to be written", fmt=document.fmt) from None


def _written(value: Json, indent: int | None = None) -> bytes:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    for sign, escape in LINE_ENDS.items():
        text = text.replace(sign, escape)
    # Half of a surrogate pair cannot be written as UTF-8; the escape that this gives is JSON's own.
    return text.encode("utf-8", "backslashreplace") + b"\n"
