"""The prompt sizes that a client is told: steady, never absurd, and all other bytes as they came.

An upstream counts what it was sent; a client whose history was shortened on the way may be told its own size instead.
Only prompt figures, and what is derived of them, are written anew; an event without usage passes untouched.
"""

from dataclasses import dataclass

import msgspec

from everlong.wire import UsageShape

__all__ = ["PromptSizes", "UsageRewriter", "rewritten_body"]

MOST = 1 << 40  # tokens; anything above is no count
FAR = 2  # windows; an accepted prompt above is no prompt of one call
FEW = 4  # times smaller than the estimate: a placeholder, or only what was not cached
SLACK = 2_000  # tokens; small estimates are too uncertain to doubt a figure
LONGEST_LINE = 64 * 1024  # bytes of a line that is held back until it is whole
START = 512  # bytes of such a line that tell what it is
LONGEST_LAST = 4 * 1024 * 1024  # bytes of a line that carries usage and repeats the whole answer
USAGE, NO_USAGE = b'"usage"', b'"usage":null'  # the second in each chunk of a chat but the last
PIECE = b'"delta"'  # one in each chunk of a chat that holds a piece of the answer, most often one token
CACHED = "cached_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSizes:
    """What is known of a request's size, in tokens.

    `added` is the client's own size less the one sent; 0 tells the sent size. `window` bounds what is told, 0 where it
    is not known. `prompt` is the estimate of what was sent, 0 where there is none; it stands in for figures that are
    absurd, and for missing ones if the client `asked` for usage.
    """

    added: int = 0
    window: int = 0
    prompt: int = 0
    asked: bool = False

    def told(self, said: int) -> int:
        """The prompt size to tell where the upstream said so much; 0 is nothing.

        Example: added 40 000, window 128 000: 20 000 -> 60 000, 120 000 -> 128 000
        """
        if said == 0 and not (self.asked and self.prompt):
            return 0
        size = said if self.believes(said) else self.prompt
        size = max(0, size + self.added)
        return min(size, self.window) if self.window else size

    def believes(self, said: int) -> bool:
        """Whether it can be the size of one prompt, this one."""
        few = self.prompt and said * FEW < self.prompt - SLACK
        return 0 < said < MOST and not few and (not self.window or said <= FAR * self.window)


_Fields = dict[str, msgspec.Raw]
_FIELDS = msgspec.json.Decoder(_Fields)
_NUMBER = msgspec.json.Decoder(int | float | None)


def rewritten_body(shape: UsageShape, body: bytes, figures: PromptSizes) -> bytes:
    """Return a whole answer with the figures to tell; the same bytes where there is nothing to change."""
    return body if figures == PromptSizes() else _rewritten(shape, body, figures)


class UsageRewriter:
    """The same for a stream: feed it chunks, it gives what to hand on. Holds back a line that is not whole, no more."""

    def __init__(self, shape: UsageShape, figures: PromptSizes) -> None:
        self._shape = shape
        self._figures = figures
        self._idle = figures == PromptSizes()
        self._held: list[bytes] = []
        self._size = 0  # bytes held
        self._longest = LONGEST_LINE
        self._raw = False  # inside a line that is handed on as it comes
        self._adding = _Adding(shape, figures) if shape.frame and figures.asked and figures.prompt else None

    def feed(self, chunk: bytes) -> bytes:
        """What can be handed on now."""
        if self._idle or self._passes(chunk):
            return chunk
        if b"\n" not in chunk and b"\r" not in chunk:
            return self._kept(chunk)
        lines = b"".join([*self._held, chunk]).splitlines(keepends=True)
        self._held, self._size = [], 0
        rest = b"" if lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        first = lines.pop(0) if self._raw else b""
        self._raw = False
        return b"".join([first, *map(self._line, lines), self._kept(rest)])

    def close(self) -> bytes:
        """What was held back, at the end of the stream."""
        held, self._held, self._size = b"".join(self._held), [], 0
        return self._line(held)

    def _passes(self, chunk: bytes) -> bool:
        """Whether it is whole lines of which none carries usage: most chunks are."""
        if self._held or self._raw or not chunk.endswith(b"\n"):
            return False
        for mark in self._shape.marks:
            if mark in chunk and not (mark is USAGE and chunk.count(USAGE) == chunk.count(NO_USAGE)):
                return False
        return self._adding is None or self._adding.knows(chunk)

    def _kept(self, rest: bytes) -> bytes:
        """Hold back the part of a line; one that grows too long is handed on instead."""
        if self._raw or not rest:
            return rest
        self._held.append(rest)
        self._size += len(rest)
        if self._size <= self._longest or self._is_last():
            return b""
        rest, self._held, self._size = b"".join(self._held), [], 0
        self._raw, self._longest = True, LONGEST_LINE
        return rest

    def _is_last(self) -> bool:
        """Whether the line is the last event of an answer, which repeats all of it before its usage."""
        start = b"".join(self._held)[:START] if self._shape.repeats else b""
        if any(mark in start for mark in self._shape.marks):
            self._longest = LONGEST_LAST
        return self._size <= self._longest

    def _line(self, line: bytes) -> bytes:
        """A whole line, with its figures."""
        marked = any(mark in line for mark in self._shape.marks)
        if line.startswith(b"event:") and self._shape.repeats:
            self._longest = LONGEST_LAST if marked else LONGEST_LINE
        if not line.startswith(b"data:"):
            return line
        self._longest = LONGEST_LINE
        data = line[5:].strip()
        before = b"" if self._adding is None else self._adding.before(data)
        if not marked or not data.startswith(b"{"):
            return before + line
        told = _rewritten(self._shape, data, self._figures)
        return before + (line if told is data else line.replace(data, told, 1))


class _Adding:
    """The chunk of usage that a chat should have ended with, where its client asked and the upstream sent none."""

    def __init__(self, shape: UsageShape, figures: PromptSizes) -> None:
        self._shape = shape
        self._figures = figures
        self._frame: _Fields | None = None
        self._pieces = 0
        self._needed = True

    def knows(self, chunk: bytes) -> bool:
        """Whether it has seen how chunks are framed; then it only counts the pieces of this one."""
        if self._frame is not None:
            self._pieces += chunk.count(PIECE)
        return self._frame is not None

    def before(self, data: bytes) -> bytes:
        """What to put before an event: nothing, but for the end of a chat without usage."""
        if data != b"[DONE]":
            self._pieces += data.count(PIECE)
            self._frame = _fields(data) if self._frame is None else self._frame
            self._needed = self._needed and not _usage_of(_fields(data) if USAGE in data else None)
            return b""
        if not self._needed:
            return b""
        self._needed = False
        usage = _estimated(self._shape, self._figures, self._pieces)
        frame = {name: raw for name, raw in (self._frame or {}).items() if name in self._shape.frame}
        return b"data: " + msgspec.json.encode(frame | {"choices": [], "usage": usage}) + b"\n\n"


def _rewritten(shape: UsageShape, data: bytes, figures: PromptSizes) -> bytes:
    """An answer or an event with the figures to tell; the very same object where there is nothing to change."""
    event = _fields(data)
    inner = shape.inner if event is not None and shape.inner in event else ""
    holder = _fields(event[inner]) if event is not None and inner else event
    if event is None or holder is None:
        return data
    whole = bytes(holder.get(shape.known_by, b"")) in shape.whole
    usage = _usage_of(holder)
    new: _Fields | None = None
    if usage and (whole or any(name in usage for name in (shape.prompt, *shape.beside))):
        new = _told(shape, usage, figures)
    elif whole and figures.asked and figures.prompt:
        new = _estimated(shape, figures, 0)
    if new is None:
        return data
    changed = {**holder, "usage": new}
    return msgspec.json.encode({**event, inner: changed} if inner else changed)


def _told(shape: UsageShape, usage: _Fields, figures: PromptSizes) -> _Fields | None:
    """The usage to tell; None where it is the same."""
    prompt, output = _count(usage.get(shape.prompt)), _count(usage.get(shape.output))
    beside = [_count(usage.get(name)) for name in shape.beside]
    said = -1 if min(prompt, *beside, 0) < 0 else prompt + sum(beside)
    told, new = figures.told(said), dict(usage)
    if told != said:
        keeps = figures.believes(said) and (not figures.window or sum(beside) <= figures.window)
        new |= {} if keeps else {name: _raw(0) for name in shape.beside if name in usage}
        new[shape.prompt] = _raw(max(0, told - sum(beside)) if keeps else told)
        _cap_details(shape, new, _count(new[shape.prompt]))
    if output < 0 or (figures.window and output > FAR * figures.window):
        output = 0
        new[shape.output] = _raw(0)
    if shape.total in usage and new != usage:
        new[shape.total] = _raw(_count(new.get(shape.prompt)) + _rest(_count(usage[shape.total]), said, output))
    return new if new != usage else None


def _rest(total: int, prompt: int, output: int) -> int:
    """What a total holds besides the prompt: the output, and what a server counts beside it."""
    return total - prompt if prompt > 0 and output <= total - prompt <= FAR * output else output


def _cap_details(shape: UsageShape, usage: _Fields, prompt: int) -> None:
    """Cached tokens are part of the prompt: never more than it."""
    details = _fields(usage[shape.details]) if shape.details in usage else None
    if details is not None and not 0 <= _count(details.get(CACHED)) <= prompt:
        usage[shape.details] = msgspec.Raw(msgspec.json.encode(details | {CACHED: _raw(prompt)}))


def _estimated(shape: UsageShape, figures: PromptSizes, output: int) -> _Fields:
    """Usage where the upstream reports none."""
    prompt = figures.told(0)
    usage = {shape.prompt: _raw(prompt), shape.output: _raw(output)}
    return usage | ({shape.total: _raw(prompt + output)} if shape.total else {})


def _usage_of(holder: _Fields | None) -> _Fields | None:
    return _fields(holder["usage"]) if holder is not None and "usage" in holder else None


def _fields(data: bytes | msgspec.Raw) -> _Fields | None:
    """An object, its values as they stand; None for anything else."""
    try:
        return _FIELDS.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _count(raw: msgspec.Raw | None) -> int:
    """A count of tokens, 0 for none, -1 for what cannot be one."""
    try:
        number = 0 if raw is None else _NUMBER.decode(raw) or 0
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return -1
    return int(number) if 0 <= number < MOST else -1


def _raw(number: int) -> msgspec.Raw:
    return msgspec.Raw(str(number).encode())
