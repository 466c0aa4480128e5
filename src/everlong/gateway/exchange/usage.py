"""Rewrites the usage that a client gets: steady, plausible prompt sizes; all other bytes stay unchanged.

An upstream counts what it received; a client whose history was shortened on the way may get its own size instead. Only
prompt figures, and figures derived from them, are rewritten; an event without usage is unchanged.
"""

from dataclasses import dataclass

import msgspec

from everlong.wire import UsageShape

__all__ = ["PromptSizes", "UsageRewriter", "rewritten_body"]

MAX_COUNT = 1 << 40  # tokens; a larger number is not a count
FAR = 2  # windows; an accepted prompt cannot be larger
FEW = 4  # times smaller than the estimate: a placeholder, or only the uncached part
SLACK = 2_000  # tokens; small estimates are too uncertain to doubt a figure
LONGEST_LINE = 64 * 1024  # bytes of a line that is held back until it is complete
START = 512  # bytes at its beginning that show what it is
LONGEST_LAST = 4 * 1024 * 1024  # bytes of a line that has usage and repeats the whole answer
USAGE, NO_USAGE = b'"usage"', b'"usage":null'  # the second is in each chunk of a chat but the last
PIECE = b'"delta"'  # once in each chunk of a chat with a piece of the answer, usually one token
CACHED = "cached_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSizes:
    """What is known of a request's size, in tokens.

    `added` is the client's own size minus the sent size; with 0, the sent size is reported. `window` limits what is
    reported; 0 if it is unknown. `prompt` is the estimate of what was sent, 0 if there is none; it replaces absurd
    figures, and missing ones if the client `wants` usage.
    """

    added: int = 0
    window: int = 0
    prompt: int = 0
    wants: bool = False

    def reported(self, counted: int) -> int:
        """Return the prompt size to report for the upstream's count; 0 if it counted nothing.

        Example: added 40 000, window 128 000: 20 000 -> 60 000, 120 000 -> 128 000
        """
        if counted == 0 and not (self.wants and self.prompt):
            return 0
        size = counted if self.plausible(counted) else self.prompt
        size = max(0, size + self.added)
        return min(size, self.window) if self.window else size

    def plausible(self, counted: int) -> bool:
        """Whether a count can be this prompt's size."""
        few = self.prompt and counted * FEW < self.prompt - SLACK
        return 0 < counted < MAX_COUNT and not few and (not self.window or counted <= FAR * self.window)


_Fields = dict[str, msgspec.Raw]
_FIELDS = msgspec.json.Decoder(_Fields)
_NUMBER = msgspec.json.Decoder(int | float | None)


def rewritten_body(shape: UsageShape, body: bytes, sizes: PromptSizes) -> bytes:
    """Return a whole answer with its usage rewritten; the same bytes if there is nothing to change."""
    return body if sizes == PromptSizes() else _rewritten(shape, body, sizes)


class UsageRewriter:
    """Rewrites a stream: takes chunks and returns what to forward. Holds back only an incomplete line."""

    def __init__(self, shape: UsageShape, sizes: PromptSizes) -> None:
        self._shape = shape
        self._sizes = sizes
        self._idle = sizes == PromptSizes()
        self._held: list[bytes] = []
        self._size = 0  # bytes held
        self._longest = LONGEST_LINE
        self._raw = False  # inside a line that is forwarded unchanged
        self._missing = _MissingUsage(shape, sizes) if shape.frame and sizes.wants and sizes.prompt else None

    def feed(self, chunk: bytes) -> bytes:
        """Return what can be forwarded now."""
        if self._idle or self._passes(chunk):
            return chunk
        if b"\n" not in chunk and b"\r" not in chunk:
            return self._hold(chunk)
        lines = b"".join([*self._held, chunk]).splitlines(keepends=True)
        self._held, self._size = [], 0
        rest = b"" if lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        first = lines.pop(0) if self._raw else b""
        self._raw = False
        return b"".join([first, *map(self._line, lines), self._hold(rest)])

    def close(self) -> bytes:
        """Return what was held back, at the end of the stream."""
        held, self._held, self._size = b"".join(self._held), [], 0
        return self._line(held)

    def _passes(self, chunk: bytes) -> bool:
        """Whether the chunk is complete lines without usage, as most chunks are."""
        if self._held or self._raw or not chunk.endswith(b"\n"):
            return False
        for mark in self._shape.marks:
            if mark in chunk and not (mark == USAGE and chunk.count(USAGE) == chunk.count(NO_USAGE)):
                return False
        return self._missing is None or self._missing.knows(chunk)

    def _hold(self, rest: bytes) -> bytes:
        """Hold back an incomplete line; if it grows too long, it is forwarded instead."""
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
        """Whether the line is the last event of an answer, which repeats the whole answer before its usage."""
        start = b"".join(self._held)[:START] if self._shape.repeats else b""
        if any(mark in start for mark in self._shape.marks):
            self._longest = LONGEST_LAST
        return self._size <= self._longest

    def _line(self, line: bytes) -> bytes:
        """Return a complete line with its sizes rewritten."""
        marked = any(mark in line for mark in self._shape.marks)
        if line.startswith(b"event:") and self._shape.repeats:
            self._longest = LONGEST_LAST if marked else LONGEST_LINE
        if not line.startswith(b"data:"):
            return line
        self._longest = LONGEST_LINE
        data = line[5:].strip()
        before = b"" if self._missing is None else self._missing.before(data)
        if not marked or not data.startswith(b"{"):
            return before + line
        rewritten = _rewritten(self._shape, data, self._sizes)
        return before + (line if rewritten is data else line.replace(data, rewritten, 1))


class _MissingUsage:
    """Adds the usage chunk at the end of a chat stream if the client wants one and none arrived."""

    def __init__(self, shape: UsageShape, sizes: PromptSizes) -> None:
        self._shape = shape
        self._sizes = sizes
        self._frame: _Fields | None = None
        self._pieces = 0
        self._needed = True

    def knows(self, chunk: bytes) -> bool:
        """Whether the frame of chunks is known; then only the pieces of this chunk are counted."""
        if self._frame is not None:
            self._pieces += chunk.count(PIECE)
        return self._frame is not None

    def before(self, data: bytes) -> bytes:
        """Return what to put before an event: nothing, except before the end of a chat without usage."""
        if data != b"[DONE]":
            self._pieces += data.count(PIECE)
            self._frame = _fields(data) if self._frame is None else self._frame
            self._needed = self._needed and not _usage_of(self._shape, _fields(data) if USAGE in data else None)
            return b""
        if not self._needed:
            return b""
        self._needed = False
        usage = _estimated(self._shape, self._sizes, self._pieces)
        frame = {name: raw for name, raw in (self._frame or {}).items() if name in self._shape.frame}
        return b"data: " + msgspec.json.encode(frame | {"choices": [], "usage": usage}) + b"\n\n"


def _rewritten(shape: UsageShape, data: bytes, sizes: PromptSizes) -> bytes:
    """An answer or an event with its usage rewritten; the same object if there is nothing to change."""
    event = _fields(data)
    inner = shape.inner if event is not None and shape.inner in event else ""
    holder = _fields(event[inner]) if event is not None and inner else event
    if event is None or holder is None:
        return data
    known_by = bytes(holder.get(shape.known_by, b""))
    whole = any(sign in known_by for sign in shape.whole)
    usage = _usage_of(shape, holder)
    new: _Fields | None = None
    if usage and (whole or any(name in usage for name in (shape.prompt, *shape.beside))):
        new = _reported(shape, usage, sizes)
    elif whole and sizes.wants and sizes.prompt:
        new = _estimated(shape, sizes, 0)
    if new is None:
        return data
    changed = {**holder, shape.field: new} if shape.field else holder | new
    return msgspec.json.encode({**event, inner: changed} if inner else changed)


def _reported(shape: UsageShape, usage: _Fields, sizes: PromptSizes) -> _Fields | None:
    """The usage to report; None if it is the same."""
    prompt, output = _count(usage.get(shape.prompt)), _count(usage.get(shape.output))
    beside = [_count(usage.get(name)) for name in shape.beside]
    counted = -1 if min(prompt, *beside, 0) < 0 else prompt + sum(beside)
    reported, new = sizes.reported(counted), dict(usage)
    if reported != counted:
        keeps = sizes.plausible(counted) and (not sizes.window or sum(beside) <= sizes.window)
        new |= {} if keeps else {name: _raw(0) for name in shape.beside if name in usage}
        new[shape.prompt] = _raw(max(0, reported - sum(beside)) if keeps else reported)
        _cap_details(shape, new, _count(new[shape.prompt]))
    if output < 0 or (sizes.window and output > FAR * sizes.window):
        output = 0
        new[shape.output] = _raw(0)
    if shape.total in usage and new != usage:
        written = output + sum(max(0, _count(usage.get(name))) for name in shape.output_beside)
        new_prompt = sum(max(0, _count(new.get(name))) for name in (shape.prompt, *shape.beside))
        new[shape.total] = _raw(new_prompt + _rest(_count(usage[shape.total]), counted, written))
    return new if new != usage else None


def _rest(total: int, prompt: int, output: int) -> int:
    """The part of a total that is not the prompt: the output, and what a server counts in addition."""
    return total - prompt if prompt > 0 and output <= total - prompt <= FAR * output else output


def _cap_details(shape: UsageShape, usage: _Fields, prompt: int) -> None:
    """Limit cached tokens to the prompt, of which they are a part."""
    if shape.cached in usage and not 0 <= _count(usage[shape.cached]) <= prompt:
        usage[shape.cached] = _raw(prompt)
    details = _fields(usage[shape.details]) if shape.details in usage else None
    if details is not None and not 0 <= _count(details.get(CACHED)) <= prompt:
        usage[shape.details] = msgspec.Raw(msgspec.json.encode(details | {CACHED: _raw(prompt)}))


def _estimated(shape: UsageShape, sizes: PromptSizes, output: int) -> _Fields:
    """The usage to report if the upstream reports none."""
    prompt = sizes.reported(0)
    usage = {shape.prompt: _raw(prompt), shape.output: _raw(output)}
    return usage | ({shape.total: _raw(prompt + output)} if shape.total else {})


def _usage_of(shape: UsageShape, holder: _Fields | None) -> _Fields | None:
    if holder is not None and not shape.field:
        return {name: holder[name] for name in (shape.prompt, shape.output) if name in holder}
    return _fields(holder[shape.field]) if holder is not None and shape.field in holder else None


def _fields(data: bytes | msgspec.Raw) -> _Fields | None:
    """The fields of an object with raw values; None for anything else."""
    try:
        return _FIELDS.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _count(raw: msgspec.Raw | None) -> int:
    """A count of tokens; 0 if there is none, -1 if the value cannot be a count."""
    try:
        number = 0 if raw is None else _NUMBER.decode(raw) or 0
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return -1
    return int(number) if 0 <= number < MAX_COUNT else -1


def _raw(number: int) -> msgspec.Raw:
    return msgspec.Raw(str(number).encode())
