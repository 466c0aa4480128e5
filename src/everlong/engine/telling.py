"""What an event says beside its figures: a cut by the names of the context document, and hints in words."""

import json
from functools import partial

from everlong.compress import Preset
from everlong.core import JsonText
from everlong.windows import Window

__all__ = ["compression_data", "window_hint"]

#: Where the steps of a preset say how many messages they keep, and how long one of them may be.
MESSAGES, CHARACTERS = ("most_messages",), ("most_characters", "user", "assistant")


def compression_data(preset: Preset, before: int, after: int) -> JsonText:
    """`original_count`, `compressed_count`, `max_messages` and `max_chars_per_message`; null where there is no limit.

    Example: the preset simple, 40 messages, 12 sent -> max_messages 12, max_chars_per_message 4000
    """
    return json.dumps(
        {
            "original_count": before,
            "compressed_count": after,
            "max_messages": _smallest(preset, MESSAGES),
            "max_chars_per_message": _smallest(preset, CHARACTERS),
        }
    )


def window_hint(window: Window) -> str:
    """What to do about a window that nobody knows."""
    return (
        f"no window is known for {window.model!r}; {window.context:,} tokens are assumed: "
        "set EVERLONG_WINDOW, or `window` in the settings of the thread"
    )


def _smallest(preset: Preset, names: tuple[str, ...]) -> int | None:
    set_by = [step.keywords for step in (*preset.arrival, *preset.cut) if isinstance(step, partial)]
    said = [keywords[name] for keywords in set_by for name in names if name in keywords]
    return min((figure for figure in said if isinstance(figure, int)), default=None)
