"""Values of settings, read and checked: each reader returns the value or says in one line what it should be."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, field, fields
from ipaddress import ip_network
from typing import Any, TypeAlias

from everlong.core import did_you_mean, token_count

__all__ = [
    "Reader",
    "Unknown",
    "Wrong",
    "hint",
    "list_of",
    "matching",
    "names_of",
    "one_of",
    "read_bytes",
    "read_headers",
    "read_host",
    "read_network",
    "read_origin",
    "read_sha256",
    "read_some_text",
    "read_text",
    "read_truth",
    "seconds",
    "setting",
    "table_of",
    "tokens",
    "unique",
    "whole_number",
]

Reader: TypeAlias = Callable[[object], Any]


class Wrong(Exception):
    """An invalid value: what it should be, and its place below the field."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(problem)
        self.problem, self.place = problem, place

    def below(self, place: str) -> "Wrong":
        """Return the same problem, seen from one level up."""
        return type(self)(self.problem, place + self.place)


class Unknown(Wrong):
    """A field that does not exist; the problem suggests the right name."""


def read_text(value: object) -> str:
    """Return the text."""
    if not isinstance(value, str):
        raise Wrong("must be text")
    return value


def read_some_text(value: object) -> str:
    """Return the text; it must not be empty."""
    if not read_text(value):
        raise Wrong("is empty")
    return read_text(value)


def matching(pattern: str, problem: str) -> Reader:
    """Return a reader of texts that match a pattern."""

    def read(value: object) -> str:
        text = read_text(value)
        if not re.fullmatch(pattern, text):
            raise Wrong(problem)
        return text

    return read


def read_network(value: object) -> str:
    """Return an address or a network in its usual form."""
    try:
        return str(ip_network(read_text(value), strict=False))
    except ValueError:
        raise Wrong("must be an address or a network, such as 10.0.0.0/8") from None


def read_sha256(value: object) -> str:
    """Return a SHA-256, in lower case."""
    return str(matching(r"[0-9a-fA-F]{64}", "must be the SHA-256 of the key, 64 hex digits")(value)).lower()


TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


def read_truth(value: object) -> bool:
    """Return True or False."""
    word = str(value).strip().lower() if isinstance(value, str | int) else ""
    if word not in TRUE | FALSE:
        raise Wrong("must be true or false")
    return word in TRUE


def whole_number(least: int, most: int | None = None) -> Reader:
    """Return a reader of whole numbers within bounds."""

    def read(value: object) -> int:
        number = _number_of(value, "must be an integer")
        if not number.is_integer():
            raise Wrong("must be an integer")
        if number < least:
            raise Wrong(f"must be at least {least}")
        if most is not None and number > most:
            raise Wrong(f"must be at most {most}")
        return value if isinstance(value, int) else int(number)

    return read


def tokens(least: int) -> Reader:
    """Return a reader of numbers of tokens, such as 200000 or "200k"."""
    read_number = whole_number(least)

    def read(value: object) -> int:
        count = token_count(value) if isinstance(value, str) else None
        return int(read_number(value if count is None else count))

    return read


def seconds(*, zero: bool = False) -> Reader:
    """Return a reader of seconds; 0 is allowed only with `zero`."""

    def read(value: object) -> float:
        number = _number_of(value, "must be a number")
        if not math.isfinite(number):
            raise Wrong("must be a finite number")
        if number < 0 or (number == 0 and not zero):
            raise Wrong("must be at least 0" if zero else "must be more than 0")
        return number

    return read


def _number_of(value: object, problem: str) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Wrong(problem)
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise Wrong(problem) from None


#: Bytes of each unit; a number without a unit is in bytes.
UNITS = {"": 1, "b": 1}
UNITS |= {letter + end: 1_000**power for power, letter in enumerate("kmgtpe", start=1) for end in ("", "b")}
UNITS |= {f"{letter}ib": 1_024**power for power, letter in enumerate("kmgtpe", start=1)}


def read_bytes(value: object) -> int:
    """Return a number of bytes. Example: "64 MiB" -> 67108864"""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value % 1 == 0:
        return int(value)
    text = value.strip() if isinstance(value, str) else ""
    parts = re.fullmatch(r"(\d+(?:_\d+)*(?:\.\d+)?)\s*([a-zA-Z]*)", text)
    if parts is None or parts[2].lower() not in UNITS:
        raise Wrong("must be a number of bytes, such as 67108864 or 64MiB")
    return int(float(parts[1]) * UNITS[parts[2].lower()])


def one_of(*choices: str) -> Reader:
    """Return a reader of one of these words."""

    def read(value: object) -> str:
        if value not in choices:
            raise Wrong(f"must be one of {', '.join(choices)}")
        return str(value)

    return read


def list_of(read_member: Reader) -> Reader:
    """Return a reader of lists whose members are read one by one."""

    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise Wrong("must be a list")
        members = []
        for at, member in enumerate(value):
            try:
                members.append(read_member(member))
            except Wrong as wrong:
                raise wrong.below(f"[{at}]") from None
        return tuple(members)

    return read


def names_of(read_member: Reader) -> Reader:
    """Return a reader of lists that may also be text with commas, as in variables."""
    read_list = list_of(read_member)

    def read(value: object) -> Any:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        return read_list(value)

    return read


def read_host(value: object) -> str:
    """Return the name of a host, in lower case."""
    name = read_text(value).lower()
    if not re.fullmatch(r"\*|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?|[0-9a-f:]+", name):
        raise Wrong('must be a name without a port, such as "gateway.example", or "*" for any')
    return name


def read_origin(value: object) -> str:
    """Return the origin of a site, in lower case."""
    site = read_text(value).lower()
    if not re.fullmatch(r"https?://(?:[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?|\[[0-9a-f:]+\])(?::[0-9]{1,5})?", site):
        raise Wrong('must be a site as browsers write it, such as "https://app.example" or "http://localhost:3000"')
    return site


def read_headers(value: object) -> dict[str, str]:
    """Return headers by their names."""
    if not isinstance(value, dict):
        raise Wrong("must be a table")
    for name, text in value.items():
        if not isinstance(text, str):
            raise Wrong("must be text", f".{name}")
    return dict(value)


def table_of(cls: type[Any]) -> Reader:
    """Return a reader of tables with the fields of a class."""

    def read(value: object) -> Any:
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise Wrong("must be a table")
        known = {each.name: each for each in fields(cls)}
        for name in value:
            if name not in known:
                raise Unknown(hint(name, sorted(known)), f".{name}")
        missing = [name for name, each in known.items() if name not in value and _is_required(each)]
        if missing:
            raise Wrong("is missing", f".{missing[0]}")
        return cls(**{name: read_field(known[name], raw) for name, raw in value.items()})

    return read


def read_field(described: "Field[Any]", value: object) -> Any:
    """Return the value of one field."""
    if value is None and described.default is None:
        return None
    try:
        return described.metadata["read"](value)
    except Wrong as wrong:
        raise wrong.below(f".{described.name}") from None


def _is_required(described: "Field[Any]") -> bool:
    return described.default is MISSING and described.default_factory is MISSING


def unique(read: Reader, *names: str) -> Reader:
    """Return a reader of lists of tables in which these fields differ; errors do not show hashes."""

    def read_unique(value: object) -> Any:
        tables = read(value)
        for name in names:
            values = [str(getattr(table, name)).lower() for table in tables if getattr(table, name)]
            twice = next((each for each in values if values.count(each) > 1), None)
            if twice is not None:
                raise Wrong(f"has two tables with the same {name}" + ("" if name == "hash" else f", {twice!r}"))
        return tables

    return read_unique


def hint(name: str, known: Sequence[str]) -> str:
    """Return a suggestion for a misspelt name, or the known names."""
    return did_you_mean(name, known) or f"; known: {', '.join(known)}"


def setting(read: Reader, help_text: str, default: Any = MISSING, *, secret: bool = False) -> Any:
    """A field with its reader and its description."""
    metadata = {"read": read, "help": help_text}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata, repr=not secret)
    return field(default=default, metadata=metadata, repr=not secret)
