"""The page of the measures: a card for each measure and data set.

A card states the rule, draws a line for each strategy over the budgets and a bar for each at the smallest budget, and
lists the figures in tables. Strategies that send more than the budget are shown separately. The same results give the
same bytes.
"""

from collections.abc import Collection, Iterator, Sequence
from html import escape

from everlong.lab.measures.measurement import Group, Result, Row
from everlong.lab.report.numbers import grouped, tokens_short
from everlong.lab.report.sheet import card, details, figure, sheet, table
from everlong.lab.report.svg import Bar, Line, bar_chart, line_plot
from everlong.lab.report.wording import Wording

__all__ = ["measures_page"]

OURS = frozenset({"auto"})


def measures_page(
    results: Sequence[Result], *, language: str = "en", facts: Sequence[str] = (), ours: Collection[str] = OURS
) -> str:
    """Return the page. `facts` are shown below the title (a date, a machine); strategies in `ours` come first."""
    say = Wording(language)
    together: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        together.setdefault((result.measure, result.data, result.half), []).append(result)
    sections = [_card(group, say, ours) for group in together.values()]
    if not sections:
        sections = [card(say("nothing"), "")]
    return sheet(say("title"), say("intro"), facts, sections, say)


def _card(results: list[Result], say: Wording, ours: Collection[str]) -> str:
    result = results[0]
    title = f"{say.known(result.measure, result.measure)} · {result.data}"
    counted = f"cases_{result.measure}"
    cases = say(counted if say.has(counted) else "cases", n=f"{result.total:,}")
    facts = (say.known(f"half_{result.half}", result.half), say("conversations", n=f"{result.conversations:,}"), cases)
    parts = [_rule(result, say), _lines(results, say, ours), _bars(results, say, ours), _shares(results, say, ours)]
    parts += [details(say("all_figures"), _figures(results, say, ours)), *_groups(results, say, ours)]
    return card(title, "".join(parts), facts)


def _rule(result: Result, say: Wording) -> str:
    texts = [say.known(f"rule_{result.measure}", "")]
    if result.total and result.uncut < result.total:
        texts.append(say("ceiling_hint", share=f"{100 * result.uncut / result.total:.1f} %"))
    rule = " ".join(filter(None, texts))
    return f'<p class="rule"><b>{escape(say("rule"))}</b> {escape(rule)}</p>' if rule else ""


def _lines(results: list[Result], say: Wording, ours: Collection[str]) -> str:
    lines = [
        Line(
            result.strategy,
            tuple((row.budget, row.percent) for row in result.rows),
            result.strategy in ours,
            any(map(_mostly_over, result.rows)),
        )
        for result in results
    ]
    total, uncut = results[0].total, results[0].uncut
    ceiling = (say("ceiling"), 100 * uncut / total) if total and uncut < total else None
    return figure(line_plot(lines, label=say("still_there"), x_name=say("budget"), ceiling=ceiling))


def _smallest(results: list[Result]) -> int:
    """Return the smallest budget that all have, else the smallest of any."""
    each = [{row.budget for row in result.rows} for result in results]
    shared = set.intersection(*each) or set.union(*each)
    return min(shared, default=0)


def _at(result: Result, budget: int) -> Row | None:
    return next((row for row in result.rows if row.budget == budget), None)


def _bars(results: list[Result], say: Wording, ours: Collection[str]) -> str:
    budget = _smallest(results)
    pairs = [(result, row) for result in results if (row := _at(result, budget))]
    pairs.sort(key=lambda pair: (_mostly_over(pair[1]), -pair[1].percent))
    bars = [
        Bar(
            result.strategy,
            row.percent,
            _ending(row, say),
            row.strict_percent,
            result.strategy in ours,
            _mostly_over(row),
        )
        for result, row in pairs
    ]
    notes = [say("strict")] if any(row.strict != row.hits for _, row in pairs) else []
    notes += [say("mostly_over")] if any(bar.faint for bar in bars) else []
    title = say("at_budget", n=f"{budget:,}")
    picture = bar_chart(bars, label=title, most=100)
    return f"<h3>{escape(title)}</h3>{figure(picture, ' '.join(notes))}"


def _mostly_over(row: Row) -> bool:
    """Return whether more than half of the selections exceeded the budget."""
    return 2 * row.over > row.total


def _ending(row: Row, say: Wording) -> str:
    """Return the label at the end of a bar. Example: "54.3 % · over the budget 2 of 24" """
    words = [f"{row.percent:.1f} %"]
    if row.over:
        words.append(say("over", n=f"{row.over:,}", all=f"{row.total:,}"))
    if row.failed:
        words.append(say("failed", n=f"{row.failed:,}"))
    return " · ".join(words)


def _shares(results: list[Result], say: Wording, ours: Collection[str]) -> str:
    """Return a table of percentages, one column per budget; the strict figure next to it if it differs."""
    budgets = sorted({row.budget for result in results for row in result.rows})
    rows = []
    for result in results:
        cells = [_share(_at(result, budget)) for budget in budgets]
        rows.append(([escape(result.strategy), *cells], result.strategy in ours))
    title = f"<h3>{escape(say('still_there'))}</h3>"
    return title + table((say("column_strategy"), *map(tokens_short, budgets)), rows)


def _share(row: Row | None) -> str:
    if row is None:
        return "–"
    strict = f"<small>({row.strict_percent:.1f})</small>" if row.strict != row.hits else ""
    return f"{row.percent:.1f}{strict}"


COLUMNS = ("strategy", "budget", "hits", "strict", "total", "recall", "ms", "tokens", "over", "failed")


def _figures(results: list[Result], say: Wording, ours: Collection[str]) -> str:
    rows = [
        (
            (
                escape(result.strategy),
                grouped(row.budget),
                grouped(row.hits),
                grouped(row.strict),
                grouped(row.total),
                "–" if row.recall is None else f"{100 * row.recall:.1f}",
                f"{row.milliseconds:.1f}",
                grouped(row.tokens),
                grouped(row.over),
                grouped(row.failed),
            ),
            result.strategy in ours,
        )
        for result in results
        for row in result.rows
    ]
    return table([say(f"column_{name}") for name in COLUMNS], rows)


def _groups(results: list[Result], say: Wording, ours: Collection[str]) -> Iterator[str]:
    """Yield a table of the smallest budget for each grouping of its cases."""
    budget = _smallest(results)
    pairs = [(result, row) for result in results if (row := _at(result, budget))]
    for way in dict.fromkeys(group.of for _, row in pairs for group in row.groups):
        names = list(dict.fromkeys(group.name for _, row in pairs for group in row.groups if group.of == way))
        rows = []
        for result, row in pairs:
            groups = {group.name: group for group in row.groups if group.of == way}
            cells = [_group(groups.get(name)) for name in names]
            rows.append(([escape(result.strategy), *cells], result.strategy in ours))
        title = say("by", what=say.known(f"by_{way}", way), n=f"{budget:,}")
        yield details(title, table((say("column_strategy"), *names), rows))


def _group(group: Group | None) -> str:
    if group is None or not group.total:
        return "–"
    return f"{100 * group.hits / group.total:.1f}<small>/ {grouped(group.total)}</small>"
