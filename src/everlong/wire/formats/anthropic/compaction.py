"""Compaction by Anthropic: fields that ask for it, and blocks that stand for everything before them.

    {"role": "assistant", "content": [{"type": "compaction", "content": "The user builds …"}, {"type": "text", …}]}

The provider drops what comes before such a block and reads its text instead. So do we: the text becomes a message of
the user at the beginning, which every provider understands and which can be shortened like any other.
"""

from collections.abc import Sequence

from everlong.core import Json, JsonObject
from everlong.wire.formats.server import Compaction

__all__ = ["COMPACTION"]

#: How the types of edits begin by which the provider drops or replaces a part of the history.
SHORTENING = ("clear_tool_uses", "compact")
FIELD = "cache_control"


def _context_management(value: Json) -> Json:
    """The field without edits that shorten the history."""
    edits = value.get("edits") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(edits, list):
        return value
    left = [edit for edit in edits if not (isinstance(edit, dict) and str(edit.get("type")).startswith(SHORTENING))]
    return value | {"edits": left} if left else None


def _since_compaction(messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """The messages from the last compaction on, its text first."""
    for at in range(len(messages) - 1, -1, -1):
        content = messages[at].get("content")
        blocks = content if isinstance(content, list) else []
        for place in range(len(blocks) - 1, -1, -1):
            block = blocks[place]
            text = block.get("content") if isinstance(block, dict) and block.get("type") == "compaction" else None
            if isinstance(block, dict) and isinstance(text, str) and text.strip():
                marked = {FIELD: block[FIELD]} if FIELD in block else {}
                told: JsonObject = {"role": "user", "content": [{"type": "text", "text": text, **marked}]}
                rest = blocks[place + 1 :]
                return [told, *([messages[at] | {"content": rest}] if rest else []), *messages[at + 1 :]]
    return messages


COMPACTION = Compaction(
    fields={"context_management": _context_management}, sign=b'"compaction"', read=_since_compaction
)
