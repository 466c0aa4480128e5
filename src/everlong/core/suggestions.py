"""Suggest an existing name for a misspelt one. Every "did you mean" of the program comes from here."""

from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

#: The least similarity (0 to 1) of a suggestion: "compat" is similar to "compact", "read" is not to "write".
NEAR = 0.6
LONGEST = 100  # characters of a name that are compared; names may come from a model


def nearest(name: str, known: Iterable[str], *, near: float = NEAR) -> str:
    """Return the known name that was probably meant; "" if none is similar. Of equal spellings, the first.

    Case, dashes, dots and spaces are ignored. Example: "gpt4o", ["gpt-4", "gpt-4o"] -> "gpt-4o"
    """
    from difflib import get_close_matches  # noqa: PLC0415 - needed only for a wrong name

    by_letters: dict[str, str] = {}
    for each in known:
        by_letters.setdefault(_letters(each), each)
    wanted = _letters(name[:LONGEST])
    if not wanted:
        return ""
    found = [wanted] if wanted in by_letters else get_close_matches(wanted, by_letters, n=1, cutoff=near)
    return by_letters[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of an error: the most similar name, or "". Example: "prot", ["port"] -> "; did you mean port?" """
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
