"""The page of continuity: for each preset a table of the grid. The same results give the same bytes."""

from collections.abc import Sequence
from html import escape

from everlong.lab.replay.grid import CellResult
from everlong.lab.report.numbers import grouped, percent, tokens_short
from everlong.lab.report.sheet import card, sheet, table
from everlong.lab.report.wording import Wording

__all__ = ["CONTINUITY_COLUMNS", "continuity_page"]

CONTINUITY_COLUMNS = (
    "window",
    "overhead",
    "task",
    "steps",
    "words",
    "compactions",
    "between",
    "new",
    "storms",
    "refused",
)
OURS = "auto"


def continuity_page(results: Sequence[CellResult], *, language: str = "en", facts: Sequence[str] = ()) -> str:
    """Return the page. `facts` are shown below the title."""
    say = Wording(language)
    sections = [_card(policy, results, say) for policy in dict.fromkeys(result.policy for result in results)]
    return sheet(say("continuity_title"), say("continuity_intro"), facts, sections, say)


def _card(policy: str, results: Sequence[CellResult], say: Wording) -> str:
    rows = [(_cells(result), policy == OURS) for result in results if result.policy == policy]
    head = [say(f"continuity_{name}") for name in CONTINUITY_COLUMNS]
    return card(policy, f'<p class="rule">{escape(say("continuity_rule"))}</p>{table(head, rows)}')


def _cells(result: CellResult) -> list[str]:
    stood = [_share(count, result) for count in (result.task, result.steps, result.words)]
    between = "–" if result.between_median is None else f"{result.between_least} · {result.between_median:.0f}"
    new = "–"
    if result.new_least is not None and result.new_median is not None:
        new = f"{percent(result.new_least, 0)} · {percent(result.new_median, 0)}"
    sizes = [tokens_short(result.window), tokens_short(result.overhead)]
    return [*sizes, *stood, grouped(result.compactions), between, new, *map(_wrong, (result.storms, result.refused))]


def _share(count: int, result: CellResult) -> str:
    if not result.compactions:
        return "–"
    share = f"{100 * count / result.compactions:.1f}"
    return share if count == result.compactions else f'<span class="bad">{share}</span>'


def _wrong(count: int) -> str:
    return f'<span class="bad">{grouped(count)}</span>' if count else "0"
