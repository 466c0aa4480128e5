"""What conversations cost, summed from the usage that was recorded."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from everlong.core import Event, EventKind

__all__ = ["Spent", "spent_on"]


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls and tokens of one model. `cost` is in US dollars; `unpriced` counts calls without a known price."""

    model: str
    calls: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0
    cost: float = 0.0
    unpriced: int = 0


def spent_on(events: Iterable[Event]) -> list[Spent]:
    """What was spent on each model, the dearest first."""
    spent: dict[str, Spent] = {}
    for event in events:
        if event.kind is not EventKind.USAGE_RECORDED:
            continue
        so_far = spent.get(event.model, Spent(event.model))
        spent[event.model] = replace(
            so_far,
            calls=so_far.calls + 1,
            prompt=so_far.prompt + (event.tokens_before or 0),
            cached=so_far.cached + _cached(event),
            output=so_far.output + (event.tokens_after or 0),
            cost=so_far.cost + (event.cost or 0.0),
            unpriced=so_far.unpriced + (event.cost is None),
        )
    return sorted(spent.values(), key=lambda one: (-one.cost, -one.prompt, one.model))


def _cached(event: Event) -> int:
    """How much of the prompt was cached; 0 where the event does not say."""
    try:
        more = json.loads(event.data)
    except ValueError:
        return 0
    cached = more.get("cached") if isinstance(more, dict) else None
    return cached if isinstance(cached, int) else 0
