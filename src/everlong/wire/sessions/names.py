"""Ids for records that are new to a file: made from what they say, so the same conversation gives the same file."""

from uuid import NAMESPACE_URL, uuid5

from everlong.core import ref_of

__all__ = ["fresh_id", "fresh_uuid"]


def fresh_id(seed: str, taken: set[str]) -> str:
    """Eight hex digits that are not taken; they are from now on."""
    turn = 0
    while (name := ref_of(f"{turn}:{seed}")[:8]) in taken:
        turn += 1
    taken.add(name)
    return name


def fresh_uuid(seed: str, taken: set[str]) -> str:
    """A UUID that is not taken; it is from now on."""
    turn = 0
    while (name := str(uuid5(NAMESPACE_URL, f"everlong:{turn}:{ref_of(seed)}"))) in taken:
        turn += 1
    taken.add(name)
    return name
