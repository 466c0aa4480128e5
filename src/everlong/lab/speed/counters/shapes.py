"""What a way to count is to the clock. Runs in every environment, so standard library only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Counting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """One way to count. `count` is timed on what `read` made of the messages; `forget` drops what it remembers.

    `grow` takes the whole history, which has been counted, and gives the function that says the new total once a
    message has been added (itself read as a list of one).
    """

    read: Callable[[list[dict[str, Any]]], Any]
    count: Callable[[Any], int]
    grow: Callable[[Any], Callable[[Any], int]]
    forget: Callable[[], None] = lambda: None
