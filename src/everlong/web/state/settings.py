"""The settings of the app and the choices for one thread, and the engine settings that follow from them.

The app's settings are one value in the store, without secrets. The choices for a thread are in its metadata; its own
engine settings hold only what differs from the app's.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias, cast

from everlong.compress import PRESET_NAMES, preset_named
from everlong.core import Json, JsonObject, JsonText, Thread
from everlong.engine import HIGHEST_THRESHOLD, Settings, Threads
from everlong.errors import InputError, Refused
from everlong.web.fields import flag, invalid, number, optional_text
from everlong.web.words import NOT_BUILT

__all__ = [
    "AUTO",
    "FACTS",
    "OFF",
    "OWNER",
    "THRESHOLDS",
    "AppSettings",
    "Auto",
    "Choices",
    "changed_settings",
    "choices_of",
    "load_settings",
    "own_settings",
    "save_settings",
    "with_choices",
]

OWNER = "app"  # the owner of the app's threads
FACTS = "app"  # the kind of the facts that the app stores
SETTINGS_FACT = "settings"
THRESHOLDS = range(40, 91, 5)  # percent
DEFAULT_THRESHOLD = 60
LARGEST_WINDOW = 100_000_000  # tokens
MOST_WINDOWS = 1_000

#: Engine settings of a thread whose compaction is off: no automatic summary, and only what does not fit is trimmed.
OFF: JsonObject = {"summaries": "off", "threshold": HIGHEST_THRESHOLD, "cold_mark": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSettings:
    """What a person set for the whole app. Models are SOURCE/NAME or ""; `windows` are tokens by model."""

    auto: bool = True
    #: Percent of the budget at which a compaction is due.
    threshold: int = DEFAULT_THRESHOLD
    summary_model: str = ""
    naming_model: str = ""
    preset: str = "auto"
    windows: tuple[tuple[str, int], ...] = ()
    language: str = ""
    tools: bool = False
    retention_days: int | None = None

    def shown(self) -> JsonObject:
        """Return the settings as the page reads them."""
        return {**asdict(self), "windows": dict(self.windows)}

    def window(self, model: str) -> int | None:
        """Return the window that was set for a model, by its whole name or without the source."""
        windows = dict(self.windows)
        return windows.get(model, windows.get(model.partition("/")[2]))

    @property
    def on(self) -> JsonObject:
        """The engine settings of a thread whose compaction is on."""
        return {"summaries": "auto", "threshold": self.threshold / 100, "cold_mark": Settings().cold_mark}

    def engine(self, base: Settings) -> Settings:
        """Return the engine settings of every thread without choices of its own."""
        chosen: JsonObject = {**(self.on if self.auto else OFF), "preset": self.preset}
        return base.for_thread(json.dumps(chosen))


def changed_settings(settings: AppSettings, body: JsonObject) -> AppSettings:
    """Return the settings with the fields of a body; missing fields stay. Raises Refused if one is wrong."""
    unknown = sorted(set(body) - set(AppSettings.__dataclass_fields__))
    if unknown:
        raise invalid(f"unknown setting: {', '.join(unknown)[:200]}")
    new: dict[str, object] = {}
    for name in ("auto", "tools"):
        if (value := flag(body, name)) is not None:
            new[name] = value
    for name in ("summary_model", "naming_model", "preset", "language"):
        if (text := optional_text(body, name)) is not None:
            new[name] = text
    if (threshold := number(body, "threshold")) is not None:
        new["threshold"] = threshold
    if "windows" in body:
        new["windows"] = _read_windows(body["windows"])
    if "retention_days" in body:
        new["retention_days"] = number(body, "retention_days")
    return _checked(replace(settings, **new))  # type: ignore[arg-type]


def _read_windows(value: Json) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, dict) or len(value) > MOST_WINDOWS:
        raise invalid("windows must be an object of model names and tokens")
    windows = {name: tokens for name, tokens in value.items() if tokens is not None}
    for name, tokens in windows.items():
        if type(tokens) is not int or not 1 <= tokens <= LARGEST_WINDOW:
            raise invalid(f"the window of {name[:80]!r} must be a number of tokens")
    return tuple(sorted(cast("dict[str, int]", windows).items()))


def _checked(settings: AppSettings) -> AppSettings:
    if settings.threshold not in THRESHOLDS:
        raise invalid(f"threshold must be {THRESHOLDS[0]} to {THRESHOLDS[-1]} percent, in steps of {THRESHOLDS.step}")
    if settings.language not in ("", *NOT_BUILT):
        raise invalid(f"language must be empty or one of {', '.join(NOT_BUILT)}")
    if settings.retention_days is not None and settings.retention_days < 1:
        raise invalid("retention_days must be at least 1, or null")
    if settings.preset in PRESET_NAMES and preset_named(settings.preset).untouched:
        raise invalid("preset cannot be off, because requests must fit: switch automatic compaction off instead")
    try:
        settings.engine(Settings())
    except InputError as error:
        raise invalid(str(error)) from None
    return settings


def load_settings(threads: Threads) -> AppSettings:
    """Return the stored settings; the defaults if there are none, or they cannot be read."""
    try:
        stored = json.loads(threads.fact(FACTS, SETTINGS_FACT) or "{}")
        return changed_settings(AppSettings(), stored if isinstance(stored, dict) else {})
    except (ValueError, RecursionError, Refused):
        return AppSettings()


def save_settings(threads: Threads, settings: AppSettings) -> None:
    """Store the settings, for every server on this store."""
    threads.keep_fact(FACTS, SETTINGS_FACT, json.dumps(settings.shown(), ensure_ascii=False))


#: Automatic compaction of a thread: as set for all, always, never.
Auto: TypeAlias = Literal["follow", "on", "off"]
AUTO = ("follow", "on", "off")
METADATA_KEY = "app"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a person chose for one thread. `model` is SOURCE/NAME; `window` is the figure set for it in the thread."""

    model: str = ""
    auto: Auto = "follow"
    window: int | None = None

    def on(self, settings: AppSettings, *, known: bool) -> bool:
        """Return whether compaction is automatic; never with an unknown window."""
        return known and (settings.auto if self.auto == "follow" else self.auto == "on")


def choices_of(thread: Thread) -> Choices:
    """Return the choices for a thread; a choice that cannot be read counts as not made."""
    stored = _json_object(thread.metadata).get(METADATA_KEY)
    if not isinstance(stored, dict):
        return Choices()
    model, auto, window = stored.get("model"), stored.get("auto"), stored.get("window")
    return Choices(
        model=model if isinstance(model, str) else "",
        auto=cast("Auto", auto) if auto in AUTO else "follow",
        window=window if type(window) is int else None,
    )


def with_choices(metadata: JsonText, choices: Choices) -> JsonText:
    """Return the metadata of a thread with these choices in it."""
    stored: JsonObject = {"model": choices.model, "auto": choices.auto, "window": choices.window}
    return json.dumps(_json_object(metadata) | {METADATA_KEY: stored}, ensure_ascii=False)


def own_settings(thread: Thread, settings: AppSettings, *, known: bool) -> tuple[JsonText, Choices]:
    """Return the thread's own engine settings and the choices that go with them.

    Example: off here, on for all -> summaries off, the highest threshold; follow, with a known window -> nothing
    """
    choices = choices_of(thread)
    own = _json_object(thread.settings)
    for name in OFF:
        own.pop(name, None)
    on = choices.on(settings, known=known)
    if on != settings.auto:
        own |= settings.on if on else OFF
    window = settings.window(choices.model)
    if window is not None:
        own["window"] = window
    elif choices.window is not None and own.get("window") == choices.window:
        del own["window"]
    return json.dumps(own), replace(choices, window=window)


def _json_object(text: JsonText) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
