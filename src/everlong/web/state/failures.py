"""Describe a failed turn for the page: its kind, the figures that belong to it, and what can be done about it.

The page explains it in the reader's language and offers the technical text as details. `KINDS` has every kind; the
page has words for each kind in every language.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

from everlong.core import Json, JsonObject
from everlong.engine import Threads
from everlong.errors import (
    BudgetImpossible,
    ContextOverflow,
    EverlongError,
    MalformedHistory,
    MediaRefused,
    NoThread,
    NotRecovered,
    ProviderError,
    Refused,
    ReplyLimitExceeded,
    StoreBusy,
    StoreError,
)
from everlong.web.state.models import Models
from everlong.web.state.settings import choices_of
from everlong.web.state.sources import Source, with_version
from everlong.wire import Reason

__all__ = ["KINDS", "Failure", "Failures", "kind_of"]

LONGEST_DETAILS = 2_000  # characters
#: Every kind of a failed turn, and what a person may do about it; the first is the best.
KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "key": ("fix_key", "retry"),
        "no_key": ("fix_key", "retry"),
        "quota": ("choose_model", "retry"),
        "rate": ("wait", "choose_model"),
        "overloaded": ("wait", "choose_model"),
        "no_such_model": ("choose_model", "retry"),
        "path": ("edit_source", "retry"),
        "web_page": ("edit_source", "retry"),
        "moved": ("edit_source", "retry"),
        "filtered": ("choose_model",),
        "region": ("choose_model",),
        "server": ("retry", "choose_model"),
        "no_host": ("edit_source", "retry"),
        "not_listening": ("retry", "edit_source"),
        "slow": ("retry", "choose_model"),
        "tls": ("edit_source", "retry"),
        "lost": ("retry",),
        "local_off": ("retry", "choose_model"),
        "too_long": ("choose_model", "retry"),
        "ceiling": ("choose_model", "retry"),
        "too_large": ("choose_model", "retry"),
        "no_room": ("choose_model", "retry"),
        "reply_limit": ("choose_model", "retry"),
        "history": ("retry", "choose_model"),
        "pictures": ("choose_model", "retry"),
        "rejected": ("choose_model", "retry"),
        "no_model": ("choose_model",),
        "store_full": ("retry",),
        "store_away": ("retry",),
        "failed": ("retry",),
    }
)
REASONS: Mapping[str, str] = MappingProxyType(
    {
        Reason.KEY: "key",
        Reason.QUOTA: "quota",
        Reason.RATE: "rate",
        Reason.OVERLOADED: "overloaded",
        Reason.MODEL: "no_such_model",
        Reason.PATH: "path",
        Reason.PAGE: "web_page",
        Reason.FILTERED: "filtered",
        Reason.REGION: "region",
        Reason.SERVER: "server",
        Reason.MOVED: "moved",
        Reason.NO_NAME: "no_host",
        Reason.CLOSED: "not_listening",
        Reason.SLOW: "slow",
        Reason.TLS: "tls",
        Reason.LOST: "lost",
    }
)
#: Errors whose class says enough; the first that fits counts.
CLASSES: tuple[tuple[type[EverlongError], str], ...] = (
    (BudgetImpossible, "no_room"),
    (ContextOverflow, "too_long"),
    (ReplyLimitExceeded, "reply_limit"),
    (MalformedHistory, "history"),
    (MediaRefused, "pictures"),
    (StoreBusy, "store_away"),
)
#: How stores say that nothing more can be written.
FULL = ("disk is full", "no space left", "disk full", "quota exceeded")
#: How a model on this machine fails when it is not running.
NOT_THERE = frozenset({"not_listening", "lost", "slow"})
SAID = frozenset({400, 405, 415, 422})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed turn. `after` are the seconds to wait; `suggested` an address that would probably work."""

    kind: str
    details: str
    actions: tuple[str, ...]
    status: int | None = None
    after: float | None = None
    source: str = ""
    model: str = ""
    address: str = ""
    suggested: str = ""
    #: Whether the source can be changed here; else it was given when the server was started.
    editable: bool = False

    def shown(self, since: float = 0.0) -> JsonObject:
        """Return the failure as the page reads it, `since` seconds after it happened."""
        actions: list[Json] = [*self.actions]
        return {
            "kind": self.kind,
            "details": self.details,
            "actions": actions,
            "status": self.status,
            "after": None if self.after is None else max(0.0, round(self.after - since, 1)),
            "source": self.source,
            "model": self.model,
            "address": self.address,
            "suggested": self.suggested,
            "editable": self.editable,
        }


class Failures:
    """Describes what went wrong in a thread, with its model and source."""

    def __init__(self, threads: Threads, models: Models) -> None:
        self._threads = threads
        self._models = models

    def of(self, thread: str, error: EverlongError) -> Failure:
        """Return why a turn of the thread failed. Reads the store."""
        model, source = "", None
        with suppress(StoreError):  # the store may be what failed
            model = choices_of(self._threads.thread(thread)).model or self._models.default()
            source = self._models.sources.named(model.partition("/")[0])
        return _failure(error, model, source, editable=source in self._models.sources.added)


def _failure(error: EverlongError, model: str, source: Source | None, *, editable: bool) -> Failure:
    kind = kind_of(error)
    suggested = ""
    if source is not None:
        if kind == "key" and not source.endpoint.key:
            kind = "no_key"
        if source.local and kind in NOT_THERE:
            kind = "local_off"
        if kind in ("path", "web_page") and editable:
            suggested = with_version(source.endpoint) or ""
    actions = ("add_version", *KINDS[kind]) if suggested else KINDS[kind]
    if not editable:
        actions = tuple(action for action in actions if action not in ("fix_key", "edit_source"))
    return Failure(
        kind=kind,
        details=str(error)[:LONGEST_DETAILS],
        actions=actions,
        status=error.status if isinstance(error, ProviderError | Refused) else None,
        after=error.after if isinstance(error, ProviderError | Refused) else None,
        source="" if source is None else source.name,
        model=model.partition("/")[2],
        address="" if source is None else source.endpoint.name,
        suggested=suggested,
        editable=editable,
    )


def kind_of(error: EverlongError) -> str:
    """Return the kind of an error: one of `KINDS`. Example: RateLimited("…", status=429) -> "rate" """
    if isinstance(error, NotRecovered) and error.parts:
        return "no_room"
    if isinstance(error, ContextOverflow) and (error.ceiling or error.in_bytes):
        return "ceiling" if error.ceiling else "too_large"
    for known, kind in CLASSES:
        if isinstance(error, known):
            return kind
    if isinstance(error, ProviderError):
        unknown = "rejected" if error.status in SAID else "failed"
        return REASONS.get(error.reason, unknown)
    if isinstance(error, StoreError) and not isinstance(error, NoThread):
        return "store_full" if any(sign in str(error).lower() for sign in FULL) else "store_away"
    if isinstance(error, Refused) and error.kind in KINDS:
        return error.kind
    return "failed"
