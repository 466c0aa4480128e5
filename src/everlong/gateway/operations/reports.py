"""What became of a request, as one value for headers, the access log, metrics and explanations.

The access log has one JSON line a request, figures and names only; never messages or keys.
"""

import json
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Literal, TypeAlias

from everlong.core import Edit, Event, EventKind, JsonObject, JsonText
from everlong.engine import CUT_NEAR
from everlong.gateway.conversations.persistence import StateStore
from everlong.wire import Usage

__all__ = ["EndedBy", "Hints", "Recent", "Report", "log_request", "set_up_logging"]

#: The answer itself (whole, whatever its status), a client that went away, an upstream that gave no whole answer,
#: the gateway (it refused or failed), or the end of the process.
EndedBy: TypeAlias = Literal["answer", "client", "upstream", "gateway", "shutdown"]
MOST_CLIENTS, MOST_EACH = 512, 100
MOST_HINTS = 256  # clients may make up names of models
BEGINNING = 20  # characters by which a hint is told from another, before any figure
SEGMENTS = 4  # parts of a path that tell an API; what follows are names and ids
NOTE = "requests"


@dataclass(slots=True, kw_only=True)
class Report:
    """One request. `before` is the size of the client's prompt, `after` of what was sent, as its provider counts."""

    id: str
    time: datetime
    client: str = ""
    method: str = "POST"
    path: str = ""
    fmt: str = ""
    model: str = ""
    upstream: str = ""
    mode: str = ""
    #: Why it was forwarded without being managed; "" if it was managed.
    unmanaged: str = ""
    streamed: bool = False
    status: int = 0
    thread: str = ""
    window: int = 0
    window_source: str = ""
    #: What to do about a window that nobody knows; "" if it is known.
    window_hint: str = ""
    before: int = 0
    after: int = 0
    edits: Sequence[Edit] = ()
    messages: int = 0
    #: Compactions since the request before it, this one's included; without any it begins with the same bytes.
    compactions: int = 0
    #: How many of them were made behind the answer before, for a summary.
    behind: int = 0
    #: The length of the answer that was asked for, if that had to be less than the client wanted.
    max_tokens: int | None = None
    recovered: int = 0
    recalls: int = 0
    usage: Usage | None = None
    #: Milliseconds that we added before the last request to the upstream, and that its earlier answers took; seconds of
    #: the whole request.
    added_ms: float = 0.0
    waited_ms: float = 0.0
    seconds: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0
    #: What went wrong, if anything: in words, and as a kind for programs.
    error: str = ""
    kind: str = ""
    saved_dollars: float = 0.0
    #: Who ended it.
    ended_by: EndedBy = "answer"

    def end_early(self, by: EndedBy, status: int, kind: str = "", error: str = "") -> None:
        """Note that there was no whole answer, and why. `status` is for the log, whatever the client has seen."""
        self.ended_by, self.status = by, status
        self.kind, self.error = kind or self.kind, error or self.error

    def early_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers of an answer whose head is sent while the request is still prepared: no figure yet."""
        return _ours({"request": self.id, "managed": self._managed})

    @property
    def _managed(self) -> str:
        return f"no; {self.unmanaged}" if self.unmanaged else "yes"

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that go with the answer."""
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
        return _ours(values)

    def explanation(self) -> JsonObject:
        """Return all of it for the client: what was left out and why. No text of the conversation is in it."""
        usage = self.usage
        return {
            "id": self.id,
            "time": self.time.isoformat(),
            "path": self.path,
            "format": self.fmt,
            "model": self.model,
            "upstream": self.upstream,
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
    """The window as it is shown: one that nobody knows has no size, only one that is assumed."""
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
    """The last requests of each client, in memory; those with edits or errors are stored too, for other processes."""

    state_store: StateStore
    #: Called with the client's scope and every request when it is over, in the event loop; they must not wait.
    observers: list[Callable[[str, Report], None]] = field(default_factory=list)
    _known: OrderedDict[str, OrderedDict[str, Report]] = field(default_factory=OrderedDict)
    _mine: Lock = field(default_factory=Lock)

    def add(self, scope: str, report: Report) -> None:
        """Remember a request."""
        with self._mine:
            requests = self._known.setdefault(scope, OrderedDict())
            self._known.move_to_end(scope)
            requests[report.id] = report
            while len(requests) > MOST_EACH:
                requests.popitem(last=False)
            while len(self._known) > MOST_CLIENTS:
                self._known.popitem(last=False)
        for observer in self.observers:
            observer(scope, report)
        if report.edits or report.recovered or report.error:
            self.state_store.later(lambda: self.state_store.keep_note(NOTE, scope, report.id, _written(report)))

    def of(self, scope: str) -> list[JsonText]:
        """Return the requests of a client, the newest first."""
        with self._mine:
            requests = list(self._known[scope].values()) if scope in self._known else []
        return [_written(report) for report in reversed(requests)]

    def one(self, scope: str, name: str) -> JsonText | None:
        """Return a request of a client by its id; None for another client's."""
        with self._mine:
            found = self._known[scope].get(name) if scope in self._known else None
        return _written(found) if found is not None else self.state_store.note(NOTE, scope, name)


def _written(report: Report) -> JsonText:
    return json.dumps(report.explanation(), ensure_ascii=False)


access_log = logging.getLogger("everlong.access")
log = logging.getLogger("everlong.gateway")


def log_request(report: Report) -> None:
    """Write the access line of a request."""
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
    """Logs what an operator can mend, once for each model: a window that nobody knows, a prompt that fills it.

    It also logs once for each path and reason that requests are not managed.
    """

    def __init__(self) -> None:
        self._given: set[tuple[str, str]] = set()

    def observe(self, _thread: str, event: Event) -> None:
        """Log an event that is such a hint."""
        if event.kind is not EventKind.CONTEXT_WARNED or event.reason == CUT_NEAR:
            return
        hint = (event.model, event.reason[:BEGINNING])
        if hint not in self._given and len(self._given) < MOST_HINTS:
            self._given.add(hint)
            log.warning("%s: %s", event.model, event.reason)

    def observe_request(self, report: Report) -> None:
        """Log that a request to a model was not managed. What is only passed on, such as a list, is none."""
        hint = ("/".join(report.path.split("/")[:SEGMENTS]), report.unmanaged)
        asked = report.unmanaged and report.method == "POST"
        if asked and hint not in self._given and len(self._given) < MOST_HINTS:
            self._given.add(hint)
            log.warning("requests to %r are forwarded as they come: %s", *hint)


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
