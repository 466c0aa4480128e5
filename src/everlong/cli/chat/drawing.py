"""Draws the text of models and tools with rich, block by block. `clean` is always the last step."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from everlong.cli.terminal.text import clean, one_line
from everlong.core import CallId, JsonText, ToolCall
from everlong.engine import call_title

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.markdown import Markdown
    from rich.segment import Segment
    from rich.text import Text

__all__ = ["LONGEST_OPEN", "Blocks", "Harmless", "Tail", "call_line", "markdown", "plain", "thought"]

LONGEST_LINE = 400  # characters of a text that is shown on one line
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
LONGEST_OPEN = 12_000  # characters; a longer open block is closed early, so that redrawing it stays cheap


@dataclass(slots=True)
class Blocks:
    """Splits arriving Markdown into blocks: a complete block never changes again, `open` is the part that may."""

    open: str = ""
    #: How much of `open` was scanned, the code fence that is open there, and its first line.
    _seen: int = 0
    _fence: str = ""
    _opening: str = ""

    def add(self, text: str) -> list[str]:
        """Add text and return the blocks that are complete now.

        Example: "one\\n\\ntwo" -> ["one\\n\\n"], and "two" stays open
        """
        self.open += text
        if "\n" not in text and len(self.open) < LONGEST_OPEN:
            return []
        complete: list[str] = []
        while (end := self.open.find("\n", self._seen)) >= 0:
            line = self.open[self._seen : end]
            self._seen = end + 1
            if self._ends_block(line):
                complete.append(self._take(self._seen))
        while len(self.open) >= LONGEST_OPEN:
            complete.append(self._force())
        return complete

    def end(self) -> str:
        """End the text and return the open block; "" if it is blank."""
        return self._take(len(self.open))

    def _ends_block(self, line: str) -> bool:
        """Return whether this line completes the block: a blank line outside a fence, or the end of a fence."""
        fence = FENCE.match(line)
        if self._fence:
            closes = fence is not None and fence[1].startswith(self._fence) and not fence[2].strip()
            if closes:
                self._fence = ""
            return closes
        if fence is not None:
            self._fence, self._opening = fence[1], line
            return False
        return not line.strip()

    def _take(self, length: int) -> str:
        block, self.open = self.open[:length], self.open[length:]
        self._seen = max(0, self._seen - length)
        return block if block.strip() else ""

    def _force(self) -> str:
        """Take the beginning of an endless block as a block; an open fence is closed and opened again."""
        cut = self.open.rfind("\n", len(self._opening) + 1 if self._fence else 0, LONGEST_OPEN) + 1 or LONGEST_OPEN
        if not self._fence:
            return self._take(cut)
        block = f"{self._take(cut).rstrip(chr(10))}\n{self._fence}\n"
        self.open = f"{self._opening}\n{self.open}"
        self._seen += len(self._opening) + 1
        return block


class Harmless:
    """Foreign Markdown made safe: entities may contain what was cleaned before, and links may hide their target.

    So every segment is cleaned again when it is drawn, and links are removed. Empty lines around it are left out.
    """

    def __init__(self, drawing: "RenderableType") -> None:
        self.drawing = drawing

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[Segment]":
        from rich.segment import Segment  # noqa: PLC0415 - only where it is seen

        lines = console.render_lines(self.drawing, options, pad=False)
        full = [at for at, line in enumerate(lines) if any(segment.text.strip() for segment in line)]
        for line in lines[full[0] : full[-1] + 1] if full else ():
            for segment in line:
                if not segment.control:
                    style = segment.style.update_link(None) if segment.style is not None else None
                    yield Segment(clean(segment.text), style)
            yield Segment.line()


class Tail:
    """The last lines of a drawing, as many as fit the terminal."""

    def __init__(self, drawing: "RenderableType", spare: int) -> None:
        self.drawing, self.spare = drawing, spare

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[Segment]":
        from rich.segment import Segment  # noqa: PLC0415 - only where it is seen

        lines = console.render_lines(self.drawing, options.update(height=None), pad=False)
        most = max(1, console.height - self.spare)
        for at, line in enumerate(lines[-most:]):
            if at:
                yield Segment.line()
            yield from line


def plain(text: str, style: str = "") -> "Text":
    """Return foreign text as plain text, without markup."""
    from rich.text import Text  # noqa: PLC0415 - only where it is seen

    return Text(clean(text), style=style)


def markdown(block: str) -> "RenderableType":
    """Return a block of an answer."""
    return Harmless(_kind_of_markdown()(clean(block).strip("\n"), hyperlinks=False, code_theme="ansi_dark"))


@cache
def _kind_of_markdown() -> "type[Markdown]":
    """Return a Markdown class with headings at the left; rich would centre them."""
    from rich.markdown import Heading, Markdown  # noqa: PLC0415 - loads a parser

    class Plain(Heading):
        def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[Text]":
            self.text.justify = "left"
            yield self.text

    class Left(Markdown):
        elements: ClassVar = {**Markdown.elements, "heading_open": Plain}

    return Left


def thought(block: str) -> "RenderableType":
    """Return a block of thinking, dimmed and indented."""
    from rich.padding import Padding  # noqa: PLC0415 - only where it is seen

    return Padding(plain(block.strip("\n"), "dim italic"), (0, 0, 0, 2), expand=False)


def call_line(name: str, arguments: JsonText) -> str:
    """Return a call on one line. Example: read_file {"path": "a.py"} -> "read_file a.py" """
    return one_line(call_title(ToolCall(CallId(""), name[:LONGEST_LINE], arguments)))[:LONGEST_LINE]
