"""The result of a run: requests, tokens, compactions and dollars, from the gateway's counters before and after."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from everlong.cli.terminal.tables import amount
from everlong.cli.words.wording import Words
from everlong.cli.wrap.gateway import answer_of

__all__ = ["Figures", "closing_lines", "figures_now"]

SAMPLE = re.compile(r"^everlong_(\w+?)(?:_total)?(?:\{(.*)\})? ([0-9.eE+-]+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
#: Statuses from here on are errors.
ERRORS = 400
CENT = 0.01
#: Compactions are frequent if there is one in this many requests, and if there are at least this many.
OFTEN, FEW = 3, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a gateway has counted since it started; the difference of two is what happened between them."""

    requests: float = 0.0
    failed: float = 0.0
    #: Requests that were forwarded without being managed.
    unmanaged: float = 0.0
    #: Prompt tokens as the client sent them, and as they were forwarded.
    asked: float = 0.0
    sent: float = 0.0
    compactions: float = 0.0
    summaries: float = 0.0
    recovered: float = 0.0
    #: Dollars: for all calls, for summaries and titles among them, and the uncached price of the tokens that were not
    #: sent.
    paid: float = 0.0
    paid_aside: float = 0.0
    saved: float = 0.0

    def since(self, before: "Figures") -> "Figures":
        """Return what was counted after `before`."""
        earlier = asdict(before)
        return Figures(**{name: max(0.0, value - earlier[name]) for name, value in asdict(self).items()})

    def as_json(self) -> dict[str, float]:
        """Return the figures for programs: whole numbers, and dollars."""
        dollars = ("paid", "paid_aside", "saved")
        return {name: round(value, 6) if name in dollars else round(value) for name, value in asdict(self).items()}


def figures_now(gateway: str) -> Figures | None:
    """Return what a gateway has counted so far; None if it does not say."""
    body = answer_of(f"{gateway}/metrics")
    if body is None:
        return None
    found: dict[str, float] = {}
    for name, labels, value in _samples(body.decode("utf-8", "replace")):
        for counted in _counted(name, labels):
            found[counted] = found.get(counted, 0.0) + value
    return Figures(**found)


def _samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for name, labels, value in SAMPLE.findall(text):
        yield name, dict(LABEL.findall(labels)), float(value)


def _counted(name: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the figures that a counter of the gateway adds to."""
    what = labels.get("what", "")
    match name:
        case "requests":
            failed = labels.get("status", "0").isdigit() and int(labels.get("status", "0")) >= ERRORS
            return ("requests", "failed") if failed else ("requests",)
        case "unmanaged":
            return ("unmanaged",)
        case "tokens":
            return {"original": ("asked",), "sent": ("sent",)}.get(what, ())
        case "compactions":
            return ("compactions",)
        case "summaries":
            return ("summaries",) if labels.get("outcome") == "applied" else ()
        case "recoveries":
            return ("recovered",)
        case "spent_dollars":
            return ("paid",) if what == "conversation" else ("paid", "paid_aside")
        case "saved_dollars":
            return ("saved",)
        case _:
            return ()


def closing_lines(came: Figures | None, say: Words, *, shared: bool) -> list[str]:
    """Return the lines that a person reads when the client has ended."""
    if came is None:
        return [say("closing_unknown")]
    if not came.requests:
        return [say("closing_nothing")]
    parts = [
        say.many("closing_requests", round(came.requests)),
        say.many("closing_compactions", round(came.compactions)),
    ]
    rest = {"closing_summaries": came.summaries, "closing_recovered": came.recovered}
    rest |= {"closing_failed": came.failed, "closing_unmanaged": came.unmanaged}
    parts += [say.many(key, round(number)) for key, number in rest.items() if number]
    lines = [say("list_comma").join(parts)]
    asked, sent = round(came.asked), round(came.sent)
    if asked:
        less = round(100 * max(0, asked - sent) / asked)
        lines.append(say("closing_tokens", asked=amount(asked), sent=amount(sent), less=str(less)))
    if came.paid or came.saved:
        aside = say("closing_aside", dollars=_dollars(came.paid_aside)) if came.paid_aside else ""
        more = say("closing_more", saved=_dollars(came.saved)) if came.saved else ""
        lines.append(say("closing_paid", paid=_dollars(came.paid), aside=aside, more=more))
    else:
        lines.append(say("closing_unpriced"))
    if came.compactions >= FEW and came.compactions * OFTEN >= came.requests:
        lines.append(say("closing_often"))
    return [*lines, *([say("closing_shared")] if shared else [])]


def _dollars(sum_: float) -> str:
    """Return an amount as text. Example: 1.236 -> $1.24, 0.0031 -> $0.0031"""
    return f"${sum_:,.2f}" if not sum_ or sum_ >= CENT else f"${sum_:.4f}"
