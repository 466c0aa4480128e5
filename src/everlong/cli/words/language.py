"""What a language is for the command line: one value with all its texts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Language", "Section"]

Section: TypeAlias = Literal[
    "general",
    "program",
    "count",
    "inspect",
    "models",
    "chat",
    "sessions",
    "demo",
    "survival",
    "continuity",
    "resume",
    "secrets",
    "capacity",
    "replay",
    "datasets",
    "worker",
    "wrap",
    "keys",
    "migrate",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Language:
    """A language of the command line.

    Names in braces are figures or quotations. A text with "|" has a form for one and a form for several.
    """

    #: The value of `--lang`, and how locales of this language begin.
    code: str
    #: The language of an HTML page, as browsers name it.
    tag: str
    #: How an answer that means yes begins.
    yes: str
    #: Roles, kinds of content and reasons of protection.
    names: Mapping[str, str]
    #: The texts of each command; "general" has those that several commands use.
    texts: Mapping[Section, Mapping[str, str]]
    #: English sentences of other layers and their translations; the parts that vary stand in braces.
    reasons: tuple[tuple[str, str], ...] = ()
