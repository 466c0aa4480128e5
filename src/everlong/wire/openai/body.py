"""What stands around the messages in an OpenAI request body: the model, the tools, every other field."""

from everlong.core import Json, JsonObject, JsonText
from everlong.errors import WireError
from everlong.wire.document import Document
from everlong.wire.fields import dump, load, unpack
from everlong.wire.openai.shapes import settle

__all__ = ["fields_of", "settings_of", "take_list", "take_tools"]


def fields_of(raw: Json, key: str, fmt: str) -> JsonObject:
    """The fields of a body; a bare list is a body with nothing else in it."""
    if isinstance(raw, list):
        return {key: raw}
    if isinstance(raw, dict):
        return dict(raw)
    raise WireError(f"a request is an object or a list, not {type(raw).__name__}", fmt=fmt)


def take_list(fields: JsonObject, key: str, fmt: str) -> list[Json]:
    """The list under `key`, taken out."""
    if key not in fields:
        raise WireError(f"no {key}", fmt=fmt, where=key)
    found = fields.pop(key)
    if not isinstance(found, list):
        raise WireError(f"{key} is a list, not {type(found).__name__}", fmt=fmt, where=key)
    return found


def take_tools(fields: JsonObject) -> tuple[JsonText, ...]:
    """The tool schemas, taken out; anything but a filled list stays where it is."""
    tools = fields.get("tools")
    if not isinstance(tools, list) or not tools:
        return ()
    del fields["tools"]
    return tuple(dump(tool) for tool in tools)


def settings_of(document: Document, fmt: str) -> tuple[JsonObject, JsonObject]:
    """Every field of the body but the messages, and the hints; of another format only the model is passed on."""
    if document.fmt != fmt:
        return ({"model": document.model} if document.model else {}), {}
    fields, shape = unpack(document.extra)
    written: JsonObject = {"model": document.model} if document.model else {}
    if document.tools:
        written["tools"] = [load(tool) for tool in document.tools]
    return settle(written, fields, {}), shape
