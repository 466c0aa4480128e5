"""The whole exception tree. Nothing else in the package defines an exception.

EverlongError
├── InputError            what a person handed in cannot be used
│   └── WireError         a payload is not what its format promises (.fmt, .where)
├── StoreError            a store cannot do what was asked
│   ├── NoThread            there is no such thread
│   ├── ThreadExists        there is one of that name already
│   ├── ThreadChanged       it grew since it was read; read again
│   └── StoreBusy           another writer holds it
├── Refused               the gateway does not take a request (.status, .kind)
├── BudgetImpossible      what must stay is larger than the budget (.parts, .limit)
└── ProviderError         a model provider refused (.status, .provider)
    ├── ContextOverflow     … because the request does not fit (.limit, .requested, .ceiling)
    │   └── NotRecovered      … and no smaller one was accepted either (.parts)
    ├── ReplyLimitExceeded  … because the reply asked for is longer than the model writes (.limit)
    ├── MalformedHistory    … because calls, results, roles or signatures are wrong
    ├── MediaRefused        … because of its pictures: too many, too big, unreadable
    └── RateLimited         … for now; the same request may pass later

Every message is one line that a person can act on; the figures are attributes too.
"""

from collections.abc import Sequence
from typing import Any

__all__ = [
    "BudgetImpossible",
    "ContextOverflow",
    "EverlongError",
    "InputError",
    "MalformedHistory",
    "MediaRefused",
    "NoThread",
    "NotRecovered",
    "ProviderError",
    "RateLimited",
    "Refused",
    "ReplyLimitExceeded",
    "StoreBusy",
    "StoreError",
    "ThreadChanged",
    "ThreadExists",
    "WireError",
]


class EverlongError(Exception):
    """Anything that Everlong raises on purpose. It travels between processes with all that it says."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[EverlongError], args: tuple[Any, ...], said: dict[str, Any]) -> EverlongError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(said)
    return error


class InputError(EverlongError):
    """What a person handed in cannot be used: a missing file, a wrong option, a broken document."""


class WireError(InputError):
    """A payload is not what its format promises."""

    def __init__(self, problem: str, *, fmt: str, where: str = "") -> None:
        super().__init__(f"{fmt}: {problem}" + (f" (at {where})" if where else ""))
        self.problem = problem
        self.fmt = fmt
        self.where = where


class StoreError(EverlongError):
    """A store cannot do what was asked of it."""


class NoThread(StoreError):
    """There is no thread of that name."""


class ThreadExists(StoreError):
    """A thread of that name is there already."""


class ThreadChanged(StoreError):
    """The thread grew since it was read; what was decided on the old state was not applied."""


class ThreadBusy(EverlongError):
    """Another turn of the thread is under way, and the engine was set to refuse a second one."""


class StoreBusy(StoreError):
    """Another writer holds the thread or the store and does not let go."""


class Refused(EverlongError):
    """The gateway does not take a request. `status` is HTTP's; `kind` a word for programs, such as "invalid_key"."""

    def __init__(self, message: str, *, status: int, kind: str, after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        #: Seconds after which it may be tried again.
        self.after = after


class BudgetImpossible(EverlongError):
    """What must be sent is larger than the budget, whatever is left out.

    `parts` names each thing that must stay and its size in tokens, largest first.
    """

    def __init__(self, limit: int, parts: Sequence[tuple[str, int]]) -> None:
        self.limit = limit
        self.parts = tuple(sorted(parts, key=lambda part: -part[1]))
        self.needed = sum(size for _, size in self.parts)
        listing = ", ".join(f"{name} {size:,}" for name, size in self.parts)
        nothing = f"nothing fits in {limit:,} tokens; set a larger window"
        fits = f"at least {self.needed:,} tokens are needed, the limit is {limit:,}: {listing}"
        super().__init__(fits if self.needed else nothing)


class ProviderError(EverlongError):
    """A model provider refused a request."""

    def __init__(self, message: str, *, provider: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status


class ContextOverflow(ProviderError):
    """The request does not fit; a smaller one may.

    `limit` and `requested` are tokens, None where the provider named none. With `ceiling` the limit is what the
    account may send at once, not the model's window: it is no window to learn, and waiting does not help. With
    `in_bytes` the body was too large, whatever its tokens; both figures are bytes then.
    """

    def __init__(  # noqa: PLR0913 - all that a provider may tell of it
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        limit: int | None = None,
        requested: int | None = None,
        ceiling: bool = False,
        in_bytes: bool = False,
    ) -> None:
        super().__init__(message, provider=provider, status=status)
        self.limit = limit
        self.requested = requested
        self.ceiling = ceiling
        self.in_bytes = in_bytes


class NotRecovered(ContextOverflow):
    """Every smaller request was refused too, or none is possible; the message says in the user's language what to do.

    `parts` names what must stay and its size in tokens, where that is the reason.
    """

    def __init__(
        self,
        message: str,
        *,
        limit: int | None = None,
        requested: int | None = None,
        parts: Sequence[tuple[str, int]] = (),
    ) -> None:
        super().__init__(message, limit=limit, requested=requested)
        self.parts = tuple(parts)


class ReplyLimitExceeded(ProviderError):
    """The reply asked for is longer than the model writes; a smaller `max_tokens` helps, a shorter history does not."""

    def __init__(
        self, message: str, *, provider: str = "", status: int | None = None, limit: int | None = None
    ) -> None:
        super().__init__(message, provider=provider, status=status)
        self.limit = limit


class MalformedHistory(ProviderError):
    """The provider rejects the shape of the history, not its size; a repaired one may pass."""


class MediaRefused(ProviderError):
    """The provider does not take the pictures: too many, too big, unreadable; without them the request may pass."""


class RateLimited(ProviderError):
    """Too many requests or tokens for now; the same request may pass later."""
