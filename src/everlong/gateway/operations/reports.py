"""The outcome of a request, as one value for headers, the access log, metrics and explanations.

The access log has one JSON line per request with figures and names only, never messages or keys.
"""

import json
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import cycle
from threading import Lock
from typing import Literal, TypeAlias
from uuid import uuid4

from everlong.core import Edit, Event, EventKind, JsonObject, JsonText
from everlong.engine import CUT_NEAR
from everlong.errors import StoreError
from everlong.gateway.conversations.state_store import StateStore
from everlong.gateway.keys.accounts import Asked
from everlong.gateway.upstreams.failover import Tries
from everlong.wire import Usage

__all__ = ["EndedBy", "Hints", "Recent", "Report", "log_request", "set_up_logging"]

#: What ended a request: the answer (complete, whatever its status), a client that disconnected, an upstream without a
#: complete answer, the gateway (it refused or failed), or the end of the process.
EndedBy: TypeAlias = Literal["answer", "client", "upstream", "gateway", "shutdown"]
MOST_CLIENTS, MOST_EACH = 512, 100
MOST_HINTS = 256  # hints that are remembered; clients may invent names of models
BEGINNING = 20  # characters that distinguish hints; no figure comes before
SEGMENTS = 4  # parts of a path that identify an API; names and ids follow
NOTE, LAST = "requests", "last"  # kinds of notes: every request by its id, and the last ones for the list
FLOOD = 1_000  # waiting writes above which requests without edits and errors are not stored
ID_LENGTH = 16  # characters of the id of a request


@dataclass(slots=True, kw_only=True)
class Report:
    """One request.

    `before` is the size of the client's prompt, `after` that of the sent one, as its provider counts.
    """

    id: str
    time: datetime
    client: str = ""
    method: str = "POST"
    path: str = ""
    fmt: str = ""
    model: str = ""
    upstream: str = ""
    #: For an upstream with several addresses: the one that answered, and how many were asked.
    address: str = ""
    tried: int = 0
    mode: str = ""
    #: Why it was forwarded without being managed; "" if it was managed.
    unmanaged: str = ""
    streamed: bool = False
    status: int = 0
    thread: str = ""
    window: int = 0
    window_source: str = ""
    #: What to do about an unknown window; "" if it is known.
    window_hint: str = ""
    before: int = 0
    after: int = 0
    edits: Sequence[Edit] = ()
    messages: int = 0
    #: Compactions since the previous request, including this one's; if there are none, it begins with the same bytes.
    compactions: int = 0
    #: How many of them were made after the previous answer, for a summary.
    behind: int = 0
    #: The requested length of the answer, if it had to be less than the client wanted.
    max_tokens: int | None = None
    recovered: int = 0
    recalls: int = 0
    usage: Usage | None = None
    #: Milliseconds that we added before the last request to the upstream, and milliseconds that its answers took;
    #: seconds of the whole request.
    added_ms: float = 0.0
    waited_ms: float = 0.0
    seconds: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0
    #: What went wrong, if anything: as text, and as a kind for programs.
    error: str = ""
    kind: str = ""
    saved_dollars: float = 0.0
    #: What ended the request.
    ended_by: EndedBy = "answer"
    #: The headers with what is left of the client's limits.
    left: Sequence[tuple[bytes, bytes]] = ()
    #: The estimated usage when it was admitted; None if it was not.
    asked: Asked | None = None

    def end_early(self, by: EndedBy, status: int, kind: str = "", error: str = "") -> None:
        """Record that there was no complete answer, and why. `status` is for the log, whatever the client saw."""
        self.ended_by, self.status = by, status
        self.kind, self.error = kind or self.kind, error or self.error

    def note_address(self, tries: Tries) -> None:
        """Record which address of an upstream answered, if it has several."""
        if tries.several:
            self.address, self.tried = tries.site.place, tries.tried

    def early_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers of an answer whose head is sent during the preparation; they have no figures yet."""
        return [*_ours({"request": self.id, "managed": self._managed}), *self.left]

    @property
    def _managed(self) -> str:
        return f"no; {self.unmanaged}" if self.unmanaged else "yes"

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers for the answer."""
        values = {
            "request": self.id,
            "managed": self._managed,
            "tokens-before": str(self.before),
            "tokens-after": str(self.after),
            "edits": str(len(self.edits)),
            "compactions": str(self.compactions),
            "compactions-behind": str(self.behind),
            "recovered": str(self.recovered),
            "added-ms": f"{self.added_ms:.1f}",
        }
        if self.max_tokens is not None:
            values["max-tokens"] = str(self.max_tokens)
        if self.tried:
            values |= {"address": self.address, "addresses-tried": str(self.tried)}
        return [*_ours(values), *self.left]

    def explanation(self) -> JsonObject:
        """Return everything for the client: what was left out and why, without text from the conversation."""
        usage = self.usage
        return {
            "id": self.id,
            "time": self.time.isoformat(),
            "path": self.path,
            "format": self.fmt,
            "model": self.model,
            "upstream": self.upstream,
            "address": self.address,
            "addresses_tried": self.tried,
            "mode": self.mode,
            "unmanaged": self.unmanaged,
            "stream": self.streamed,
            "status": self.status,
            "ended_by": self.ended_by,
            "window": _window(self.window, self.window_source, self.window_hint),
            "tokens": {"before": self.before, "after": self.after, "saved": max(0, self.before - self.after)},
            "messages": self.messages,
            "compactions": self.compactions,
            "compactions_behind": self.behind,
            "max_tokens": self.max_tokens,
            "recovered": self.recovered,
            "recalls": self.recalls,
            "usage": None
            if usage is None
            else {"prompt": usage.prompt, "cached": usage.cached, "output": usage.output},
            "added_ms": round(self.added_ms, 2),
            "seconds": round(self.seconds, 3),
            "error": self.error,
            "edits": [_edit(edit) for edit in self.edits],
        }


def _ours(values: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(f"x-everlong-{name}".encode(), value.encode()) for name, value in values.items()]


def _window(tokens: int, source: str, hint: str) -> JsonObject:
    """Return the window for display: an unknown window has no size, only an assumed one."""
    if hint:
        return {"tokens": None, "assumed": tokens, "source": source, "hint": hint}
    return {"tokens": tokens, "source": source}


def _edit(edit: Edit) -> JsonObject:
    return {
        "message": edit.at,
        "part": edit.part,
        "action": edit.action.value,
        "step": edit.step,
        "why": edit.reason,
        "before": edit.before,
        "after": edit.after,
        "ref": edit.ref,
    }


@dataclass(slots=True)
class Recent:
    """The last requests of each client, in memory and in the store, so that any process can explain them.

    If one process serves alone, only requests with edits or errors are stored. They are written after the answers,
    together with all others that came meanwhile; under heavy load, those without edits and errors are left out.
    """

    state_store: StateStore
    #: Called with the client's scope and every finished request, in the event loop; they must not block.
    observers: list[Callable[[str, Report], None]] = field(default_factory=list)
    _known: OrderedDict[str, OrderedDict[str, Report]] = field(default_factory=OrderedDict)
    #: Requests that are not stored yet, by scope and id.
    _waiting: dict[str, dict[str, Report]] = field(default_factory=dict)
    _slots: Iterator[int] = field(default_factory=lambda: cycle(range(MOST_EACH)))
    _process: str = field(default_factory=lambda: uuid4().hex[:12])
    _mine: Lock = field(default_factory=Lock)

    def add(self, scope: str, report: Report) -> None:
        """Remember a request."""
        telling = bool(report.edits or report.recovered or report.error)
        kept = telling or (self.state_store.shared and self.state_store.unwritten < FLOOD)
        with self._mine:
            requests = self._known.setdefault(scope, OrderedDict())
            self._known.move_to_end(scope)
            requests[report.id] = report
            while len(requests) > MOST_EACH:
                requests.popitem(last=False)
            while len(self._known) > MOST_CLIENTS:
                self._known.popitem(last=False)
            begins = kept and not self._waiting
            if kept:
                self._waiting.setdefault(scope, {})[report.id] = report
        for observer in self.observers:
            observer(scope, report)
        if begins:
            self.state_store.later(self._store)

    def of(self, scope: str) -> list[JsonText]:
        """Return the last requests of a client, newest first, including those of other processes."""
        with self._mine:
            own = list(self._known[scope].values()) if scope in self._known else []
        reports = {report.id: (report.time.isoformat(), _written(report)) for report in own}
        if self.state_store.shared:
            for text in self._last(scope):
                one = json.loads(text)
                reports.setdefault(one["id"], (one["time"], text))
        return [text for _, text in sorted(reports.values(), reverse=True)[:MOST_EACH]]

    def _last(self, scope: str) -> list[JsonText]:
        try:
            return list(self.state_store.ask(lambda: self.state_store.notes(LAST, scope)).values())
        except StoreError as error:
            self.state_store.report(error)
            return []

    def one(self, scope: str, name: str) -> JsonText | None:
        """Return a client's request by its id; None if it is another client's."""
        with self._mine:
            found = self._known[scope].get(name) if scope in self._known else None
        return _written(found) if found is not None else self.state_store.note(NOTE, scope, name)

    def may_come(self, name: str) -> bool:
        """Whether another process may be about to store a request with that id."""
        is_id = len(name) == ID_LENGTH and all(digit in "0123456789abcdef" for digit in name)
        return is_id and self.state_store.shared

    def _store(self) -> None:
        """Store the waiting requests, all by id, and in slots of this process for the list."""
        if self.state_store.shared:  # every request is stored then: each alone would cost two transactions
            self.state_store.gather()
        with self._mine:
            waiting, self._waiting = self._waiting, {}
        for scope, reports in waiting.items():
            texts = {name: _written(report) for name, report in reports.items()}
            if self.state_store.shared:
                slots = {f"{self._process}-{next(self._slots)}": text for text in texts.values()}
                self.state_store.keep_notes(LAST, scope, slots)
            self.state_store.keep_notes(NOTE, scope, texts)


def _written(report: Report) -> JsonText:
    return json.dumps(report.explanation(), ensure_ascii=False)


access_log = logging.getLogger("everlong.access")
log = logging.getLogger("everlong.gateway")


def log_request(report: Report) -> None:
    """Write the access log line of a request."""
    if not access_log.isEnabledFor(logging.INFO):
        return
    usage = report.usage
    fields = {
        "time": report.time.isoformat(timespec="milliseconds"),
        "request": report.id,
        "client": report.client,
        "path": report.path,
        "model": report.model,
        "upstream": report.upstream,
        "address": report.address,
        "addresses_tried": report.tried or None,
        "mode": report.mode,
        "unmanaged": report.unmanaged,
        "status": report.status,
        "ended_by": report.ended_by,
        "stream": report.streamed,
        "tokens_before": report.before,
        "tokens_after": report.after,
        "edits": len(report.edits),
        "recovered": report.recovered,
        "prompt": usage.prompt if usage else None,
        "cached": usage.cached if usage else None,
        "output": usage.output if usage else None,
        "added_ms": round(report.added_ms, 1),
        "seconds": round(report.seconds, 3),
        "bytes_in": report.bytes_in,
        "bytes_out": report.bytes_out,
        "kind": report.kind,
    }
    access_log.info(json.dumps({name: value for name, value in fields.items() if value not in (None, "")}))


class Hints:
    """Logs what an operator can fix, once per model: an unknown window, a prompt that fills the window.

    It also logs, once per path and reason, that requests are not managed.
    """

    def __init__(self) -> None:
        self._given: set[tuple[str, str]] = set()

    def observe(self, _thread: str, event: Event) -> None:
        """Log an event if it is such a hint."""
        if event.kind is not EventKind.CONTEXT_WARNED or event.reason == CUT_NEAR:
            return
        hint = (event.model, event.reason[:BEGINNING])
        if hint not in self._given and len(self._given) < MOST_HINTS:
            self._given.add(hint)
            log.warning("%s: %s", event.model, event.reason)

    def observe_request(self, report: Report) -> None:
        """Log that a request to a model was not managed.

        Requests that are only forwarded, such as lists, do not count.
        """
        hint = ("/".join(report.path.split("/")[:SEGMENTS]), report.unmanaged)
        asked = report.unmanaged and report.method == "POST"
        if asked and hint not in self._given and len(self._given) < MOST_HINTS:
            self._given.add(hint)
            log.warning("requests to %r are forwarded unchanged: %s", *hint)


def set_up_logging(*, lines: bool) -> None:
    """Write access lines to standard output if wanted, warnings to standard error."""
    out = logging.StreamHandler(sys.stdout)
    out.setFormatter(logging.Formatter("%(message)s"))
    access_log.handlers, access_log.propagate = [out], False
    access_log.setLevel(logging.INFO if lines else logging.WARNING)
    warnings = logging.StreamHandler(sys.stderr)
    warnings.setFormatter(logging.Formatter("everlong: %(message)s"))
    root = logging.getLogger("everlong")
    root.handlers, root.propagate = [warnings], False
    root.setLevel(logging.WARNING)
