"""CPU seconds and memory of a process and its descendants, as Linux reports them; unknown on other systems."""

import os
from pathlib import Path

__all__ = ["cpu_seconds", "resident_megabytes", "tree"]

PROC = Path("/proc")
PARENT, USER, SYSTEM = 1, 11, 12  # places in /proc/PID/stat, after the name
PAGES_RESIDENT = 1  # place in /proc/PID/statm


def tree(root: int) -> list[int]:
    """Return the process and its living descendants."""
    parents: dict[int, int] = {}
    for folder in PROC.glob("[0-9]*"):
        if fields := _stat(int(folder.name)):
            parents[int(folder.name)] = int(fields[PARENT])
    processes = [root] if root in parents else []
    for process in processes:
        processes += [child for child, parent in parents.items() if parent == process]
    return processes


def cpu_seconds(root: int) -> float | None:
    """Return user and system time of the tree; None if unknown."""
    stats = [fields for process in tree(root) if (fields := _stat(process))]
    if not stats:
        return None
    return sum(int(fields[USER]) + int(fields[SYSTEM]) for fields in stats) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(root: int) -> float | None:
    """Return the resident memory of the tree; None if unknown."""
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
