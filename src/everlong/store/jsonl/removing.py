"""Removing a session's files: the one place that takes away what was written, for retention and privacy.

The session file is renamed first, which is the moment when the thread is gone; then what lies beside it goes, then the
renamed file. Who is killed between leaves the renamed file as a mark, and the next one finishes. Called with the
folder's lock held.
"""

from contextlib import suppress
from pathlib import Path

from everlong.errors import StoreError
from everlong.store.jsonl.names import events_beside
from everlong.store.jsonl.quarantine import CORRUPT
from everlong.store.jsonl.writing import TEMPORARY, flush_folder, in_words

__all__ = ["finish_removal", "finish_removals", "remove_files"]

REMOVED = ".removed"


def remove_files(path: Path) -> None:
    """Remove a session file and all of ours that lies beside it."""
    with in_words(path):
        path.replace(_mark(path))
        flush_folder(path.parent)
    finish_removal(path)


def finish_removal(path: Path) -> None:
    """Do what is left to do for a session file whose removal broke off; nothing if there was none."""
    mark = _mark(path)
    with in_words(path):
        if not mark.is_file():
            return
        events_beside(path).unlink(missing_ok=True)
        path.with_name(path.name + CORRUPT).unlink(missing_ok=True)
        for beside in path.parent.iterdir():  # what a writer who was killed left
            if beside.name.startswith(f".{path.name}.") and beside.name.endswith(TEMPORARY):
                beside.unlink(missing_ok=True)
        mark.unlink(missing_ok=True)
        flush_folder(path.parent)


def finish_removals(folder: Path) -> None:
    """Do what is left to do in a folder. What cannot be done now waits for the next: the threads are gone anyway."""
    with in_words(folder):
        marks = [entry for entry in folder.iterdir() if entry.name.startswith(".") and entry.name.endswith(REMOVED)]
    for mark in marks:
        with suppress(StoreError):
            finish_removal(mark.with_name(mark.name.removeprefix(".").removesuffix(REMOVED)))


def _mark(path: Path) -> Path:
    """Hidden, so that nobody takes it for a session."""
    return path.with_name(f".{path.name}{REMOVED}")
