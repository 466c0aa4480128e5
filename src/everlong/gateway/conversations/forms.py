"""How the bytes of a message become its canonical form, if that needs little parsing: field order, text blocks.

The messages of nearly every client need one of a few changes. The first read of a message records which one; later the
same bytes are changed in that way, without full parsing. A message that needs more, such as a part that the client
dropped and we put back, is READ each time.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec

from everlong.gateway.conversations.canonical import in_one_form
from everlong.gateway.request import Piece, encoded
from everlong.wire import Format

__all__ = ["CHANGES", "MARKED", "READ", "form_of", "in_form"]

#: Unchanged; fields sorted; text put into a block; a single block as text; the fields of each block sorted too; all
#: fields sorted; written again.
AS_IT_CAME, SORTED, IN_BLOCK, AS_TEXT, BLOCKS_SORTED, SORTED_DEEPLY, REWRITTEN, READ = range(8)
#: Added to a form: the client set a cache mark in the message.
MARKED = 0x80
BLOCK, BLOCK_END = b'[{"text":', b',"type":"text"}]'
LIST, TEXT = ord("["), ord('"')
TEXT_BLOCK = frozenset({"type", "text"})

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_blocks = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_any = msgspec.json.Decoder()


def form_of(format_: Format, raw: Piece, sent: bytes, order: list[int] | None = None) -> int:
    """Return the form that turns `raw` into `sent`; READ if no quick form does.

    `order` is the order in which forms are tried. A form that fits moves to the front, because a client writes all
    messages in the same way. Forms that decode everything stay last.
    """
    if bytes(raw) == sent:
        return AS_IT_CAME
    longer = len(sent) > len(raw)
    for at, form in enumerate(order or CHANGES):
        if longer and form in NEVER_LONGER:
            continue
        try:
            if in_form(format_, raw, form) == sent:
                if order and form < SORTED_DEEPLY:
                    order.insert(0, order.pop(at))
                return form
        except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, KeyError, TypeError):
            continue
    return READ


def in_form(format_: Format, raw: Piece, form: int) -> Piece:
    """Return the bytes of a message in the form that was recorded for it."""
    return raw if form == AS_IT_CAME else CHANGES[form](format_, raw)


@lru_cache(maxsize=1_024)
def _labels(names: tuple[str, ...]) -> tuple[tuple[str, bytes], ...]:
    """Return the field names of an object in order, each with the bytes that precede its value."""
    return tuple((name, (b"," if at else b"{") + encoded(name) + b":") for at, name in enumerate(sorted(names)))


def _written(fields: Mapping[str, Piece]) -> bytes:
    parts: list[Piece] = []
    for name, label in _labels(tuple(fields)):
        parts += (label, fields[name])
    parts.append(b"}")
    return b"".join(parts)


def _sorted(_: Format, raw: Piece) -> bytes:
    return _written(_object.decode(raw))


def _in_block(_: Format, raw: Piece) -> bytes:
    fields = _object.decode(raw)
    if memoryview(fields["content"])[0] != TEXT:
        raise ValueError("not a text")
    return _written({**fields, "content": b"".join((BLOCK, fields["content"], BLOCK_END))})


def _as_text(_: Format, raw: Piece) -> bytes:
    fields = _object.decode(raw)
    (block,) = _blocks.decode(fields["content"])
    if frozenset(block) != TEXT_BLOCK:
        raise ValueError("not a single text")
    return _written({**fields, "content": block["text"]})


def _blocks_sorted(_: Format, raw: Piece) -> bytes:
    """Move the fields of the message and of its blocks; their values stay bytes."""
    return _written(_with_sorted_blocks(_object.decode(raw)))


def _with_sorted_blocks(fields: dict[str, msgspec.Raw]) -> dict[str, Piece]:
    content = fields.get("content")
    if content is None or memoryview(content)[0] != LIST:
        return {**fields}
    blocks = [_written(_with_sorted_blocks(block)) for block in _blocks.decode(content)]
    return {**fields, "content": b"".join((b"[", b",".join(blocks), b"]"))}


def _sorted_deeply(format_: Format, raw: Piece) -> bytes:
    return msgspec.json.encode(format_.server.canonical.form(_any.decode(raw)), order="deterministic")


def _rewritten(format_: Format, raw: Piece) -> bytes:
    return encoded(in_one_form(format_, _any.decode(raw)))


#: Forms that only move or remove something.
NEVER_LONGER = frozenset({SORTED, AS_TEXT, BLOCKS_SORTED})
#: How a message is changed into each form, in the order to try them.
CHANGES: dict[int, Callable[[Format, Piece], bytes]] = {
    SORTED: _sorted,
    IN_BLOCK: _in_block,
    AS_TEXT: _as_text,
    BLOCKS_SORTED: _blocks_sorted,
    SORTED_DEEPLY: _sorted_deeply,
    REWRITTEN: _rewritten,
}
