"""A unified diff of two texts. Its time does not grow with the square of their size.

The common beginning and end are skipped before lines are compared. If what remains is long, all of it is shown as
replaced. A file without a final line end is marked, as in every diff.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

__all__ = ["unified_diff"]

AROUND = 3  # lines that stay the same, shown before and after a change
MOST_COMPARED = 2_000  # lines between the common beginning and end that are compared one by one
NO_LINE_END = "\\ No newline at end of file"

#: A change as difflib describes it: its kind, and its range in both texts.
Step = tuple[str, int, int, int, int]


def unified_diff(before: str, after: str) -> str:
    """Return the hunks of a diff without the lines that name the files; "" if nothing changes.

    Example: "a\\nb\\n" and "a\\nc\\n" -> "@@ -1,2 +1,2 @@\\n a\\n-b\\n+c"
    """
    old, new = _lines(before), _lines(after)
    return "\n".join(line for hunk in _hunks(_steps(old, new)) for line in _drawn(hunk, old, new))


def _lines(text: str) -> list[str]:
    """Return the lines of a text; one without a line end is followed by a mark. Only \\n ends a line."""
    lines = text.split("\n")
    if not lines[-1]:
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n{NO_LINE_END}"]


def _steps(old: Sequence[str], new: Sequence[str]) -> list[Step]:
    shortest = min(len(old), len(new))
    start = next((at for at in range(shortest) if old[at] != new[at]), shortest)
    end = next((at for at in range(shortest - start) if old[-1 - at] != new[-1 - at]), shortest - start)
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    if max(len(middle_old), len(middle_new)) > MOST_COMPARED:
        inner: list[Step] = [("replace", 0, len(middle_old), 0, len(middle_new))]
    else:
        inner = list(SequenceMatcher(None, middle_old, middle_new, autojunk=False).get_opcodes())
    moved = [(kind, a + start, b + start, c + start, d + start) for kind, a, b, c, d in inner]
    head: Step = ("equal", 0, start, 0, start)
    tail: Step = ("equal", len(old) - end, len(old), len(new) - end, len(new))
    return [step for step in (head, *moved, tail) if step[1] < step[2] or step[3] < step[4]]


def _hunks(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield groups of changes that are close together, each with a few equal lines around it."""
    hunk: list[Step] = []
    for at, (kind, a, b, c, d) in enumerate(steps):
        if kind != "equal":
            hunk.append((kind, a, b, c, d))
            continue
        first, last = at == 0, at == len(steps) - 1
        if not first and (last or b - a > 2 * AROUND):
            hunk.append((kind, a, min(b, a + AROUND), c, min(d, c + AROUND)))
            yield hunk
            hunk = []
        if first or (not last and b - a > 2 * AROUND):
            hunk.append((kind, max(a, b - AROUND), b, max(c, d - AROUND), d))
        elif not last:
            hunk.append((kind, a, b, c, d))
    if any(step[0] != "equal" for step in hunk):
        yield hunk


def _drawn(hunk: Sequence[Step], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    (_, a, _, c, _), (_, _, b, _, d) = hunk[0], hunk[-1]
    yield f"@@ -{_range(a, b)} +{_range(c, d)} @@"
    for kind, first, last, new_first, new_last in hunk:
        if kind == "equal":
            yield from (f" {line}" for line in old[first:last])
        else:
            yield from (f"-{line}" for line in old[first:last])
            yield from (f"+{line}" for line in new[new_first:new_last])


def _range(first: int, last: int) -> str:
    length = last - first
    return f"{first + 1 if length else first},{length}" if length != 1 else f"{first + 1}"
