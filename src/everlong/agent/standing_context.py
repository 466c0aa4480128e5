"""Standing context: instructions, memory, skills and the todo list, read from their sources for every request.

None of it is kept in the thread, so no compaction and no summary can lose or repeat it. What changes seldom is stable
and part of the cached prefix; what changes often is volatile and comes last. The same sources give the same bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from everlong.core import History, Message, Role, Text

__all__ = ["NO_STANDING_CONTEXT", "Source", "StandingContext", "file_source", "skills_source", "workspace_standing"]

#: Returns the text for a thread as it is now; "" if there is none.
Source: TypeAlias = Callable[[str], str]

MOST_BYTES = 64_000  # of one file; a note names the file for the rest
MOST_SKILLS = 100
LONGEST_DESCRIPTION = 300  # characters of one skill
FRONT_BYTES = 4_000  # of a skill's file, which begins with its name and description
FENCE = "---"
CUT = "\n[… {name} continues for {left:,} more bytes; read the file]"
SKILLS = "Skills. Before you do something that a skill covers, read its file:"
VOLATILE = "[State of the work, kept by the system; not a message from the user]\n{text}"


@dataclass(frozen=True, slots=True)
class StandingContext:
    """Sources of text in the order they are sent, each with the name of its section; `instructions` come first."""

    stable: tuple[tuple[str, Source], ...] = ()
    volatile: tuple[tuple[str, Source], ...] = ()
    instructions: str = ""

    def now(self, thread: str) -> tuple[History, History]:
        """Return the current stable part as system text, and the volatile part as one message. Reads files."""
        stable, volatile = _sections(self.stable, thread), _sections(self.volatile, thread)
        stable = "\n\n".join(filter(None, (self.instructions.strip(), stable)))
        return (
            (Message(Role.SYSTEM, (Text(stable),)),) if stable else (),
            (Message(Role.USER, (Text(VOLATILE.format(text=volatile)),)),) if volatile else (),
        )


NO_STANDING_CONTEXT = StandingContext()


def _sections(sources: Sequence[tuple[str, Source]], thread: str) -> str:
    texts = ((name, source(thread).strip()) for name, source in sources)
    return "\n\n".join(f"## {name}\n{text}" for name, text in texts if text)


def workspace_standing(
    workspace: Path,
    *,
    instructions: Sequence[str] = ("AGENTS.md",),
    memory: str = "memory/MEMORY.md",
    skills: str = "skills",
    todo: Source | None = None,
) -> StandingContext:
    """Return the context of a workspace: instructions, memory and skills; `todo` returns the list of a thread."""
    stable = [(name, file_source(workspace, name)) for name in (*instructions, memory) if name]
    if skills:
        stable.append(("Skills", skills_source(workspace, skills)))
    return StandingContext(tuple(stable), () if todo is None else (("Todo", todo),))


def file_source(workspace: Path, name: str) -> Source:
    """Return a source that reads a file of the workspace; "" if there is none, or if a link leads outside."""

    def read(thread: str) -> str:  # noqa: ARG001 - the same for all
        path = _inside(workspace, workspace / name)
        return "" if path is None else _text(path, name)

    return read


def skills_source(workspace: Path, folder: str) -> Source:
    """Return a source that lists the skills in a folder: name, description and path of each, sorted; no bodies."""

    def read(thread: str) -> str:  # noqa: ARG001 - the same for all
        lines = list(_skills(workspace, workspace / folder))
        if len(lines) > MOST_SKILLS:
            lines = [*lines[:MOST_SKILLS], f"- [… {len(lines) - MOST_SKILLS} more in {folder}]"]
        return "\n".join((SKILLS, *lines)) if lines else ""

    return read


def _skills(workspace: Path, folder: Path) -> Iterator[str]:
    try:
        files = sorted(folder.glob("*/SKILL.md"))
    except OSError:
        return
    for file in files:
        path = _inside(workspace, file)
        if path is None:
            continue
        front = _front(_start(path, FRONT_BYTES))
        description = " ".join(front.get("description", "").split())[:LONGEST_DESCRIPTION]
        name = front.get("name") or file.parent.name
        yield f"- {name}: {description or 'no description'} ({file.relative_to(workspace).as_posix()})"


def _front(text: str) -> dict[str, str]:
    """Return the fields between the fences at the top. Example: "---\\nname: pdf\\n---\\n…" -> {"name": "pdf"}"""
    lines = text.splitlines()
    if not lines or lines[0].strip() != FENCE:
        return {}
    fields: dict[str, str] = {}
    last = ""
    for line in lines[1:]:
        if line.strip() == FENCE:
            break
        key, colon, value = line.partition(":")
        if line[:1].isspace() and last:
            fields[last] = f"{fields[last]} {line.strip()}".strip()
        elif colon:
            last = key.strip().lower()
            fields[last] = value.strip().strip("\"'").removeprefix(">").removeprefix("|").strip()
    return fields


def _inside(workspace: Path, path: Path) -> Path | None:
    """Return the resolved path if it is a file inside the workspace, else None."""
    try:
        real = path.resolve()
        return real if real.is_file() and real.is_relative_to(workspace.resolve()) else None
    except (OSError, RuntimeError, ValueError):  # loops of links, names that no system accepts
        return None


def _text(path: Path, name: str) -> str:
    text = _start(path, MOST_BYTES)
    try:
        left = path.stat().st_size - MOST_BYTES
    except OSError:
        return text
    return text + CUT.format(name=name, left=left) if left > 0 else text


def _start(path: Path, most: int) -> str:
    if not path.is_file():  # reading a pipe would block
        return ""
    try:
        with path.open("rb") as file:
            return file.read(most).decode("utf-8", "ignore").lstrip("\ufeff")
    except OSError:
        return ""
