"""What calls teach about an endpoint: its true window, and how its counts differ from ours. Kept in the store."""

import json

from everlong.engine.calls import Call
from everlong.engine.measuring import calibration_from, calibration_to
from everlong.engine.threads import Threads
from everlong.tokens import Calibration, Counter

__all__ = ["calibration_of", "keep_calibration", "learn_window", "learned_window"]

WINDOW = "window"
CALIBRATION = "calibration"


def learned_window(threads: Threads, call: Call) -> int | None:
    """The window that an overflow or a truncation taught, for this endpoint and model alone."""
    kept = threads.fact(WINDOW, _key(call))
    if kept is None:
        return None
    try:
        figure = json.loads(kept)
    except ValueError:
        return None
    return figure if type(figure) is int and figure > 0 else None


def learn_window(threads: Threads, call: Call, window: int) -> bool:
    """Keep the window that the provider told; whether it is news."""
    if learned_window(threads, call) == window:
        return False
    threads.keep_fact(WINDOW, _key(call), json.dumps(window))
    return True


def calibration_of(threads: Threads, call: Call, counter: Counter) -> Calibration:
    """How this endpoint's counts relate to ours so far."""
    return calibration_from(threads.fact(CALIBRATION, _key(call)), counter.vocabulary.spread)


def keep_calibration(threads: Threads, call: Call, calibration: Calibration) -> None:
    """Keep what was observed."""
    threads.keep_fact(CALIBRATION, _key(call), calibration_to(calibration))


def _key(call: Call) -> str:
    return json.dumps([call.endpoint, call.model], ensure_ascii=False)
