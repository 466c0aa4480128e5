"""How the lab writes figures: counts, shares, sums of money and sizes in tokens. The same in every language."""

from math import isfinite

__all__ = ["grouped", "money", "percent", "tokens_short"]

SMALLEST_SUM = 0.0001  # dollars; smaller sums are shown as less than this


def grouped(value: float) -> str:
    """Return a count in groups of three. Example: 16000 -> 16,000"""
    return f"{value:,.0f}"


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent; a dash if it is not a number. Example: 0.4712 -> 47.1 %"""
    return f"{100 * share:.{digits}f} %" if isfinite(share) else "–"


def tokens_short(tokens: float) -> str:
    """Return a size in tokens, shortened. Example: 8000 -> 8k, 500 -> 500, 1500 -> 1.5k, 1000000 -> 1M"""
    for size, sign in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= size:
            return f"{tokens / size:.3g}{sign}"
    return f"{tokens:g}"


def money(dollars: float | None) -> str:
    """Return a sum; a dash if it is unknown. Example: 0.0123 -> $0.0123, 12.3 -> $12.30, 1234.5 -> $1,234"""
    if dollars is None or not isfinite(dollars):
        return "–"
    size, sign = abs(dollars), "-" * (dollars < 0)
    if size == 0:
        return "$0"
    if size < SMALLEST_SUM / 2:
        return f"< ${SMALLEST_SUM}"
    for below, digits in ((0.99995, 4), (999.995, 2)):
        if size < below:
            return f"{sign}${size:.{digits}f}"
    return f"{sign}${grouped(size)}"
