"""What `everlong inspect` shows of a conversation, as one value and as JSON. Draws nothing.

A conversation that its client has already compacted is counted in full, but compared with the window by what that
client still sends.
"""

import re
from dataclasses import dataclass

from everlong.cli.maps.rows import Plan, Row, State, plan_of, rows_of
from everlong.core import Budget, History, Json, head_length
from everlong.engine import (
    DEFAULT_SETTINGS,
    Call,
    Meter,
    Settings,
    TokenMap,
    counter_for,
    due_at,
    fit_document,
    map_tokens,
)
from everlong.errors import BudgetImpossible, InputError
from everlong.store import MemoryThreads
from everlong.tokens import Counter
from everlong.windows import Window, window
from everlong.wire import FORMATS, Document, Problem, problems, sent_as, unpack

__all__ = ["Inspection", "as_json", "inspect_document"]

PLACE = re.compile(r"messages\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A conversation, counted and checked. All figures are tokens."""

    name: str
    fmt: str
    history: History
    map: TokenMap
    rows: tuple[Row, ...]
    window: Window
    budget: Budget
    #: How full the window is with what is sent now: everything, or what the client's own compaction left.
    meter: Meter
    #: The tokens of the meter at the upper end of the estimate.
    used_at_most: int
    #: How far the count may be off, as a share of it; 0 means exact.
    spread: float
    #: Index of the first message after the system text that is still sent.
    sent_from: int
    boundaries: tuple[int, ...]
    checked_for: str
    problems: tuple[Problem, ...]
    #: The message that each problem is about; None if it is about several.
    problem_places: tuple[int | None, ...]
    warnings: tuple[str, ...]
    #: What a budget would do; None if none was given, or if it is impossible.
    plan: Plan | None = None
    #: Why the given budget is impossible.
    impossible: BudgetImpossible | None = None

    @property
    def free(self) -> int:
        """The tokens that reply and margin leave free; negative if the conversation does not fit."""
        return min(self.budget.window - self.budget.reply - self.budget.margin, self.window.prompt) - self.used_at_most

    @property
    def head(self) -> int:
        """The number of system messages at the beginning."""
        return head_length(self.history)

    def is_sent(self, index: int) -> bool:
        """Return whether the client still sends this message."""
        return index < self.head or index >= self.sent_from


def inspect_document(  # noqa: PLR0913 - one parameter an option
    document: Document,
    *,
    name: str,
    model: str = "",
    target: str = "",
    budget: int | None = None,
    planned: bool = False,
    settings: Settings = DEFAULT_SETTINGS,
) -> Inspection:
    """Count a conversation, check it by a provider's rules and, with a budget, find out what would be left out.

    `planned` without a budget plans for what the model's window leaves beside the reply.
    """
    counter = counter_for(model or document.model)
    weights = map_tokens(document.messages, counter, document.tools)
    limits = window(counter.model, override=settings.window, default=settings.assumed_window)
    head = head_length(document.messages)
    sent_from = max((at for at in document.boundaries if at > head), default=head)
    left_out = sum(message.tokens for message in weights.messages[head:sent_from])
    used = weights.total - left_out
    fmt = target or sent_as(document)
    rejected, places = _problems(document, fmt, sent_from)
    rows, plan, impossible = rows_of(weights), None, None
    if budget is not None or planned:
        try:
            rules = "off" if settings.mode == "off" else settings.rules
            fitted = fit_document(document, model=model, budget=budget, preset=rules, semantic=settings.semantic)
            plan = plan_of(fitted, rows, counter, weights.total)
        except BudgetImpossible as error:
            impossible = error
    return Inspection(
        name=name,
        fmt=document.fmt,
        history=document.messages,
        map=weights,
        rows=plan.rows if plan else rows,
        plan=plan,
        impossible=impossible,
        window=limits,
        budget=Budget.of(
            limits.context, requested=_reply_tokens(document), max_output=limits.output, tools=weights.schemas
        ),
        meter=Meter(
            tokens=used,
            limit=limits.context,
            exact=False,
            known=limits.known,
            threshold=_threshold(document, counter, settings),
        ),
        used_at_most=round(used * (1 + counter.vocabulary.spread)),
        spread=counter.vocabulary.spread,
        sent_from=sent_from,
        boundaries=document.boundaries,
        checked_for=fmt,
        problems=rejected,
        problem_places=places,
        warnings=document.warnings,
    )


def _problems(document: Document, fmt: str, sent_from: int) -> tuple[tuple[Problem, ...], tuple[int | None, ...]]:
    """Return what the provider would reject in what is sent, and the message of each problem, if known."""
    if fmt not in FORMATS:
        raise InputError(f"there is no format {fmt!r}; known: {', '.join(sorted(FORMATS))}")
    target, head = FORMATS[fmt], head_length(document.messages)
    if fmt == document.fmt:
        payload = target.write_body(document)
        moved, sent = 0, len(document.messages)
    else:
        messages = (*document.messages[:head], *document.messages[sent_from:])
        payload = target.write_history(messages)
        moved, sent = sent_from - head, len(messages)
    rejected = tuple(problems(fmt, payload))
    listed = payload.get("messages")
    one_to_one = isinstance(listed, list) and len(listed) == sent
    return rejected, tuple(_place(problem, head, moved) if one_to_one else None for problem in rejected)


def _place(problem: Problem, head: int, moved: int) -> int | None:
    place = PLACE.match(problem.where)
    if place is None:
        return None
    at = int(place[1])
    return at if at < head else at + moved


def _threshold(document: Document, counter: Counter, settings: Settings) -> int | None:
    """Return the tokens from which the engine would compact; None if reply and tools leave nothing for messages."""
    call = Call(model=counter.model, tools=document.tools, max_tokens=_reply_tokens(document))
    try:
        return due_at(MemoryThreads(), settings, call)
    except BudgetImpossible:
        return None


def _reply_tokens(document: Document) -> int | None:
    """Return the tokens that a request body allows for the answer; None if it does not say."""
    if document.fmt not in FORMATS:
        return None
    fields, _ = unpack(document.extra)
    limits = (_field(fields, path) for path in FORMATS[document.fmt].api.lengths)
    return next((tokens for tokens in limits if isinstance(tokens, int) and not isinstance(tokens, bool)), None)


def _field(fields: Json, path: str) -> Json:
    """Return a field of a body. Example: path "generationConfig.maxOutputTokens" """
    for name in path.split("."):
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields


def as_json(inspection: Inspection, *, picked: int = 1, conversations: int = 1) -> dict[str, object]:
    """Return the whole map for scripts. Existing keys never change; new ones may be added."""
    weights, limits, budget = inspection.map, inspection.window, inspection.budget
    return {
        "file": inspection.name,
        "conversation": {"picked": picked, "of": conversations},
        "format": inspection.fmt,
        "model": weights.model,
        "tokens": {
            "total": weights.total,
            "used": inspection.meter.tokens,
            "used_at_most": inspection.used_at_most,
            "exact": weights.exact,
            "vocabulary": weights.vocabulary,
            "tool_schemas": weights.schemas,
        },
        "window": {
            "tokens": limits.context,
            "source": limits.source,
            "known": limits.known,
            "date": limits.date,
            "conflicts": [{"source": source, "tokens": tokens} for source, tokens in limits.conflicts],
            "reply_reserve": budget.reply,
            "margin": budget.margin,
            "free": inspection.free,
            "threshold": inspection.meter.threshold,
        },
        "by_role": [{"role": role.value, "tokens": n, "messages": count} for role, n, count in weights.by_role],
        "by_kind": [{"kind": kind, "tokens": tokens} for kind, tokens in weights.by_kind],
        "by_tool": [
            {"tool": t.name, "calls": t.calls, "call_tokens": t.call_tokens, "result_tokens": t.result_tokens}
            for t in weights.by_tool
        ],
        "rounds": [{"start": r.start, "stop": r.stop, "tokens": r.tokens, "title": r.title} for r in weights.rounds],
        "messages": _messages(inspection),
        "repeats": [
            {"ref": r.ref, "messages": list(r.messages), "tokens": r.tokens, "wasted": r.wasted, "title": r.title}
            for r in weights.repeats
        ],
        "boundaries": list(inspection.boundaries),
        "checked_for": inspection.checked_for,
        "problems": [
            {"where": problem.where, "text": problem.text, "message": at}
            for problem, at in zip(inspection.problems, inspection.problem_places, strict=True)
        ],
        "warnings": list(inspection.warnings),
        **({} if inspection.plan is None else {"budget": _plan(inspection.plan)}),
        **({} if inspection.impossible is None else {"budget": _impossible(inspection.impossible)}),
    }


def _impossible(error: BudgetImpossible) -> dict[str, object]:
    parts = [{"what": name, "tokens": tokens} for name, tokens in error.parts]
    return {"tokens": error.limit, "impossible": str(error), "needed": error.needed, "parts": parts}


def _plan(plan: Plan) -> dict[str, object]:
    return {
        "tokens": plan.budget,
        "before": plan.before,
        "after": plan.tokens,
        "edits": [
            {
                "message": edit.at,
                "part": edit.part,
                "step": edit.step,
                "action": edit.action.value,
                "reason": edit.reason,
                "before": edit.before,
                "after": edit.after,
                "ref": edit.ref,
            }
            for edit in plan.edits
        ],
        "added": [{"before_message": row.index, "tokens": row.tokens, "title": row.title} for row in plan.added],
    }


def _messages(inspection: Inspection) -> list[dict[str, object]]:
    listed = []
    for weight, row in zip(inspection.map.messages, inspection.rows, strict=True):
        fields: dict[str, object] = {
            "index": weight.index,
            "role": weight.role.value,
            "kind": weight.kind,
            "tokens": weight.tokens,
            "title": weight.title,
            "tools": list(weight.tools),
            "protected": weight.protected,
            "sent": inspection.is_sent(weight.index),
        }
        if row.state is not State.UNDECIDED:
            fields |= {"state": row.state.value, "after": row.after, "notes": list(row.notes)}
        listed.append(fields)
    return listed
