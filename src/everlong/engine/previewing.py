"""What would be sent now, looked at without sending it: for meters and panels. Nothing is kept, nobody is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from everlong.core import Message, Point, Recalled, Role
from everlong.engine.calls import Call, Prepared
from everlong.engine.live import pinned_texts, refreshed
from everlong.engine.means import Means
from everlong.engine.preparing import prepared_from, standing
from everlong.engine.work import Work, work_on
from everlong.windows import Window

__all__ = ["Certainty", "Preview", "preview"]

#: reported: the provider has counted all but the news. counted: by the model's own vocabulary. estimated: neither.
Certainty: TypeAlias = Literal["reported", "counted", "estimated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The next request as it stands, before any cut. All figures are tokens as the provider reckons them.

    `limit` is what a request may take, `high` where a cut is due, `parts` where the tokens go: system, standing,
    tools, pinned, summary, recalled, user, assistant, results. `covered` counts messages behind the newest point.
    """

    tokens: int
    limit: int
    high: int
    window: Window
    certainty: Certainty
    parts: Mapping[str, int]
    messages: int
    covered: int
    #: The request itself, if it were sent as it stands.
    prepared: Prepared | None = None


def preview(means: Means, thread: str, call: Call) -> Preview:
    """How full the window is. Raises BudgetImpossible where reply and tools leave no room at all."""
    with means.lives.lock(thread):
        live = refreshed(means.threads, thread, means.lives.get(thread))
        work = work_on(means, live, call, means.journal(thread), "")
        view = standing(work)
        sizes, budget = work.sizes, work.sizes.budget
        anchored = sizes.gauge.anchor is not None
        certainty: Certainty = "reported" if anchored else "counted" if sizes.counter.exact else "estimated"
        point = None if live.opened.point is None else live.opened.point.entry
        return Preview(
            tokens=sizes.true(view.tokens),
            limit=budget.window - budget.reply - budget.margin,
            high=int(sizes.room * budget.high) + budget.tools,
            window=sizes.window,
            certainty=certainty,
            parts={name: size for name, size in _parts(work).items() if size},
            messages=live.opened.thread.messages,
            covered=point.boundary if isinstance(point, Point) else 0,
            prepared=prepared_from(work, view),
        )


def _parts(work: Work) -> dict[str, int]:
    """Counted tokens by what they are, brought to the provider's scale together."""
    live, count = work.live, work.sizes.counter.message
    opened = live.opened
    parts = dict.fromkeys(
        ("system", "standing", "tools", "pinned", "summary", "recalled", "user", "assistant", "results"), 0
    )
    parts["tools"] = work.sizes.budget.tools - work.sizes.beside
    parts["standing"] = work.sizes.beside
    parts["system"] = sum(count(row.entry) for row in opened.head if isinstance(row.entry, Message))
    parts["pinned"] = sum(map(count, pinned_texts(opened.pins)))
    parts["pinned"] += sum(count(row.entry) for row in live.held if isinstance(row.entry, Message))
    if opened.point is not None and isinstance(opened.point.entry, Point):
        parts["summary"] = sum(map(count, opened.point.entry.summary))
    newest = -1 if opened.point is None else opened.point.order
    for row in opened.rows:
        match row.entry:
            case Message() as message:
                parts[NAMES[message.role]] += count(message)
            case Recalled(message=message) if row.order > newest:
                parts["recalled"] += count(message)
            case _:
                pass
    counted = sum(parts.values())
    scale = work.sizes.gauge.true(counted) / counted if counted else 1.0
    return {name: round(size * scale) for name, size in parts.items()}


NAMES = {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: "results"}
