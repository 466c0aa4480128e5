"""The page of the benchmarks: a card for each table, with bars if it names a column to show."""

import re
from collections.abc import Sequence
from html import escape

from everlong.lab.report.sheet import card, figure, sheet, table
from everlong.lab.report.svg import Bar, bar_chart
from everlong.lab.report.wording import Wording
from everlong.lab.speed.tables import Table

__all__ = ["speed_page"]

OURS = "everlong"


def speed_page(tables: Sequence[Table], taken: str, *, about: str = "speed", language: str = "en") -> str:
    """Return the page. `taken` says when and on which machine the figures were taken; `about` is speed or capacity."""
    say = Wording(language)
    return sheet(
        say(f"{about}_title"), say(f"{about}_intro"), [taken], [_card(figures, say) for figures in tables], say
    )


def _card(figures: Table, say: Wording) -> str:
    rows = [([_marked(cell) for cell in cells], OURS in cells[0]) for cells in figures.rows]
    notes = "".join(f'<p class="rule">{_marked(note)}</p>' for note in figures.notes)
    return (
        card(_plain(figures.title), notes + _bars(figures) + table(figures.head, rows))
        if rows
        else card(say("nothing"), "")
    )


def _bars(figures: Table) -> str:
    if figures.shown is None:
        return ""
    bars = [
        Bar(_plain(name), value, label, ours=OURS in name)
        for name, value, label in zip(
            (row[0] for row in figures.rows), figures.shown.values, figures.shown.labels, strict=True
        )
    ]
    return f"<h3>{escape(figures.shown.title)}</h3>{figure(bar_chart(bars, label=figures.shown.title))}"


def _marked(text: str) -> str:
    """Return Markdown's code and bold as HTML. Example: "**a** `b`" -> "<b>a</b> <code>b</code>" """
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", coded)


def _plain(text: str) -> str:
    return re.sub(r"[`*]", "", text)
