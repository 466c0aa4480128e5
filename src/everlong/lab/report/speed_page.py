"""What everlong costs beside its peers, as one page: a card a table, bars where one column tells the story."""

import re
from collections.abc import Sequence
from html import escape

from everlong.lab.report.sheet import card, figure, sheet, table
from everlong.lab.report.svg import Bar, bar_chart
from everlong.lab.report.wording import Wording
from everlong.lab.speed.tables import Table

__all__ = ["speed_page"]

OURS = "everlong"


def speed_page(tables: Sequence[Table], taken: str, *, language: str = "en") -> str:
    """The page. `taken` says when and on what the figures were taken."""
    say = Wording(language)
    return sheet(say("speed_title"), say("speed_intro"), [taken], [_card(one, say) for one in tables], say)


def _card(one: Table, say: Wording) -> str:
    rows = [([_marked(cell) for cell in cells], OURS in cells[0]) for cells in one.rows]
    notes = "".join(f'<p class="rule">{_marked(note)}</p>' for note in one.notes)
    return card(_plain(one.title), notes + _bars(one) + table(one.head, rows)) if rows else card(say("nothing"), "")


def _bars(one: Table) -> str:
    if one.shown is None:
        return ""
    bars = [
        Bar(_plain(name), value, label, ours=OURS in name)
        for name, value, label in zip((row[0] for row in one.rows), one.shown.values, one.shown.labels, strict=True)
    ]
    return f"<h3>{escape(one.shown.title)}</h3>{figure(bar_chart(bars, label=one.shown.title))}"


def _marked(text: str) -> str:
    """Markdown's code and bold as HTML. Example: "**a** `b`" -> "<b>a</b> <code>b</code>" """
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", coded)


def _plain(text: str) -> str:
    return re.sub(r"[`*]", "", text)
