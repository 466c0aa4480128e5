"""What a process and all it started use: CPU seconds and memory, as Linux tells them. Elsewhere nothing is known."""

import os
from pathlib import Path

__all__ = ["cpu_seconds", "resident_megabytes", "tree"]

PROC = Path("/proc")
PARENT, USER, SYSTEM = 1, 11, 12  # places in /proc/PID/stat, after the name
PAGES_RESIDENT = 1  # place in /proc/PID/statm


def tree(root: int) -> list[int]:
    """The process and its descendants; those that have ended are not among them."""
    parents: dict[int, int] = {}
    for folder in PROC.glob("[0-9]*"):
        if fields := _stat(int(folder.name)):
            parents[int(folder.name)] = int(fields[PARENT])
    found = [root] if root in parents else []
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def cpu_seconds(root: int) -> float | None:
    """User and system time of the tree; None where it cannot be known."""
    stats = [fields for process in tree(root) if (fields := _stat(process))]
    if not stats:
        return None
    return sum(int(fields[USER]) + int(fields[SYSTEM]) for fields in stats) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(root: int) -> float | None:
    """Memory that the tree holds; None where it cannot be known."""
    pages = 0
    for process in tree(root):
        try:
            pages += int((PROC / str(process) / "statm").read_text(encoding="ascii").split()[PAGES_RESIDENT])
        except OSError:  # ended meanwhile
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6 if pages else None


def _stat(process: int) -> list[str]:
    try:
        text = (PROC / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
