"""Where a text almost stands in a file: for a model that remembered it not quite right."""

from difflib import SequenceMatcher

__all__ = ["nearest_lines"]

AROUND = 2  # lines shown before and after
MOST_LINES = 20_000  # of a file that are compared
LONGEST_LINE = 200  # characters that are compared and shown
MOST_COMPARED = 300  # lines that are compared letter by letter, of those that may be alike
ALIKE = 0.6


def nearest_lines(text: str, wanted: str) -> str:
    """Lines of the text most like the first line of what was wanted, with their numbers; "" if none is alike.

    Example: "def add(a, b):" where the file has "def add(a: int, b: int):" -> "3\\tdef add(a: int, b: int):"
    """
    sought = next((line.strip() for line in wanted.splitlines() if line.strip()), "")[:LONGEST_LINE]
    lines = text.splitlines()
    if not sought:
        return ""
    matcher = SequenceMatcher(b=sought, autojunk=False)
    best, at, compared = ALIKE, -1, 0
    for number, line in enumerate(lines[:MOST_LINES]):
        matcher.set_seq1(line.strip()[:LONGEST_LINE])
        if matcher.real_quick_ratio() <= best or matcher.quick_ratio() <= best:
            continue
        compared += 1
        if matcher.ratio() > best:
            best, at = matcher.ratio(), number
        if best == 1 or compared == MOST_COMPARED:
            break
    if at < 0:
        return ""
    first = max(0, at - AROUND)
    around = lines[first : at + AROUND + 1]
    return "\n".join(f"{number}\t{line[:LONGEST_LINE]}" for number, line in enumerate(around, first + 1))
