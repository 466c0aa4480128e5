"""What the measures found, as one page: a card for each measure and data set.

A card says the rule, then draws a line for each strategy over the budgets, a bar for each at the smallest budget, and
gives the figures as tables. Who sends more than the budget stands apart. Same results, same bytes.
"""

from collections.abc import Collection, Iterator, Sequence
from html import escape

from everlong.lab.measures.measurement import Group, Result, Row
from everlong.lab.report.numbers import grouped, tokens_short
from everlong.lab.report.sheet import card, figure, sheet, table
from everlong.lab.report.svg import Bar, Line, bar_chart, line_plot
from everlong.lab.report.wording import Wording

__all__ = ["measures_page"]

OURS = frozenset({"auto"})


def measures_page(
    results: Sequence[Result], *, language: str = "en", facts: Sequence[str] = (), ours: Collection[str] = OURS
) -> str:
    """The page. `facts` stand under the title (a date, a machine); strategies in `ours` stand in front."""
    say = Wording(language)
    together: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        together.setdefault((result.measure, result.data, result.half), []).append(result)
    sections = [_card(group, say, ours) for group in together.values()]
    if not sections:
        sections = [card(say("nothing"), "")]
    return sheet(say("title"), say("intro"), facts, sections, say)


def _card(results: list[Result], say: Wording, ours: Collection[str]) -> str:
    one = results[0]
    title = f"{say.known(one.measure, one.measure)} · {one.data}"
    cases = say(f"cases_{one.measure}" if f"rule_{one.measure}" in _RULES else "cases", n=f"{one.total:,}")
    facts = (say.known(f"half_{one.half}", one.half), say("conversations", n=f"{one.conversations:,}"), cases)
    parts = [_rule(one, say), _lines(results, say, ours), _bars(results, say, ours), _shares(results, say, ours)]
    parts += [_details(say("all_figures"), _figures(results, say, ours)), *_groups(results, say, ours)]
    return card(title, "".join(parts), facts)


_RULES = ("rule_probes", "rule_edits", "rule_dialogs")


def _rule(one: Result, say: Wording) -> str:
    texts = [say.known(f"rule_{one.measure}", "")]
    if one.total and one.uncut < one.total:
        texts.append(say("ceiling_hint", share=f"{100 * one.uncut / one.total:.1f} %"))
    said = " ".join(filter(None, texts))
    return f'<p class="rule"><b>{escape(say("rule"))}</b> {escape(said)}</p>' if said else ""


def _lines(results: list[Result], say: Wording, ours: Collection[str]) -> str:
    lines = [
        Line(
            one.strategy,
            tuple((row.budget, row.percent) for row in one.rows),
            one.strategy in ours,
            any(map(_mostly_over, one.rows)),
        )
        for one in results
    ]
    total, uncut = results[0].total, results[0].uncut
    ceiling = (say("ceiling"), 100 * uncut / total) if total and uncut < total else None
    return figure(line_plot(lines, label=say("still_there"), x_name=say("budget"), ceiling=ceiling))


def _smallest(results: list[Result]) -> int:
    """The smallest budget that all have, else the smallest of any."""
    each = [{row.budget for row in one.rows} for one in results]
    shared = set.intersection(*each) or set.union(*each)
    return min(shared, default=0)


def _at(result: Result, budget: int) -> Row | None:
    return next((row for row in result.rows if row.budget == budget), None)


def _bars(results: list[Result], say: Wording, ours: Collection[str]) -> str:
    budget = _smallest(results)
    found = [(one, row) for one in results if (row := _at(one, budget))]
    found.sort(key=lambda pair: (_mostly_over(pair[1]), -pair[1].percent))
    bars = [
        Bar(one.strategy, row.percent, _ending(row, say), row.strict_percent, one.strategy in ours, _mostly_over(row))
        for one, row in found
    ]
    notes = [say("strict")] if any(row.strict != row.hits for _, row in found) else []
    notes += [say("mostly_over")] if any(bar.faint for bar in bars) else []
    title = say("at_budget", n=f"{budget:,}")
    picture = bar_chart(bars, label=title, most=100)
    return f"<h3>{escape(title)}</h3>{figure(picture, ' '.join(notes))}"


def _mostly_over(row: Row) -> bool:
    """Whether the figure was bought with more than the budget."""
    return 2 * row.over > row.total


def _ending(row: Row, say: Wording) -> str:
    """What is said at the end of a bar. Example: "54.3 % · over the budget 2 of 24" """
    said = [f"{row.percent:.1f} %"]
    if row.over:
        said.append(say("over", n=f"{row.over:,}", all=f"{row.total:,}"))
    if row.failed:
        said.append(say("failed", n=f"{row.failed:,}"))
    return " · ".join(said)


def _shares(results: list[Result], say: Wording, ours: Collection[str]) -> str:
    """Percent, a column a budget; strict beside it where it differs."""
    budgets = sorted({row.budget for one in results for row in one.rows})
    rows = []
    for one in results:
        cells = [_share(_at(one, budget)) for budget in budgets]
        rows.append(([escape(one.strategy), *cells], one.strategy in ours))
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
                escape(one.strategy),
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
            one.strategy in ours,
        )
        for one in results
        for row in one.rows
    ]
    return table([say(f"column_{name}") for name in COLUMNS], rows)


def _groups(results: list[Result], say: Wording, ours: Collection[str]) -> Iterator[str]:
    """The smallest budget split up, once for each way it was split."""
    budget = _smallest(results)
    found = [(one, row) for one in results if (row := _at(one, budget))]
    for way in dict.fromkeys(group.of for _, row in found for group in row.groups):
        names = list(dict.fromkeys(group.name for _, row in found for group in row.groups if group.of == way))
        rows = []
        for one, row in found:
            groups = {group.name: group for group in row.groups if group.of == way}
            cells = [_group(groups.get(name)) for name in names]
            rows.append(([escape(one.strategy), *cells], one.strategy in ours))
        title = say("by", what=say.known(f"by_{way}", way), n=f"{budget:,}")
        yield _details(title, table((say("column_strategy"), *names), rows))


def _group(group: Group | None) -> str:
    if group is None or not group.total:
        return "–"
    return f"{100 * group.hits / group.total:.1f}<small>/ {grouped(group.total)}</small>"


def _details(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>"
