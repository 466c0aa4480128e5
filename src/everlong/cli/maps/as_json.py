"""An `Inspection` as JSON for scripts: every message, every figure, no words of ours but reasons."""

from everlong.cli.maps.inspection import Inspection
from everlong.cli.maps.plan import Plan
from everlong.cli.maps.rows import State

__all__ = ["as_json"]


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
