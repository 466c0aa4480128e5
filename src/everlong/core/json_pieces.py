"""Write JSON in bounded pieces: a JSON encoder blocks all other threads, and one giant text would block them for long.

Joined, the pieces equal the encoder's output for the whole value.
"""

from collections.abc import Callable, Iterator

from everlong.core.messages import Json

__all__ = ["LARGE", "write_json"]

#: Longer texts (in characters) and values (in bytes) are read and written in pieces of this size.
LARGE = 262_144

Write = Callable[[Json], bytes]


def write_json(
    value: Json, write: Write, *, comma: bytes = b",", colon: bytes = b":", ordered: bool = False
) -> Iterator[bytes]:
    """Yield the JSON of a value. `write` encodes small values: a text of up to `LARGE` characters, a name, a number."""
    if isinstance(value, str):
        yield from _text(value, write)
    elif isinstance(value, list):
        yield b"["
        for at, member in enumerate(value):
            if at:
                yield comma
            yield from write_json(member, write, comma=comma, colon=colon, ordered=ordered)
        yield b"]"
    elif isinstance(value, dict):
        yield b"{"
        for at, name in enumerate(sorted(value) if ordered else value):
            if at:
                yield comma
            yield write(name)
            yield colon
            yield from write_json(value[name], write, comma=comma, colon=colon, ordered=ordered)
        yield b"}"
    else:
        yield write(value)


def _text(text: str, write: Write) -> Iterator[bytes]:
    """Yield a text piece by piece. Each character is encoded independently, so the text can be cut anywhere."""
    if len(text) <= LARGE:
        yield write(text)
        return
    yield b'"'
    for at in range(0, len(text), LARGE):
        yield write(text[at : at + LARGE])[1:-1]
    yield b'"'
