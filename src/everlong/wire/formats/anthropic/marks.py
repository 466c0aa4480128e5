"""Cache marks of Anthropic Messages: `cache_control` on a block asks the provider to cache everything up to it.

    {"type": "text", "text": "…", "cache_control": {"type": "ephemeral"}}

This module knows where marks are allowed and how many; the caller chooses the places. Marks are not part of the
content: the provider compares prefixes without them, so they may move from request to request.
"""

from collections.abc import Iterable, Iterator
from typing import cast

from everlong.core import Json, JsonObject

__all__ = ["FIELD", "MOST", "keep_allowed", "marker", "may_bear", "tool_may_bear", "with_marks", "without_marks"]

FIELD = "cache_control"
MOST = 4  # marks in a request; a fifth is refused
SHORT = 300  # seconds that a mark lasts by default
#: Blocks that may have a mark; thinking blocks and unknown ones may not.
BEARERS = ("document", "image", "text", "tool_result", "tool_use")
#: The roles whose messages may have a mark; system messages in the list are too new to rely on.
ROLES = ("user", "assistant")


def marker(seconds: float) -> JsonObject:
    """Return a mark for a cache that should live this long: five minutes, or one hour, which costs more to write."""
    return {"type": "ephemeral", "ttl": "1h"} if seconds > SHORT else {"type": "ephemeral"}


def may_bear(block: Json) -> bool:
    """Whether a block of a message or of the system text may have a mark; blank text may not."""
    if not isinstance(block, dict) or block.get("type") not in BEARERS:
        return False
    text = block.get("text")
    return block["type"] != "text" or (isinstance(text, str) and bool(text.strip()))


def tool_may_bear(tool: Json) -> bool:
    """Whether a tool may have a mark: it has a name and is not loaded only on demand."""
    return isinstance(tool, dict) and bool(tool.get("name")) and not tool.get("defer_loading")


def with_marks(body: JsonObject, places: Iterable[int], mark: JsonObject) -> JsonObject:
    """Return the body with only our own marks: one before the messages, and on the messages at these places.

    Before the messages, the mark is on the last block of the system text, which also covers the tools; without system
    text, on the last tool. If a message may not have a mark, the nearest one before it gets it. Text becomes a block,
    marked or not, so that a message has the same bytes wherever the marks are.
    """
    bare = without_marks(body)
    messages = [_in_blocks(message) for message in _list(bare.get("messages"))]
    for place in places:
        at = next((at for at in range(place, -1, -1) if _bears(messages[at])), None)
        if at is not None:
            message = cast(JsonObject, messages[at])
            messages[at] = message | {"content": _last_marked(cast("list[Json]", message["content"]), mark)}
    return bare | _front_marked(bare, mark) | {"messages": messages}


def without_marks(body: JsonObject) -> JsonObject:
    """Return the body without marks, as the provider compares it."""
    bare = {name: field for name, field in body.items() if name != FIELD}
    for name in ("system", "tools"):
        if isinstance(bare.get(name), list):
            bare[name] = [_bare(member) for member in _list(bare[name])]
    if isinstance(bare.get("messages"), list):
        bare["messages"] = [_bare(message) for message in _list(bare["messages"])]
    return bare


def keep_allowed(body: JsonObject) -> JsonObject:
    """Drop marks that the provider would refuse: those in wrong places, and all but the last few. Changes the body.

    Clients move their marks, so a long stored history may have one in every message. Marks on tools and on the request
    itself count too, and are the last to go.
    """
    messages = [message for message in _list(body.get("messages")) if isinstance(message, dict)]
    for message in messages:
        message.pop(FIELD, None)
    contents = [body.get("system"), *(message.get("content") for message in messages)]
    marked = [block for content in contents for block in _marked_in(content)]
    tools = [tool for tool in _list(body.get("tools")) if isinstance(tool, dict) and tool.get(FIELD)]
    room = MOST - bool(body.get(FIELD))
    for tool in tools[:-room]:
        del tool[FIELD]
    allowed = [block for block in marked if may_bear(block) and _is_mark(block[FIELD])]
    allowed = allowed[-room + len(tools) :] if room > len(tools) else []
    for block in marked:
        if not any(block is one for one in allowed):
            del block[FIELD]
    return body


def _front_marked(body: JsonObject, mark: JsonObject) -> JsonObject:
    system = cast(JsonObject, _in_blocks({"content": body.get("system")}))["content"]
    if isinstance(system, list) and any(map(may_bear, system)):
        return {"system": _last_marked(system, mark)}
    tools = _list(body.get("tools"))
    last = max((at for at, tool in enumerate(tools) if tool_may_bear(tool)), default=None)
    if last is None:
        return {}
    return {"tools": [*tools[:last], cast(JsonObject, tools[last]) | {FIELD: mark}, *tools[last + 1 :]]}


def _last_marked(blocks: list[Json], mark: JsonObject) -> list[Json]:
    last = max(at for at, block in enumerate(blocks) if may_bear(block))
    return [*blocks[:last], cast(JsonObject, blocks[last]) | {FIELD: mark}, *blocks[last + 1 :]]


def _bears(message: Json) -> bool:
    return isinstance(message, dict) and message.get("role") in ROLES and any(map(may_bear, _list(message["content"])))


def _in_blocks(message: Json) -> Json:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, str) or not content:
        return message
    return message | {"content": [{"type": "text", "text": content}]}


def _bare(value: Json) -> Json:
    """Return a message, a block or a tool without its marks. The arguments of calls are not searched."""
    if not isinstance(value, dict):
        return value
    content = value.get("content")
    if isinstance(content, list):
        value = value | {"content": [_bare(block) for block in content]}
    return {name: field for name, field in value.items() if name != FIELD} if FIELD in value else value


def _marked_in(content: Json) -> Iterator[JsonObject]:
    for block in _list(content):
        if isinstance(block, dict):
            if FIELD in block:
                yield block
            if block.get("type") == "tool_result":
                yield from _marked_in(block.get("content"))


def _is_mark(mark: Json) -> bool:
    return isinstance(mark, dict) and mark.get("type") == "ephemeral"


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
