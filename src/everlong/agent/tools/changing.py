"""Writes and edits files: whole or not at all, one change after another, however many are asked for at once."""

import threading
from typing import Annotated

from everlong.agent.definitions import Place, tool
from everlong.agent.tools.encodings import Encoding, decoded
from everlong.agent.tools.nearest import nearest_lines
from everlong.agent.workspace import inside, open_reading, replace_file, shown
from everlong.errors import InputError

__all__ = ["edit_file", "write_file"]

LARGEST = 16_000_000  # bytes of a file that is edited
MOST_PLACES = 20  # line numbers named

#: An edit reads, changes and writes: two at once in one file would lose one of them.
_ONE_AT_A_TIME = threading.Lock()


@tool
def write_file(path: Annotated[str, "relative to the workspace"], content: str, place: Place) -> str:
    """Write a file, new or in place of what is there, with the folders it needs. For small changes use edit_file."""
    target = inside(place, path)
    _not_in_git(target.parts)
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError("content: has half a surrogate pair in it, which no file can hold") from None
    with _ONE_AT_A_TIME:
        new = replace_file(place, path, data)
    lines = content.count("\n") + (content != "" and not content.endswith("\n"))
    return f"{'wrote' if new else 'replaced'} {shown(place, target)}: {lines:,} lines, {len(data):,} bytes"


@tool
def edit_file(
    path: Annotated[str, "relative to the workspace"],
    old_text: Annotated[str, "exactly as it stands in the file, with enough around it to be found once"],
    new_text: Annotated[str, "what is to stand there instead"],
    place: Place,
    replace_all: Annotated[bool, "replace it everywhere, not once"] = False,
) -> str:
    """Replace a piece of text in a file. It must stand there exactly once, or replace_all be true."""
    target = inside(place, path)
    _not_in_git(target.parts)
    if not old_text:
        raise InputError("old_text: is empty; use write_file for a new file")
    with _ONE_AT_A_TIME:
        text, encoding = _read(place, path)
        old, new = _with_line_ends(text, old_text, new_text)
        if old == new:
            raise InputError("old_text and new_text are the same: nothing to change")
        places = _places(text, old)
        if not places:
            raise InputError(_missing(text, old_text))
        if len(places) > 1 and not replace_all:
            raise InputError(
                f"old_text: stands there {len(places)} times, in lines {_listed(places)}; "
                "give more of what is around it, or replace_all"
            )
        replace_file(place, path, encoding.mark + _encoded(text.replace(old, new), encoding))
    return f"edited {shown(place, target)}: {len(places)} replaced, in line {_listed(places)}"


def _not_in_git(parts: tuple[str, ...]) -> None:
    """What lies in there is run by git: changing it is for git, or for someone who was asked."""
    if any(part.casefold() == ".git" for part in parts):
        raise InputError("files inside .git are changed by git only")


def _read(place: Place, path: str) -> tuple[str, Encoding]:
    with open_reading(place, path) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise InputError(f"{path}: larger than {LARGEST:,} bytes; change it with a program")
    found = decoded(content)
    if found is None:
        raise InputError(f"{path}: a binary file, not text")
    return found


def _encoded(text: str, encoding: Encoding) -> bytes:
    try:
        return text.encode(encoding.name)
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        raise InputError(f"new_text: the file is {encoding.name}, which has no {character!r}") from None


def _with_line_ends(text: str, old: str, new: str) -> tuple[str, str]:
    """Both texts with the line ends of the file: a model writes "\\n", whatever the file has."""
    windows = text.count("\r\n")
    if windows * 2 <= text.count("\n") or (old in text and "\r\n" in old):
        return old, new
    there, instead = (said.replace("\r\n", "\n").replace("\n", "\r\n") for said in (old, new))
    return (there, instead) if there in text or old not in text else (old, new)


def _places(text: str, old: str) -> list[int]:
    """The lines in which it begins, one for each time."""
    places, at, line, counted = [], text.find(old), 1, 0
    while at >= 0:
        line += text.count("\n", counted, at)
        counted = at
        places.append(line)
        at = text.find(old, at + len(old))
    return places


def _listed(places: list[int]) -> str:
    numbers = list(dict.fromkeys(places))
    return ", ".join(map(str, numbers[:MOST_PLACES])) + (" …" if len(numbers) > MOST_PLACES else "")


def _missing(text: str, old: str) -> str:
    near = nearest_lines(text, old)
    if not near:
        return "old_text: does not stand in the file, nor anything like its first line"
    spaces = " (only its white space differs)" if "".join(old.split()) in "".join(text.split()) else ""
    return f"old_text: does not stand in the file{spaces}; the nearest lines are\n{near}"
