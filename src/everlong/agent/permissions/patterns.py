"""Patterns: which actions are allowed or denied without a question. `write:src/**`, `shell:git status`, `fetch:HOST`.

A pattern is a kind and, after a colon, what it covers; a kind alone covers all its actions. A shell pattern that ends
with " *" covers one simple command that begins with its words, never a second one after `;`, `|`, `$(` or a line end.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from everlong.agent.permissions.action import Action, ActionKind
from everlong.agent.permissions.visible import is_plain
from everlong.errors import InputError

__all__ = ["Pattern", "kind_pattern", "pattern_for", "simple_words"]

#: The names of the kinds in patterns.
KINDS: Mapping[str, ActionKind] = {"write": "file", "shell": "command", "fetch": "network", "tool": "tool"}
NAMES: Mapping[ActionKind, str] = {kind: name for name, kind in KINDS.items()}
LONGEST = 200  # characters of a pattern that is offered
BLANK = " \t\n"  # what a shell ignores around a command
ANY_MORE = " *"
#: The words of one simple command: quoted text without expansions, and characters without a meaning to any shell.
WORD = re.compile(r"""(?:'[^'\x00-\x1f]*'|"[^"\\$`!\x00-\x1f]*"|[^\s'"\\$`!;&|<>(){}#\x00-\x1f\x7f])+""")
#: Where a command ends and the next begins, or one begins inside another.
BETWEEN = re.compile(r"[;&|\n\r(){}<>`]|\$\(")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as it was written, the kind of actions it covers, and which of them; "" is all."""

    text: str
    kind: ActionKind
    what: str = ""

    @classmethod
    def of(cls, text: str) -> "Pattern":
        """Read a pattern. Raises InputError, in one line, for one that makes no sense."""
        name, colon, what = text.strip().partition(":")
        kind, what = KINDS.get(name.strip()), what.strip()
        if kind is None or (colon and not what):
            shown = ", ".join(f"{each}:…" for each in KINDS)
            raise InputError(f"{text[:80]!r} is not a pattern: use one of {shown}, or a kind alone to match all of it")
        if kind == "command" and what.endswith(ANY_MORE) and simple_words(what.removesuffix(ANY_MORE)) is None:
            raise InputError(f"{text[:80]!r}: before *, write the first words of one simple command")
        return cls(text.strip(), kind, what)

    def allows(self, action: Action) -> bool:
        """Return whether the pattern covers the whole action."""
        if action.kind != self.kind:
            return False
        if not self.what:
            return True
        match self.kind:
            case "file":
                return self._covers_path(action)
            case "command":
                return self._covers_command(action.subject)
            case "network":
                return _covers_host(self.what, action.subject)
            case "tool":
                return bool(_path_expression(self.what).fullmatch(action.subject))

    def denies(self, action: Action) -> bool:
        """Return whether the pattern covers the action, or a command that is part of it."""
        if self.allows(action):
            return True
        return action.kind == self.kind == "command" and any(map(self._covers_part, _parts(action.subject)))

    def _covers_path(self, action: Action) -> bool:
        given = str(Path(self.what).expanduser()) if self.what.startswith("~/") else self.what
        path = str(action.path) if given.startswith("/") else action.subject.removeprefix("./")
        return bool(_path_expression(given.removeprefix("./")).fullmatch(path))

    def _covers_command(self, command: str) -> bool:
        if not self.what.endswith(ANY_MORE) and self.what != "*":
            return command.strip(BLANK) == self.what.strip(BLANK)
        words = simple_words(command)
        return words is not None and self._begins(words)

    def _covers_part(self, part: str) -> bool:
        """Return whether the pattern covers a part of a command, ignoring its quotes and backslashes."""
        words = tuple(re.sub(r"""["'\\]""", "", part).split())
        if self.what.endswith(ANY_MORE):
            return self._begins(words)
        return words == tuple(self.what.split())

    def _begins(self, words: tuple[str, ...]) -> bool:
        first = simple_words(self.what.removesuffix("*")) or ()
        return words[: len(first)] == first


def pattern_for(action: Action) -> str:
    """Return the pattern that covers this action and no more; "" if none can be written in one readable line."""
    what = action.subject
    literal = not re.search(r"[*?]", what) if action.kind != "command" else not what.endswith("*")
    plain = is_plain(what) and what == what.strip() and 0 < len(what) <= LONGEST
    return f"{NAMES[action.kind]}:{what}" if literal and plain else ""


def kind_pattern(action: Action) -> str:
    """Return the pattern that covers every action of this kind."""
    return NAMES[action.kind]


def simple_words(command: str) -> tuple[str, ...] | None:
    """Return the words of a command that is one simple command; None if it is, or may be, anything else.

    Example: "git log 'a b'" -> ("git", "log", "a b"); "git log; ls", "ls > x", "ls $(x)", "ls \\n rm" -> None
    """
    stripped = command.strip(BLANK)
    words = [found[0] for found in WORD.finditer(stripped)]
    if not words or WORD.sub("", stripped).strip(" \t") or "\n" in stripped:
        return None
    return tuple("".join(shlex.split(word)) for word in words)


def _parts(command: str) -> Iterator[str]:
    yield from (part for part in BETWEEN.split(command) if part.strip())


def _covers_host(what: str, host: str) -> bool:
    host, what = host.lower(), what.lower()
    return host.endswith(what[1:]) if what.startswith("*.") else host == what


@cache
def _path_expression(pattern: str) -> re.Pattern[str]:
    """Return a path pattern as a regular expression: * and ? match inside a name, ** across folders."""
    pieces = []
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        known = {"**/": r"(?:[^/]+/)*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
        pieces.append(known.get(piece, re.escape(piece)))
    return re.compile("".join(pieces), re.DOTALL)
