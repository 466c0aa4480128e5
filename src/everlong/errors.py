"""The exceptions that Everlong raises. No other module of the package defines one.

EverlongError
├── InputError            the caller passed something that cannot be used
│   └── WireError         a payload does not follow its format (.fmt, .where)
├── StoreError            a store operation failed
│   ├── NoThread            the thread does not exist
│   ├── ThreadExists        a thread with this name already exists
│   ├── ThreadChanged       the thread has grown since it was read; read it again
│   └── StoreBusy           another writer holds the lock
├── ThreadBusy            another turn of the thread is running
├── Refused               the gateway rejected a request (.status, .kind)
├── BudgetImpossible      the messages that must stay are larger than the budget (.parts, .limit)
└── ProviderError         a model provider rejected the request or could not be reached (.status, .provider, .reason)
    ├── ContextOverflow     the request is larger than the context window (.limit, .requested, .ceiling)
    │   └── NotRecovered      no smaller request was accepted either (.parts)
    ├── ReplyLimitExceeded  the request asks for a longer reply than the model can write (.limit)
    ├── MalformedHistory    the provider rejects the order of calls, results, roles or signatures
    ├── MediaRefused        the provider rejects the images: too many, too large or unreadable
    ├── ParameterRefused    the model does not support a parameter or its value (.parameter)
    └── RateLimited         too many requests for now; the same request may succeed later

Every message is one line that says what happened and what to do. The figures in it are also attributes.
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
    "ParameterRefused",
    "ProviderError",
    "RateLimited",
    "Refused",
    "ReplyLimitExceeded",
    "StoreBusy",
    "StoreError",
    "ThreadBusy",
    "ThreadChanged",
    "ThreadExists",
    "WireError",
]


class EverlongError(Exception):
    """The base class of every exception that Everlong raises on purpose. It can be pickled.

    What to do: Catch it to handle every error of Everlong, and show its message.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[EverlongError], args: tuple[Any, ...], said: dict[str, Any]) -> EverlongError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(said)
    return error


class InputError(EverlongError):
    """The caller passed something that cannot be used: a missing file, a wrong option, a broken document.

    What to do: Correct the value that the message names.
    """


class WireError(InputError):
    """A payload does not follow its format. `fmt` names the format and `where` the place in the payload.

    What to do: Check the payload at that place, or the format that you named for it.
    """

    def __init__(self, problem: str, *, fmt: str, where: str = "") -> None:
        super().__init__(f"{fmt}: {problem}" + (f" (at {where})" if where else ""))
        self.problem = problem
        self.fmt = fmt
        self.where = where


class StoreError(EverlongError):
    """A store operation failed.

    What to do: Check that the store can be reached and written. The message repeats what the database said.
    """


class NoThread(StoreError):
    """The thread does not exist, or it belongs to another owner.

    What to do: Create the thread, or check its id and its owner.
    """


class ThreadExists(StoreError):
    """A thread with this name already exists.

    What to do: Choose another id, or continue the existing thread.
    """


class ThreadChanged(StoreError):
    """The thread has grown since it was read, so nothing was written. Read it again and repeat.

    What to do: Read the thread again and repeat the call.
    """


class ThreadBusy(EverlongError):
    """Another turn of the thread is running, and the engine was opened with `busy="refuse"`.

    What to do: Wait until the turn ends, or open the engine with `busy="wait"`.
    """


class StoreBusy(StoreError):
    """Another writer held the lock on the thread or the store for too long.

    What to do: Try again. If it happens often, close the other program that writes to the store, or use Postgres.
    """


class Refused(EverlongError):
    """The gateway rejected a request.

    `status` is the HTTP status, `kind` a word for programs such as "invalid_key", and `after` the seconds to wait
    before trying again.

    What to do: Look at `kind`: send a valid key or a smaller request, or wait for `after` seconds.
    """

    def __init__(self, message: str, *, status: int, kind: str, after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        #: Seconds to wait before trying again.
        self.after = after


class BudgetImpossible(EverlongError):
    """The messages that must stay are larger than the budget, so no request can fit.

    `limit` is the budget in tokens and `needed` the smallest possible request. `parts` lists what must stay as (name,
    tokens), largest first.

    What to do: Use a larger budget or window, fewer tools, a shorter system text or fewer pins.
    """

    def __init__(self, limit: int, parts: Sequence[tuple[str, int]]) -> None:
        self.limit = limit
        self.parts = tuple(sorted(parts, key=lambda part: -part[1]))
        self.needed = sum(size for _, size in self.parts)
        listing = ", ".join(f"{name} {size:,}" for name, size in self.parts)
        nothing = f"nothing fits into {limit:,} tokens: set a larger window"
        fits = f"the request needs at least {self.needed:,} tokens, but the limit is {limit:,}: {listing}"
        super().__init__(fits if self.needed else nothing)


class ProviderError(EverlongError):
    """A model provider rejected a request or could not be reached.

    `status` is the HTTP status, `reason` one of `everlong.wire.Reason` ("" if unknown), and `after` the seconds that
    the provider asks to wait.

    What to do: Look at `status` and `reason`: check the key, the model's name and the address, or try again later.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        reason: str = "",
        after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        self.reason = reason
        self.after = after


class ContextOverflow(ProviderError):
    """The request is larger than the context window; a smaller one may succeed.

    `limit` and `requested` are token counts, or None if the provider did not name them. If `ceiling` is true, the limit
    is what the account may send at once, not the model's context window. If `in_bytes` is true, the request body was
    too large, and both figures are bytes.

    What to do: Let the engine recover (`ask`, `stream`, `refused`), or send less. If the limit is your
    account's (`ceiling`), ask the provider for a higher one.
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
    """The request overflowed, and no smaller one was accepted or possible. The message says what to do.

    `parts` lists what must stay as (name, tokens), if that is why no smaller request was possible.

    What to do: Use a model with a larger window, or shorten what `parts` names.
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
    """The request asks for a longer reply than the model can write. Use a smaller `max_tokens`.

    What to do: Ask for a smaller `max_tokens`.
    """

    def __init__(
        self, message: str, *, provider: str = "", status: int | None = None, limit: int | None = None
    ) -> None:
        super().__init__(message, provider=provider, status=status)
        self.limit = limit


class MalformedHistory(ProviderError):
    """The provider rejects the structure of the history, not its size. A repaired history may be accepted.

    What to do: Send the history through `fit` or the engine, which repair it.
    """


class MediaRefused(ProviderError):
    """The provider rejects the images: too many, too large or unreadable. The request may succeed without them.

    What to do: Send fewer or smaller images.
    """


class ParameterRefused(ProviderError):
    """The model does not support a parameter or its value. The request may succeed without it.

    What to do: Leave the parameter out, or use a value that the model supports.
    """

    def __init__(self, message: str, *, provider: str = "", status: int | None = None, parameter: str = "") -> None:
        super().__init__(message, provider=provider, status=status)
        self.parameter = parameter


class RateLimited(ProviderError):
    """Too many requests or tokens for now. The same request may succeed later.

    What to do: Wait for `after` seconds if it is set, else for a while, and send the same request again.
    """
