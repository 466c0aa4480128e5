"""Suggest an existing name for a misspelt one. Every "did you mean" of the program comes from here."""

from collections.abc import Iterable

__all__ = ["did_you_mean", "misspelt", "nearest"]

#: The least similarity (0 to 1) of a suggestion: "compat" is similar to "compact", "read" is not to "write".
NEAR = 0.6
#: The fewest letters and digits of a name that is taken for a misspelt one: short names are similar by chance.
SHORTEST = 5
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


def misspelt(name: str, known: Iterable[str]) -> str:
    """Return the known name that this one is, but for one slip of the pen; "" if there is none.

    A slip is a letter too many, missing, wrong or swapped with its neighbour. Case, dashes, dots and spaces are
    ignored. Digits must be the same: another digit is another version. In a single word nothing may differ: "mixtral"
    is not "mistral". Example: "gpt-4oo", ["gpt-4o"] -> "gpt-4o"
    """
    wanted = _letters(name[:LONGEST])
    if len(wanted) < SHORTEST:
        return ""
    digits, slip, one_word = _digits(wanted), "", name.isalnum()
    for each in known:
        letters = _letters(each)
        if letters == wanted:
            return each
        near = not slip and not one_word and abs(len(letters) - len(wanted)) <= 1
        if near and digits == _digits(letters) and _one_off(wanted, letters):
            slip = each
    return slip


def _one_off(one: str, other: str) -> bool:
    """Whether two different texts become equal by one letter: added, left out, changed or swapped with the next one."""
    same = next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), None)
    if same is None:
        return True  # one text is the beginning of the other
    rest, others = one[same:], other[same:]
    swapped = rest[1::-1] + rest[2:]
    return rest[1:] == others[1:] or rest[1:] == others or rest == others[1:] or swapped == others


def _digits(letters: str) -> str:
    return "".join(filter(str.isdigit, letters))


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
