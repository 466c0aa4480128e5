"""What was changed on the way to a request, as values.

Every edit says which message, what, why, the tokens before and after, and how to get the original
back. Reports, events, screens, tests and later requests all read these.
"""

from dataclasses import dataclass
from enum import StrEnum

from everlong.core.refs import Ref

__all__ = ["Action", "Edit"]


class Action(StrEnum):
    """What happened to the message or part."""

    SHORTEN = "shorten"  # said with fewer words: a trim, a table, a stub
    DROP = "drop"  # not sent at all
    INSERT = "insert"  # ours: a summary, excerpts, names, a recalled block
    REPAIR = "repair"  # changed so that the provider accepts it


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change. `at` is the index in the history that was given; `part` None means the whole message."""

    at: int
    step: str
    action: Action
    reason: str
    before: int
    after: int
    part: int | None = None
    ref: Ref | None = None

    @property
    def saved(self) -> int:
        """Tokens that no longer have to be sent."""
        return self.before - self.after
