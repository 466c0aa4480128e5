"""Everything there is to say about one conversation before it is sent: the value that `everlong inspect` shows.

Reads a document, decides nothing, draws nothing. A conversation whose client already compacted it is weighed
whole, but measured against the window by what that client still sends.
"""

import re
from dataclasses import dataclass

from everlong.cli.maps.plan import Plan, plan_of
from everlong.cli.maps.rows import Row, State, rows_of
from everlong.core import Budget, History, head_length
from everlong.engine import SENT_AS, TokenMap, counter_for, fit_document, map_tokens
from everlong.errors import InputError
from everlong.windows import Window, window
from everlong.wire import FORMATS, Document, Problem, problems, unpack

__all__ = ["Inspection", "as_json", "inspect_document"]

#: Where request bodies say how long the answer may be.
REPLY_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

PLACE = re.compile(r"messages\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """One conversation, weighed and checked. All figures are tokens."""

    name: str
    fmt: str
    history: History
    map: TokenMap
    rows: tuple[Row, ...]
    room: Window
    budget: Budget
    #: What goes into the window now: everything, or what the client's own compaction left.
    used: int
    #: The same if the estimate is as far off as it may be.
    used_at_most: int
    #: How far off the count may be, as a share of it; 0 is exact.
    spread: float
    #: Index of the first message after the system text that is still sent.
    sent_from: int
    boundaries: tuple[int, ...]
    checked_for: str
    problems: tuple[Problem, ...]
    #: Index of the message that a problem is about, None where it is about several.
    problem_places: tuple[int | None, ...]
    warnings: tuple[str, ...]
    #: What a budget would do; None if none was given.
    plan: Plan | None = None

    @property
    def free(self) -> int:
        """What more would fit beside the reply and the margin; negative if it does not fit."""
        return min(self.budget.window - self.budget.reply - self.budget.margin, self.room.prompt) - self.used_at_most

    @property
    def head(self) -> int:
        """How many system messages stand in front."""
        return head_length(self.history)

    def is_sent(self, index: int) -> bool:
        """Whether the client still sends this message."""
        return index < self.head or index >= self.sent_from


def inspect_document(
    document: Document, *, name: str, model: str = "", target: str = "", budget: int | None = None
) -> Inspection:
    """Weigh a conversation, ask whether the provider would take it and, with a budget, what would be cut."""
    counter = counter_for(model or document.model)
    weights = map_tokens(document.messages, counter, document.tools)
    room = window(counter.model)
    head = head_length(document.messages)
    sent_from = max((at for at in document.boundaries if at > head), default=head)
    left_out = sum(message.tokens for message in weights.messages[head:sent_from])
    used = weights.total - left_out
    fmt = target or SENT_AS.get(document.fmt, document.fmt)
    found, places = _problems(document, fmt, sent_from)
    rows, plan = rows_of(weights), None
    if budget is not None:
        plan = plan_of(fit_document(document, model=model, budget=budget), rows, counter, weights.total)
    return Inspection(
        name=name,
        fmt=document.fmt,
        history=document.messages,
        map=weights,
        rows=plan.rows if plan else rows,
        plan=plan,
        room=room,
        budget=Budget.of(room.context, requested=_reply_asked(document), max_output=room.output, tools=weights.schemas),
        used=used,
        used_at_most=round(used * (1 + counter.vocabulary.spread)),
        spread=counter.vocabulary.spread,
        sent_from=sent_from,
        boundaries=document.boundaries,
        checked_for=fmt,
        problems=found,
        problem_places=places,
        warnings=document.warnings,
    )


def _problems(document: Document, fmt: str, sent_from: int) -> tuple[tuple[Problem, ...], tuple[int | None, ...]]:
    """What the provider would say to that which is sent, and which messages it means where that can be told."""
    if fmt not in FORMATS:
        raise InputError(f"no provider format {fmt!r}; known: {', '.join(sorted(FORMATS))}")
    target, head = FORMATS[fmt], head_length(document.messages)
    if fmt == document.fmt:
        payload = target.write_body(document)
        moved, sent = 0, len(document.messages)
    else:
        messages = (*document.messages[:head], *document.messages[sent_from:])
        payload = target.write_history(messages)
        moved, sent = sent_from - head, len(messages)
    found = tuple(problems(fmt, payload))
    listed = payload.get("messages")
    one_to_one = isinstance(listed, list) and len(listed) == sent
    return found, tuple(_place(problem, head, moved) if one_to_one else None for problem in found)


def _place(problem: Problem, head: int, moved: int) -> int | None:
    found = PLACE.match(problem.where)
    if found is None:
        return None
    at = int(found[1])
    return at if at < head else at + moved


def _reply_asked(document: Document) -> int | None:
    if document.fmt not in FORMATS:
        return None
    fields, _ = unpack(document.extra)
    config = fields.get("generationConfig")
    asked = [fields.get(name) for name in REPLY_FIELDS]
    asked.append(config.get("maxOutputTokens") if isinstance(config, dict) else None)
    return next((tokens for tokens in asked if isinstance(tokens, int) and not isinstance(tokens, bool)), None)


def as_json(shown: Inspection, *, picked: int = 1, conversations: int = 1) -> dict[str, object]:
    """The whole map. Keys stay; new ones may come."""
    weights, room, budget = shown.map, shown.room, shown.budget
    return {
        "file": shown.name,
        "conversation": {"picked": picked, "of": conversations},
        "format": shown.fmt,
        "model": weights.model,
        "tokens": {
            "total": weights.total,
            "used": shown.used,
            "used_at_most": shown.used_at_most,
            "exact": weights.exact,
            "vocabulary": weights.vocabulary,
            "tool_schemas": weights.schemas,
        },
        "window": {
            "tokens": room.context,
            "source": room.source,
            "known": room.known,
            "date": room.date,
            "conflicts": [{"source": source, "tokens": tokens} for source, tokens in room.conflicts],
            "reply_reserve": budget.reply,
            "margin": budget.margin,
            "free": shown.free,
        },
        "by_role": [{"role": role.value, "tokens": n, "messages": count} for role, n, count in weights.by_role],
        "by_kind": [{"kind": kind, "tokens": tokens} for kind, tokens in weights.by_kind],
        "by_tool": [
            {"tool": t.name, "calls": t.calls, "call_tokens": t.call_tokens, "result_tokens": t.result_tokens}
            for t in weights.by_tool
        ],
        "rounds": [{"start": r.start, "stop": r.stop, "tokens": r.tokens, "title": r.title} for r in weights.rounds],
        "messages": _messages(shown),
        "repeats": [
            {"ref": r.ref, "messages": list(r.messages), "tokens": r.tokens, "wasted": r.wasted, "title": r.title}
            for r in weights.repeats
        ],
        "boundaries": list(shown.boundaries),
        "checked_for": shown.checked_for,
        "problems": [
            {"where": problem.where, "text": problem.text, "message": at}
            for problem, at in zip(shown.problems, shown.problem_places, strict=True)
        ],
        "warnings": list(shown.warnings),
        **({} if shown.plan is None else {"budget": _plan(shown.plan)}),
    }


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


def _messages(shown: Inspection) -> list[dict[str, object]]:
    listed = []
    for weight, row in zip(shown.map.messages, shown.rows, strict=True):
        fields: dict[str, object] = {
            "index": weight.index,
            "role": weight.role.value,
            "kind": weight.kind,
            "tokens": weight.tokens,
            "title": weight.title,
            "tools": list(weight.tools),
            "protected": weight.protected,
            "sent": shown.is_sent(weight.index),
        }
        if row.state is not State.UNDECIDED:
            fields |= {"state": row.state.value, "after": row.after, "notes": list(row.notes)}
        listed.append(fields)
    return listed
