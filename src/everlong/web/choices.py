"""What a person chose for one thread, and the engine's settings that follow from it.

The choices are kept in the thread's metadata; its settings hold only what differs from everyone's.
"""

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from everlong.core import JsonObject, JsonText, Thread
from everlong.web.settings import OFF, AppSettings

__all__ = ["AUTO", "Auto", "Choices", "choices_of", "own_settings", "with_choices"]

#: Automatic compaction of a thread: as set for all, always, never.
Auto: TypeAlias = Literal["follow", "on", "off"]
AUTO = ("follow", "on", "off")
KEY = "app"  # in the metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """`model` is SOURCE/NAME; `window` the figure that was put into the thread's settings for it."""

    model: str = ""
    auto: Auto = "follow"
    window: int | None = None

    def on(self, settings: AppSettings, *, known: bool) -> bool:
        """Whether compaction happens by itself: never where nobody knows how large the window is."""
        return known and (settings.auto if self.auto == "follow" else self.auto == "on")


def choices_of(thread: Thread) -> Choices:
    """What was chosen; what cannot be read was not."""
    said = _loaded(thread.metadata).get(KEY)
    if not isinstance(said, dict):
        return Choices()
    model, auto, window = said.get("model"), said.get("auto"), said.get("window")
    return Choices(
        model=model if isinstance(model, str) else "",
        auto=cast("Auto", auto) if auto in AUTO else "follow",
        window=window if type(window) is int else None,
    )


def with_choices(metadata: JsonText, choices: Choices) -> JsonText:
    """The metadata of a thread with these choices in it."""
    said: JsonObject = {"model": choices.model, "auto": choices.auto, "window": choices.window}
    return json.dumps(_loaded(metadata) | {KEY: said}, ensure_ascii=False)


def own_settings(thread: Thread, settings: AppSettings, *, known: bool) -> tuple[JsonText, Choices]:
    """What the thread says otherwise than all, and the choices that go with it.

    Example: chosen off, on for all -> summaries off, the highest threshold; chosen follow, a known window -> nothing
    """
    choices = choices_of(thread)
    said = _loaded(thread.settings)
    for name in OFF:
        said.pop(name, None)
    on = choices.on(settings, known=known)
    if on != settings.auto:
        said |= settings.on if on else OFF
    wanted = settings.window(choices.model)
    if wanted is not None:
        said["window"] = wanted
    elif choices.window is not None and said.get("window") == choices.window:
        del said["window"]
    return json.dumps(said), Choices(model=choices.model, auto=choices.auto, window=wanted)


def _loaded(text: JsonText) -> JsonObject:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
