"""How full the window is: what the thread takes now, of how much, and how sure that is."""

from everlong.cli.terminal.tables import amount, bar
from everlong.cli.words.wording import Words
from everlong.engine import Meter as WindowMeter

__all__ = ["Meter"]

BAR = 12  # columns
NEARLY_FULL = 0.8


class Meter(WindowMeter):
    """How full the window is, as a terminal shows it."""

    __slots__ = ()

    @property
    def style(self) -> str:
        """The colour that warns."""
        return "yellow" if self.known and self.tokens >= NEARLY_FULL * self.limit else "green"

    def text(self, say: Words) -> str:
        """Example: Meter(3_412 of 8_192, estimated) -> "~3 412 / 8 192 tokens · 42 %" """
        used = f"{'' if self.exact else '~'}{amount(self.tokens)}"
        if not self.known:
            return say("meter_unknown", used=used, assumed=amount(self.limit))
        return say("meter", used=used, limit=amount(self.limit), percent=str(self.percent))

    def bar(self) -> str:
        """A bar for a terminal; of an unknown window there is none."""
        return bar(min(self.tokens, self.limit), self.limit, BAR).ljust(BAR, "·") if self.known else "?" * 3
