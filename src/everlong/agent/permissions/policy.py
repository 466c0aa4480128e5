"""Policies: patterns that allow and deny, and the TOML files that hold them.

`permissions.toml` in the user's own folder is read again for every decision; the answer "always" appends a rule for one
workspace to it. No file of the workspace becomes a policy by itself, because the agent may write there.
"""

import json
import os
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everlong.agent.permissions.action import Action
from everlong.agent.permissions.patterns import Pattern
from everlong.errors import InputError
from everlong.store import make_folder, open_private, write_private

__all__ = ["NO_POLICY", "Policy", "RememberedPolicy", "read_policy"]

LARGEST = 1_000_000  # bytes of a policy file
FIELDS = {"allow", "deny", "folder"}


@dataclass(frozen=True, slots=True)
class Policy:
    """Patterns that allow, and patterns that deny; what is denied is never allowed."""

    allow: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()

    @classmethod
    def of(cls, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> "Policy":
        """Read patterns. Raises InputError for one that makes no sense."""
        return cls(tuple(map(Pattern.of, allow)), tuple(map(Pattern.of, deny)))

    def __add__(self, other: "Policy") -> "Policy":
        return Policy(self.allow + other.allow, self.deny + other.deny)

    def allows(self, action: Action) -> bool:
        """Whether a pattern covers the action."""
        return any(pattern.allows(action) for pattern in self.allow)

    def denied_by(self, action: Action) -> str:
        """Return the pattern that denies the action, "" if none does."""
        return next((pattern.text for pattern in self.deny if pattern.denies(action)), "")


NO_POLICY = Policy()


def read_policy(file: Path, workspace: Path) -> Policy:
    """Return what a policy file says for a workspace. Raises InputError, in one line that names the file.

    Example: allow = ["shell:git status"]; under it [[rules]] with folder = "/home/me/x" and deny = "write:*.lock"
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(f"larger than {LARGEST:,} bytes")
        table = tomllib.loads(content.decode("utf-8-sig"))
        rules = _checked(table)
        return sum((_policy(rule) for rule in rules if _holds(rule, workspace)), NO_POLICY)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    except (InputError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: {error}") from None


def _checked(table: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """Return all rules of a file: the one at its top, and its list. Raises ValueError."""
    more = table.pop("rules", [])
    if not isinstance(more, list) or not all(isinstance(rule, dict) for rule in more):
        raise ValueError("rules must be a list of tables: write [[rules]] above each one")
    if "folder" in table:
        raise ValueError("folder belongs to a rule: write [[rules]] above it")
    for rule in (table, *more):
        unknown = sorted(set(rule) - FIELDS)
        if unknown:
            raise ValueError(f"{unknown[0]}: unknown field; a rule can have allow, deny and folder")
    return (table, *more)


def _holds(rule: dict[str, Any], workspace: Path) -> bool:
    folder = rule.get("folder", "")
    if not isinstance(folder, str):
        raise ValueError(f"folder must be a string, not {folder!r}")
    return not folder or os.path.realpath(Path(folder).expanduser()) == os.path.realpath(workspace)


def _policy(rule: dict[str, Any]) -> Policy:
    return Policy.of(_texts(rule, "allow"), _texts(rule, "deny"))


def _texts(rule: dict[str, Any], name: str) -> list[str]:
    value = rule.get(name, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{name} must be a pattern or a list of patterns")
    return texts


@dataclass(frozen=True, slots=True)
class RememberedPolicy:
    """The user's own policy file, as it applies to one workspace."""

    file: Path
    workspace: Path

    def read(self) -> Policy:
        """Return its current patterns; none if there is no file. Raises InputError."""
        return read_policy(self.file, self.workspace) if self.file.exists() else NO_POLICY

    def _rule(self, pattern: str) -> str:
        """Return the rule that allows a pattern in this workspace, as it is written in the file."""
        folder = json.dumps(os.path.realpath(self.workspace), ensure_ascii=False)
        return f"\n[[rules]]\nallow = {json.dumps(pattern, ensure_ascii=False)}\nfolder = {folder}\n"

    def forget(self, pattern: str) -> None:
        """Remove the rules that `remember` appended for a pattern. Raises InputError, also for one written by hand."""
        try:
            with self.file.open("rb") as opened:
                content = opened.read(LARGEST + 1)
            rule = self._rule(pattern).encode()
            if rule not in content or len(content) > LARGEST:
                raise InputError(f"{pattern} was not added by an answer here; remove it from {self.file}")
            write_private(self.file.resolve(), [content.replace(rule, b"")])
        except (OSError, UnicodeEncodeError) as error:
            raise InputError(f"{self.file}: cannot be changed: {error}") from None

    def remember(self, pattern: str) -> None:
        """Append a rule that allows a pattern in this workspace. Only the user can read the file. Raises InputError."""
        rule = self._rule(pattern)
        try:
            make_folder(self.file.parent)
            handle = open_private(self.file, os.O_WRONLY | os.O_APPEND)
            with os.fdopen(handle, "a", encoding="utf-8") as opened:
                opened.write(rule)
        except (OSError, UnicodeEncodeError) as error:
            raise InputError(f"{self.file}: cannot be written: {error}") from None
