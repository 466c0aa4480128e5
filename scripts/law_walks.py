"""Walks through one conversation that check the laws: on views from scratch, and on a view that grows.

Every chosen prefix is cut to several budgets. The growing walk makes a view wherever a client would send a request, and
passes each view to the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from everlong.compress import Preset
from everlong.core import History
from everlong.engine import View, ViewOptions, counter_for, view_of
from everlong.errors import BudgetImpossible
from everlong.windows import window
from laws import Broken, broken_laws, differs, moved_prefix, requests

__all__ = ["BUDGETS", "Found", "Walk", "walk"]

BUDGETS = (2_000, 8_000, 32_000)  # tokens; `walk` adds half of the model's window
USUAL_PREFIXES = 3  # per conversation, unless `every` is set
FEWEST_SAVED = 0.5  # law 7: the second attempt gets this share of the first one's tokens


@dataclass(frozen=True, slots=True)
class Found:
    """A broken law and where: the length of the prefix, the format and the budget."""

    broken: Broken
    length: int
    fmt: str
    budget: int


@dataclass(slots=True)
class Walk:
    """What to check, and what was found."""

    preset: Preset
    formats: tuple[str, ...]
    model: str = ""
    every: int = 0  # 0: a few prefixes of each conversation
    views: int = 0
    impossible: int = 0
    found: list[Found] = field(default_factory=list)

    def wish(self, fmt: str, limit: int, *, deep: bool = False) -> ViewOptions:
        """Return the options of a view. A cut goes down to the limit, with `deep` to half of it."""
        counter = counter_for(self.model)
        target = limit // 2 if deep else limit
        context = window(self.model).context
        return ViewOptions(counter=counter, limit=limit, target=target, preset=self.preset, window=context, fmt=fmt)

    def note(self, broken: Iterator[Broken] | list[Broken], length: int, wish: ViewOptions) -> None:
        """Record broken laws."""
        self.found += [Found(each, length, wish.fmt, wish.limit) for each in broken]

    def view(self, history: History, wish: ViewOptions, previous: View | None = None) -> View | None:
        """Return the view; None if the budget is impossible, which the error must show with figures."""
        self.views += 1
        try:
            return view_of(history, wish, previous)
        except BudgetImpossible as error:
            self.impossible += 1
            if not error.parts or error.needed <= error.limit or error.limit != wish.limit:
                self.note([Broken(2, f"an error that does not add up: {error}")], len(history), wish)
            return None


def walk(history: History, what: Walk) -> None:
    """Do both walks, in every format and budget."""
    budgets = (*BUDGETS, window(what.model).context // 2)
    points = _prefixes(len(history), what.every)
    for fmt in what.formats:
        for budget in budgets:
            for length in points:
                _from_scratch(history[:length], what.wish(fmt, budget), what)
            _growing(history, what.wish(fmt, budget, deep=True), what)


def _prefixes(length: int, every: int) -> list[int]:
    step = every or max(1, -(-length // USUAL_PREFIXES))
    return sorted({*range(step, length + 1, step), length} - {0})


def _from_scratch(history: History, wish: ViewOptions, what: Walk) -> None:
    view = what.view(history, wish)
    if view is None:
        return
    what.note(broken_laws(view, wish), len(history), wish)
    again = what.view(history, wish)
    if again is not None:
        what.note(differs(view, again), len(history), wish)
    _shrinking(history, view, wish, what)


def _shrinking(history: History, view: View, wish: ViewOptions, what: Walk) -> None:
    """Check law 7: with a smaller limit, the view is smaller or an error says why not."""
    smaller = what.wish(wish.fmt, int(view.tokens * FEWEST_SAVED))
    after = what.view(history, smaller) if smaller.limit else None
    if after is not None and after.tokens >= view.tokens:
        what.note([Broken(7, f"{view.tokens:,} tokens, and not fewer when asked")], len(history), wish)


def _growing(history: History, wish: ViewOptions, what: Walk) -> None:
    """Check law 6 at every request, and the other laws at some of them."""
    asked = requests(history)
    looked_at = set(asked[:: what.every or max(1, len(asked) // USUAL_PREFIXES)])
    before: View | None = None
    for length in asked:
        view = what.view(history[:length], wish, before)
        if view is None:
            continue
        if before is not None and not wish.preset.every_call:
            what.note(moved_prefix(before, view, wish.fmt, in_bytes=length in looked_at), length, wish)
        if length in looked_at:
            what.note(broken_laws(view, wish), length, wish)
        before = view
