"""The page of resume: for each preset a plot over the windows, and a table for each window, also by project.

The terminal has the same cells. The same results give the same bytes.
"""

from collections.abc import Iterator, Sequence
from html import escape

from everlong.lab.replay.policies import UNCUT
from everlong.lab.report.numbers import grouped
from everlong.lab.report.sheet import card, details, figure, sheet, table
from everlong.lab.report.svg import Line, line_plot
from everlong.lab.report.wording import Wording
from everlong.lab.resume.needs import NEED_KINDS
from everlong.lab.resume.results import Figures, ResumeResult

__all__ = ["RESUME_COLUMNS", "resume_cells", "resume_page", "resume_source_cells"]

RESUME_COLUMNS = (
    "strategy",
    "calls",
    "calls_strict",
    "needs",
    "needs_strict",
    "edits",
    "resumed",
    "gone",
    "tokens",
    "over",
)
NOTHING = "–"


def resume_cells(result: ResumeResult) -> tuple[str, ...]:
    """Return the cells of a row after the name of its strategy."""
    figures = result.figures
    return (
        _share(figures.whole, figures.calls),
        _share(figures.whole_strict, figures.calls),
        _share(figures.there, figures.needs),
        _share(figures.there_strict, figures.needs),
        _share(figures.edits_whole, figures.edits),
        _share(figures.resumed, figures.compactions),
        f"{grouped(figures.gone)} / {grouped(figures.gone + figures.kept)}" if figures.gone + figures.kept else NOTHING,
        grouped(result.tokens),
        grouped(result.over) if result.over and result.strategy != UNCUT else NOTHING,
    )


def resume_source_cells(rows: Sequence[ResumeResult]) -> list[tuple[str, ...]]:
    """Return a row for each project: its compactions, and the calls that each strategy keeps whole, strictly."""
    return [
        (source, grouped(rows[0].sources[source].compactions), *(_calls(row.sources[source]) for row in rows))
        for source in rows[0].sources
    ]


def resume_page(results: Sequence[ResumeResult], *, language: str = "en", facts: Sequence[str] = ()) -> str:
    """Return the page. `facts` are shown below the title."""
    say = Wording(language)
    places = dict.fromkeys((result.preset, result.overhead) for result in results)
    sections = [
        _card([result for result in results if (result.preset, result.overhead) == place], say) for place in places
    ]
    return sheet(say("resume_title"), say("resume_intro"), facts, sections, say)


def _card(results: Sequence[ResumeResult], say: Wording) -> str:
    first = results[0]
    parts = [f'<p class="rule"><b>{escape(say("rule"))}</b> {escape(say("resume_rule"))}</p>', _plot(results, say)]
    for window in dict.fromkeys(result.window for result in results):
        parts += _window([result for result in results if result.window == window], say)
    title = say("resume_preset", name=first.preset, n=f"{first.overhead:,}")
    return card(title, "".join(parts))


def _plot(results: Sequence[ResumeResult], say: Wording) -> str:
    """Draw the share of calls that have everything, strictly, over the windows: a line for each strategy."""
    lines: dict[tuple[str, bool], list[ResumeResult]] = {}
    for result in results:
        if result.figures.calls:
            lines.setdefault((_name(result, say), result.played), []).append(result)
    drawn = [
        Line(
            name,
            tuple((each.window, 100 * each.figures.whole_strict / each.figures.calls) for each in along),
            ours=played,
            faint=any(2 * each.over > each.figures.compactions for each in along),
            plain=along[0].strategy == UNCUT,
        )
        for (name, played), along in lines.items()
    ]
    picture = line_plot(drawn, label=say("resume_plotted"), x_name=say("resume_window"))
    return figure(picture, say("resume_plotted")) if drawn else ""


def _window(rows: Sequence[ResumeResult], say: Wording) -> Iterator[str]:
    figures = rows[0].figures
    yield f"<h3>{escape(say('resume_in', n=f'{rows[0].window:,}'))}</h3>"
    if not figures.compactions:
        yield f"<p>{escape(say('resume_nothing'))}</p>"
        return
    counts = {"calls": f"{figures.calls:,}", "needs": f"{figures.needs:,}", "edits": f"{figures.edits:,}"}
    text = say("resume_counts", n=f"{figures.compactions:,}", **counts)
    repeats = {"after": f"{figures.after:,}", "changed": f"{figures.changed:,}"}
    text = say.joined(text, say("resume_repeats", n=f"{figures.repeated:,}", **repeats))
    yield f'<p class="hint">{escape(text)}</p>'
    named = [(escape(_name(row, say)), row) for row in rows]
    head = [say(f"resume_{name}") for name in RESUME_COLUMNS]
    yield table(head, [((name, *resume_cells(row)), row.played) for name, row in named])
    yield details(say("resume_by_kind"), _kinds(named, say))
    heads = (say("resume_source"), say("resume_compactions"), *(_name(row, say) for row in rows))
    body = [(tuple(map(escape, cells)), False) for cells in resume_source_cells(rows)]
    yield details(say("resume_by_source"), table(heads, body))


def _kinds(named: Sequence[tuple[str, ResumeResult]], say: Wording) -> str:
    kinds = [kind for kind in NEED_KINDS if kind in named[0][1].figures.kinds]
    head = (say("resume_strategy"), *(say(f"resume_kind_{kind}") for kind in kinds))
    rows = []
    for name, row in named:
        counts = (row.figures.kinds[kind] for kind in kinds)
        cells = [f"{_share(strict, needs)}<small>/ {grouped(needs)}</small>" for needs, _, strict in counts]
        rows.append(((name, *cells), row.played))
    return table(head, rows)


def _name(result: ResumeResult, say: Wording) -> str:
    return say("resume_played", name=result.strategy) if result.played else result.strategy


def _calls(figures: Figures) -> str:
    return _share(figures.whole_strict, figures.calls)


def _share(count: int, total: int) -> str:
    return f"{100 * count / total:.1f}" if total else NOTHING
