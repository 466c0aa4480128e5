"""The demonstration on a terminal, turn by turn as it happens, or as JSON."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from everlong.cli.demo.play import THREAD, Outcome, Play, Turn
from everlong.cli.terminal.files import read_document
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, bar, console
from everlong.cli.terminal.text import one_line
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.core import Event
from everlong.store import open_store

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["show"]

NUMBER, TOKENS, BAR, WIDEST = 2, 7, 20, 100  # columns
LED_BY = 24  # characters of a line that are shown before the fact


def show(window: int, store: str, *, json_wanted: bool, language: Language) -> None:
    """Play the conversation and show it. Without a store it is forgotten at the end."""
    with open_store(store or "memory:") as threads:
        play = Play(read_document(None, sample=True), threads, window)
        if json_wanted:
            asyncio.run(_print_json(play))
            return
        stage = _Stage(console(), Words(language, "demo"), window)
        asyncio.run(stage.show(play))
        if store:
            stage.paragraph(stage.say("look", thread=THREAD, store=store), "dim")


async def _print_json(play: Play) -> None:
    turns = [asdict(turn) | {"cuts": [_cut(cut) for cut in turn.cuts]} async for turn in play.turns()]
    outcome = asdict(play.outcome())
    print_json({"window": play.window, "turns": turns, **outcome})


def _cut(cut: Event) -> dict[str, object]:
    return {"reason": cut.reason, "tokens_before": cut.tokens_before, "tokens_after": cut.tokens_after}


class _Stage:
    """Draws the play as it happens, in 80 to 100 columns."""

    def __init__(self, out: "Console", say: Words, window: int) -> None:
        self.out, self.say, self.window = out, say, window
        self.width = min(out.width, WIDEST)

    async def show(self, play: Play) -> None:
        """Show each turn when it is over, then the outcome."""
        self._head()
        async for turn in play.turns():
            self._turn(turn)
        self._end(play.outcome())

    def paragraph(self, text: str, style: str = "") -> None:
        """Print text that may take several lines."""
        self.out.print(self._words(text, style), width=self.width)

    def _words(self, text: str, style: str = "") -> "Text":
        from rich.text import Text  # noqa: PLC0415 - only where it is seen

        return Text(text, style=style)

    def _line(self, pieces: Sequence[tuple[str, str, int]]) -> None:
        """Print pieces of (text, style, columns), two columns apart; negative columns are aligned right."""
        line = self._words("")
        for text, style, columns in pieces:
            piece = self._words(text, style)
            piece.truncate(abs(columns), overflow="ellipsis")
            gap = " " * (abs(columns) - piece.cell_len)
            line.append(gap if columns < 0 else "").append_text(piece).append(gap if columns > 0 else "").append("  ")
        line.rstrip()
        self.out.print(line, no_wrap=True, overflow="ellipsis")

    @property
    def _titles(self) -> int:
        return max(10, self.width - (NUMBER + TOKENS + BAR + TOKENS + 8))

    def _head(self) -> None:
        self.out.print()
        self.paragraph(self.say("title"), "bold")
        self.paragraph(self.say("explained", window=amount(self.window)))
        self.out.print()
        sent = self.say("head_sent")
        self._line([("", "", NUMBER + 2 + self._titles), (self.say("head_said"), "dim", -TOKENS), (sent, "dim", BAR)])

    def _turn(self, turn: Turn) -> None:
        beside = NUMBER + 2
        if turn.full:
            self._line([("", "", NUMBER), (f"── {self.say('full')} ──", "yellow", self.width - beside)])
        self._line(
            [
                (str(turn.number), "dim", -NUMBER),
                (one_line(turn.title), "", self._titles),
                (amount(turn.said), "yellow" if turn.said > self.window else "", -TOKENS),
                (bar(turn.sent, self.window, BAR).ljust(BAR, "·"), "green", BAR),
                (amount(turn.sent), "", -TOKENS),
            ]
        )
        for cut in turn.cuts:
            text = self.say("cut", before=amount(cut.tokens_before or 0), after=amount(cut.tokens_after or 0))
            self._line([("", "", NUMBER), (f"└ {text}", "cyan", self.width - beside)])

    def _end(self, outcome: Outcome) -> None:
        say = self.say
        self.out.print()
        self.paragraph(say("asked"), "bold")
        for check in outcome.facts:
            names = [(say("turn", n=str(check.turn)), "dim", 8), (say(check.fact.key), "", 13)]
            shown = one_line(check.line) or say("left_out")
            style = "" if check.line else "yellow"
            sign = ("✓", "bold green", 1) if check.line else ("✗", "bold red", 1)
            self._line([sign, *names, (_around(shown, check.fact.needles), style, self.width - 28)])
        self.out.print()
        figures = {"requests": str(outcome.requests), "refused": str(outcome.refused)}
        sizes = {"largest": amount(outcome.largest), "window": amount(self.window)}
        said = {"said": amount(outcome.said), "messages": amount(outcome.messages)}
        self.paragraph(say("requests", **figures, **sizes))
        self.paragraph(say("cached", share=f"{outcome.cached:.0%}"))
        self.paragraph(say("kept", **said))


def _around(line: str, needles: Sequence[str]) -> str:
    """Return the line from shortly before the fact on, so that it is seen in a narrow column."""
    at = next((line.index(needle) for needle in needles if needle in line), 0)
    return line if at <= LED_BY else "…" + line[at - LED_BY :]
