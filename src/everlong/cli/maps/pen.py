"""The drawing tools of a token map on a terminal: coloured cells, bars, headings, tables. Knows no conversations.

Without colours (a pipe, NO_COLOR) letters stand for the categories.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from everlong.cli.maps.rows import SCHEMAS, Segment, State, cells_of
from everlong.cli.terminal.tables import amount, bar
from everlong.cli.words.wording import Words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["BOUNDARY", "FREE", "REPLY", "Pen"]

WIDE = 100  # columns; from here on bars are longer
FREE, REPLY, BOUNDARY = "free", "reply", "boundary"


@dataclass(frozen=True, slots=True)
class Look:
    """A cell: its style and sign with colours, and its letter without."""

    style: str
    letter: str
    sign: str = "█"


LOOKS: dict[str, Look] = {
    SCHEMAS: Look("#8a94a3", "#"),
    "system": Look("#64708a", "S"),
    "user": Look("#e08a3c", "U"),
    "assistant": Look("#5b7fd6", "A"),
    "reasoning": Look("#a9b9ea", "r"),
    "calls": Look("#1f8a80", "c"),
    "results": Look("#6bbcae", "="),
    "images": Look("#d0709c", "i"),
    "other": Look("#a39c94", "?"),
    FREE: Look("dim", "·", "─"),
    REPLY: Look("dim", "%", "╌"),
    BOUNDARY: Look("bold", "¦", "┃"),
    State.STAYS.value: Look("#4f9d69", "|"),
    State.TRIMMED.value: Look("#d9a53a", "~"),
    State.GOES.value: Look("dim", ".", "·"),
}


@dataclass(frozen=True)
class Pen:
    """Draws on a console in one language."""

    out: "Console"
    say: Words
    colour: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "colour", self.out.color_system is not None and not self.out.no_color)

    @property
    def width(self) -> int:
        """The columns of the terminal."""
        return self.out.width

    @property
    def _bar_width(self) -> int:
        return 24 if self.width >= WIDE else 12

    def print(self, what: "Text | Table | str" = "") -> None:
        """Print a line or a table."""
        self.out.print(what)

    def line(self, *pieces: tuple[str, str]) -> None:
        """Print a line of (text, style) pieces."""
        self.print(self.text(*pieces))

    def heading(self, title: str, beside: str = "") -> None:
        """Print a title after a blank line."""
        self.print()
        self.line((title, "bold"), (f"  {beside}" if beside else "", "dim"))

    def more(self, left: int, tokens: int | None = None) -> None:
        """Print how much a list leaves out, if anything."""
        if left <= 0:
            return
        if tokens is None:
            text = self.say("more_rows", n=amount(left))
        else:
            text = self.say("more_tokens", n=amount(left), tokens=amount(tokens))
        self.line((f"  {text} ({self.say('more_hint')})", "dim"))

    def text(self, *pieces: tuple[str, str]) -> "Text":
        """Return (text, style) pieces as one text; brackets in it are not markup."""
        from rich.text import Text  # noqa: PLC0415 - loaded when something is drawn

        return Text.assemble(*pieces)

    def named(self, text: str, category: str) -> "Text":
        """Return a text in the colour of a category."""
        return self.text((text, LOOKS[category].style if self.colour else ""))

    def bar(self, part: int, whole: int, category: str, width: int = 0) -> "Text":
        """Return a bar for a column of its own."""
        width = width if width > 0 else self._bar_width
        return self.named(bar(part, whole, width).ljust(width), category)

    def ribbon(self, segments: Sequence[Segment], whole: int) -> "Text":
        """Return a bar that shows what it is made of; without colours, a plain bar."""
        tokens = sum(size for _, size in segments)
        if not self.colour:
            return self.bar(tokens, whole, SCHEMAS)
        width = self._bar_width
        drawn = self.cells(cells_of(segments, max(1, round(width * tokens / whole)) if whole else 0))
        drawn.pad_right(width - len(drawn))
        return drawn

    def cells(self, names: Iterable[str]) -> "Text":
        """Return one sign for each cell."""
        line = self.text()
        for look in (LOOKS[name] for name in names):
            if self.colour:
                line.append(look.sign, look.style)
            else:
                line.append(look.letter)
        return line

    def legend(self, names: Iterable[str]) -> "Text":
        """Return what the cells mean; an entry that does not fit begins a new line."""
        lines = self.text()
        used = 0
        for name in names:
            look = LOOKS[name]
            sign = look.letter if not self.colour else "■" if look.sign == "█" else look.sign
            entry = self.text((sign, look.style if self.colour else ""), (f" {self.say(name)}", "dim"))
            if used and used + 3 + entry.cell_len > self.width:
                lines.append("\n")
                used = 0
            lines.append("   " if used else "").append_text(entry)
            used += (3 if used else 0) + entry.cell_len
        return lines

    def grid(self, *head: str, title_at: int = 1, left: Sequence[int] = ()) -> "Table":
        """Return a table as wide as the terminal. Only column `title_at` is cut if it does not fit."""
        from rich.table import Table  # noqa: PLC0415

        drawn = Table(box=None, expand=True, pad_edge=False, padding=(0, 1), header_style="dim", show_edge=False)
        for at, name in enumerate(head):
            if at == 0:
                drawn.add_column(name, justify="right", no_wrap=True, style="dim", min_width=2)
            elif at == title_at:
                drawn.add_column(name, ratio=1, no_wrap=True, overflow="ellipsis")
            else:
                drawn.add_column(name, justify="left" if at in left or at < title_at else "right", no_wrap=True)
        return drawn
