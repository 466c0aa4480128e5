"""Pieces of the chat as rich draws them. Whatever a model or a tool wrote goes through `clean` on its last step."""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from everlong.cli.maps.shown_text import clean, one_line
from everlong.core import CallId, JsonText, ToolCall
from everlong.engine import call_title

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.markdown import Markdown
    from rich.segment import Segment
    from rich.text import Text

__all__ = ["Harmless", "Tail", "call_line", "markdown", "thought", "words"]

LONGEST_LINE = 400  # characters of anything that stands on one line


class Harmless:
    """A drawing of somebody else's text: entities of markdown may hide what was cleaned, links where they lead.

    So every segment is cleaned again when it is drawn, and none carries a link. Empty lines around it are left out.
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
    """The last lines of a drawing, as many as the terminal has room for: what is open is never taller than it."""

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


def words(text: str, style: str = "") -> "Text":
    """Words of anyone, never read as markup."""
    from rich.text import Text  # noqa: PLC0415 - only where it is seen

    return Text(clean(text), style=style)


def markdown(block: str) -> "RenderableType":
    """A block of an answer."""
    return Harmless(_kind_of_markdown()(clean(block).strip("\n"), hyperlinks=False, code_theme="ansi_dark"))


@cache
def _kind_of_markdown() -> "type[Markdown]":
    """Markdown whose headings stand where lines begin: in the middle of a wide terminal nobody looks for one."""
    from rich.markdown import Heading, Markdown  # noqa: PLC0415 - loads a parser

    class Plain(Heading):
        def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[Text]":
            self.text.justify = "left"
            yield self.text

    class Left(Markdown):
        elements: ClassVar = {**Markdown.elements, "heading_open": Plain}

    return Left


def thought(block: str) -> "RenderableType":
    """A block of thinking: dimmed, set in a little."""
    from rich.padding import Padding  # noqa: PLC0415 - only where it is seen

    return Padding(words(block.strip("\n"), "dim italic"), (0, 0, 0, 2), expand=False)


def call_line(name: str, arguments: JsonText) -> str:
    """A call on one line. Example: read_file {"path": "a.py"} -> "read_file a.py" """
    return one_line(call_title(ToolCall(CallId(""), name[:LONGEST_LINE], arguments)))[:LONGEST_LINE]
