"""Cache marks for a client that sends none: put into the few places that bear one, the other bytes left as they are.

Anthropic keeps nothing that no request has marked. A client that marks anything itself knows what it does: then
nothing is added.
"""

from collections.abc import Mapping, Sequence

from everlong.gateway.asking import Asked
from everlong.gateway.conversation import Spoken
from everlong.gateway.decoding import Piece, decoded, encoded, pieces_of_list, pieces_of_object
from everlong.wire import FIELD, marker, may_bear, tool_may_bear
from everlong.wire.anthropic_blocks import FORMAT

__all__ = ["marked_front", "marked_members", "marks_itself", "wants_marks"]

KEY = b'"%s"' % FIELD.encode()  # within a text its quotes would be escaped
SYSTEM = b'"system"'


def wants_marks(asked: Asked, spoken: Spoken) -> bool:
    """Whether there may be marks at all and the client has left them to others."""
    if asked.fmt != FORMAT or FIELD in asked.fields:
        return False
    front = any(KEY in bytes(asked.fields.get(name, b"")) for name in ("system", "tools"))
    return not front and all(unit.sent is unit.plain for unit in (*spoken.leading, *spoken.units))


def marks_itself(asked: Asked) -> bool:
    """Whether the client may have marked something: a quick look, before its messages are read."""
    return asked.fmt == FORMAT and KEY in asked.body


def marked_front(fields: Mapping[str, Piece], seconds: float) -> dict[str, bytes]:
    """The field in front of the messages with a mark at its end: the system text, else the tools."""
    system = bytes(fields.get("system", b"")).strip()
    if system[:1] == b'"' and may_bear({"type": "text", "text": decoded(system)}):
        system = b'[{"type":"text","text":%s}]' % system
    marked = _list_marked(system, seconds)
    if marked is not None:
        return {"system": marked}
    tools = _list_marked(bytes(fields.get("tools", b"")).strip(), seconds, tools=True)
    return {} if tools is None else {"tools": tools}


def marked_members(members: Sequence[bytes], places: Sequence[int], seconds: float) -> list[bytes]:
    """The messages with marks on those at the given places; who may bear none hands it on to the nearest before it."""
    marked = list(members)
    for place in places:
        for at in range(place, -1, -1):
            borne = marked[at] is not members[at] or _member_marked(members[at], seconds)
            if isinstance(borne, bytes):
                marked[at] = borne
            if borne:
                break
    return marked


def _member_marked(member: bytes, seconds: float) -> bytes | None:
    fields = dict(pieces_of_object(member))
    if bytes(fields.get("role", b"")) == SYSTEM:
        return None
    content = _list_marked(bytes(fields.get("content", b"")), seconds)
    if content is None:
        return None
    fields["content"] = content
    return b"{" + b",".join(encoded(name) + b":" + raw for name, raw in fields.items()) + b"}"


def _list_marked(raw: bytes, seconds: float, *, tools: bool = False) -> bytes | None:
    """A list of blocks, or of tools, whose last member that may bear a mark has one; None if there is none."""
    if raw[:1] != b"[":
        return None
    bears = tool_may_bear if tools else may_bear
    members = [bytes(piece) for piece in pieces_of_list(raw, "content")]
    last = next((at for at in range(len(members) - 1, -1, -1) if bears(decoded(members[at]))), None)
    if last is None:
        return None
    # The mark goes first, where its name would sort it, and no other byte is written again.
    members[last] = b"{%s:%s,%s" % (KEY, encoded(marker(seconds)), members[last].lstrip()[1:])
    return b"[" + b",".join(members) + b"]"
