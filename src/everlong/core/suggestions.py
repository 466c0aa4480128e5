"""What somebody probably meant by a name that does not exist. Every "did you mean" of the program is said here."""

from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

#: The share of letters in common from which a name is near: "compat" is near "compact", "read" is not near "write".
NEAR = 0.6
LONGEST = 100  # characters of a name that are compared; names may come from a model


def nearest(name: str, known: Iterable[str], *, near: float = NEAR) -> str:
    """Return the known name that was probably meant; "" if none is `near`. Of equally near ones the first counts.

    Case, dashes, dots and spaces do not count. Example: "gpt4o", ["gpt-4", "gpt-4o"] -> "gpt-4o"
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only where a name is wrong

    by_letters: dict[str, str] = {}
    for each in known:
        by_letters.setdefault(_letters(each), each)
    wanted = _letters(name[:LONGEST])
    if not wanted:
        return ""
    found = [wanted] if wanted in by_letters else get_close_matches(wanted, by_letters, n=1, cutoff=near)
    return by_letters[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a line that says there is no such name. Example: "prot", ["port"] -> "; did you mean port?" """
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
