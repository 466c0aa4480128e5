"""Where a cut goes down to: set by replaying long agents' sessions, for what a provider charges and how much fits.

What it costs to begin the cache anew, against reading what is carried, decides how deep to cut: where writing is dear a
deep cut pays, where it costs about as much as reading a shallow one keeps more for the same money. In a small window
a deep cut would leave too little to work with.
"""

from everlong.windows import Prices

__all__ = ["low_mark", "writing_weight"]

DEEP, DEEPER = 0.28, 0.25  # of the room, up to a window of LARGE tokens and above
SHALLOW = 0.5
LARGE = 64_000
LEAST = 8_000  # tokens that a cut leaves, where that is not more than the shallow mark
BAND = 0.7  # of the high mark; a cut that saves less comes again too soon
CHEAP = 2.0  # reads that one write costs; half-price caching has 1, a tenth 9, Anthropic 11.5
USUAL = 9.0


def low_mark(window: int, room: int, prices: Prices, high: float) -> float:
    """The share of the room that a cut goes down to.

    Example: a window of 64 000 with room for 43 000 at Anthropic's prices -> 0.28
    """
    deep = SHALLOW if writing_weight(prices) <= CHEAP else DEEP if window <= LARGE else DEEPER
    enough = min(SHALLOW, LEAST / max(1, room))
    return min(max(deep, enough), high * BAND)


def writing_weight(prices: Prices) -> float:
    """How many reads of a cached token it costs more to write it; what nobody says is the usual tenth.

    Example: written at 3.75, read at 0.30 -> 11.5
    """
    if prices.input is None:
        return USUAL
    read = prices.input if prices.cache_read is None else prices.cache_read
    written = prices.input if prices.cache_write is None else prices.cache_write
    return (written - read) / read if read > 0 else USUAL
