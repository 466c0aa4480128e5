"""Extract the text of an error, however it is wrapped.

Providers, proxies and client libraries wrap errors in JSON, in text that contains JSON, and in JSON with such text. All
of that becomes plain lines, codes, and figures from fields. Text inside an error is not parsed as JSON, so broken,
truncated and Python-style bodies work too. Only a bounded part of an error is read.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from everlong.core import Json

__all__ = ["HEAD", "TAIL", "ErrorText", "read_error"]

HEAD = 6_000  # characters read from the start of each text in an error
TAIL = 2_000  # and from its end: some servers quote the whole prompt before the reason
MAX_CHARS = 24_000  # over all texts together
MAX_DEPTH = 8  # of nested objects
MAX_NODES = 200  # values looked at

CODE_KEYS = frozenset(
    {
        "__type", "code", "err_code", "error", "error_code", "error_type", "errortype", "finish_reason", "name",
        "reason", "status", "stop_reason", "type",
    }
)  # fmt: skip
STATUS_KEYS = frozenset({"code", "http_code", "httpstatuscode", "status", "status_code", "statuscode"})
MESSAGE_KEYS = frozenset(
    {"detail", "error", "error_message", "errormessage", "message", "msg", "raw", "status_msg", ""}
)  # "" is the error itself, if it is plain text

ESCAPE = re.compile(r"\\{1,16}(?:u([0-9a-fA-F]{4})|([nrt])|([\"'/`]))")
BLANK = re.compile(r"[\s\x00-\x1f\x7f]+")
SURROGATE = re.compile(r"[\ud800-\udfff]")
WORD = re.compile(r"[\w.\-]{1,64}")
FIELD = re.compile(r"""["']?\b(\w{1,40})["']?\s?[:=]\s?["']?([\w.\-]{1,64})""")
MESSAGE_FIELD = r"""["'](?:message|msg|detail|error_message|errorMessage|status_msg)["']\s?:\s?"""
MESSAGE = re.compile(MESSAGE_FIELD + r"""(?:"([^"]{4,600})"|'([^']{4,600})')""")
#: The same for text with escapes: an escaped quote does not end the message.
ESCAPED_MESSAGE = re.compile(MESSAGE_FIELD + r"""(?:"((?:[^"\\]|\\.){4,})(?:"|$)|'((?:[^'\\]|\\.){4,})(?:'|$))""")
STATUS = re.compile(r"(?:^|\b(?:status(?:[_ ]code)?|error code|http)[\s:=]{1,3})([45]\d\d)(?![\w.])", re.I)


@dataclass(frozen=True, slots=True)
class ErrorText:
    """An error in plain form. `lines` has the texts of message fields first, the innermost before all others."""

    lines: tuple[str, ...]
    codes: frozenset[str]
    figures: tuple[tuple[str, int], ...]
    status: int | None

    @property
    def text(self) -> str:
        """All lines and, as the last line, all codes: the text that patterns search."""
        return "\n".join((*self.lines, " ".join(sorted(self.codes))))

    def figure(self, key: str) -> int | None:
        """Return the number in the field with this name; None if there is none."""
        return next((number for name, number in self.figures if name == key), None)


def read_error(error: Json) -> ErrorText:
    """Read an error from a text or a decoded body.

    Example: {"error": {"code": "x", "message": "too long"}} -> lines ("too long",), codes {"x"}
    """
    ranked: list[tuple[int, str]] = []
    fields: list[tuple[str, str]] = []
    room = MAX_CHARS
    for depth, key, value in _leaves(error):
        if not isinstance(value, str):
            fields.append((key, str(value)))
            continue
        for piece in _pieces(value):
            line = _cleaned(piece)[: max(0, room)]
            room -= len(line)
            if key in CODE_KEYS and WORD.fullmatch(line):
                fields.append((key, line))
                continue
            fields += FIELD.findall(line)
            inner = _messages(piece) or _messages(line, MESSAGE)
            ranked += [(depth + at, message) for at, message in enumerate(inner, start=1)]
            ranked.append((depth if key in MESSAGE_KEYS else -1, line))
    lines = tuple(dict.fromkeys(line for _, line in sorted(ranked, key=lambda entry: -entry[0]) if line))
    lowered = [(key.lower(), value.lower()) for key, value in fields]
    return ErrorText(
        lines=lines,
        codes=frozenset(value for key, value in lowered if key in CODE_KEYS),
        figures=tuple((key, int(value)) for key, value in lowered if value.isascii() and value.isdigit()),
        status=_status(lowered, lines),
    )


def _leaves(error: Json) -> Iterator[tuple[int, str, str | int | float]]:
    """Yield a bounded number of texts and numbers, each with its depth and field, outermost first."""
    waiting: deque[tuple[int, str, Json]] = deque([(0, "", error)])
    for _ in range(MAX_NODES):
        if not waiting:
            return
        depth, key, value = waiting.popleft()
        if isinstance(value, dict):
            if depth < MAX_DEPTH:
                waiting.extend((depth + 1, name.lower(), inner) for name, inner in islice(value.items(), MAX_NODES))
        elif isinstance(value, list):
            if depth < MAX_DEPTH:
                waiting.extend((depth + 1, key, inner) for inner in value[:MAX_NODES])
        elif value is not None and not isinstance(value, bool):
            yield depth, key, value


def _messages(text: str, pattern: re.Pattern[str] = ESCAPED_MESSAGE) -> list[str]:
    """Return the messages in a text that is itself an error, in JSON or Python notation."""
    return [_cleaned(first or second) for first, second in pattern.findall(text)]


def _pieces(text: str) -> tuple[str, ...]:
    return (text,) if len(text) <= HEAD + TAIL else (text[:HEAD], text[-TAIL:])


def _cleaned(text: str) -> str:
    """Return the text as one printable line, with escapes of any depth decoded."""
    plain = BLANK.sub(" ", ESCAPE.sub(_unescaped, text)).strip()
    return SURROGATE.sub("?", plain.replace("\u2019", "'"))


def _unescaped(match: re.Match[str]) -> str:
    point, blank, mark = match.groups()
    if point:
        return chr(int(point, 16))
    return " " if blank else mark


def _status(fields: list[tuple[str, str]], lines: tuple[str, ...]) -> int | None:
    for key, value in fields:
        if key in STATUS_KEYS and len(value) == 3 and value.isascii() and value.isdigit() and value[0] in "45":
            return int(value)
    found = next((match for match in map(STATUS.search, lines) if match), None)
    return int(found[1]) if found else None
