"""How full the window is: what the thread takes now, of how much, and how sure that is."""

from dataclasses import dataclass

from everlong.cli.terminal.tables import amount, bar
from everlong.cli.words.wording import Words
from everlong.engine import Prepared
from everlong.wire import Usage, plausible

__all__ = ["Meter", "estimated", "reported"]

BAR = 12  # columns
NEARLY_FULL = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """Tokens of a window. `exact` if a provider reported them; `known` if anyone said how large the window is."""

    tokens: int
    limit: int
    exact: bool
    known: bool

    @property
    def percent(self) -> int:
        """How much of the limit it is, as people say it."""
        return round(100 * self.tokens / self.limit) if self.limit else 0

    @property
    def certainty(self) -> str:
        """exact, estimated, or unknown where nobody knows the window."""
        return "unknown" if not self.known else "exact" if self.exact else "estimated"

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


def estimated(prepared: Prepared) -> Meter:
    """What a request is reckoned to take."""
    window = prepared.window
    return Meter(tokens=prepared.tokens, limit=window.context, exact=False, known=window.known)


def reported(prepared: Prepared, usage: Usage | None) -> Meter | None:
    """What the provider said of a request and its answer, without thoughts, which are not sent again.

    None if it said nothing, or what cannot be true.
    """
    if usage is None or not plausible(usage, prepared.window.context, estimate=prepared.tokens):
        return None
    if usage.prompt * 2 < prepared.counted:  # a report of a part of what was sent
        return None
    tokens = usage.prompt + max(0, usage.output - usage.reasoning)
    return Meter(tokens=tokens, limit=prepared.window.context, exact=True, known=prepared.window.known)
