"""The app's settings: one value, kept in the store, and what it means for the engine. Nothing secret is in it."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias, cast

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

OWNER = "app"  # of the threads that people talk in here
FACTS = "app"  # the kind of what is kept
SETTINGS_FACT = "settings"
THRESHOLDS = range(40, 91, 5)  # percent
DEFAULT_THRESHOLD = 60
LARGEST_WINDOW = 100_000_000
MOST_WINDOWS = 1_000

#: No summary begins by itself, and nothing is cut that still fits: only what must go goes.
OFF: JsonObject = {"summaries": "off", "threshold": HIGHEST_THRESHOLD, "cold_mark": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSettings:
    """What a person chose. Models are SOURCE/NAME, "" for nobody's choice; `windows` are tokens by model."""

    auto: bool = True
    #: Percent of the room at which a compaction is due.
    threshold: int = DEFAULT_THRESHOLD
    summary_model: str = ""
    naming_model: str = ""
    preset: str = "auto"
    windows: tuple[tuple[str, int], ...] = ()
    language: str = ""
    tools: bool = False
    retention_days: int | None = None

    def shown(self) -> JsonObject:
        """As the page reads it."""
        return {**asdict(self), "windows": dict(self.windows)}

    def window(self, model: str) -> int | None:
        """The window that the person set for a model, by its whole name or the name alone."""
        said = dict(self.windows)
        return said.get(model, said.get(model.partition("/")[2]))

    @property
    def on(self) -> JsonObject:
        """Engine settings of a thread whose compaction is on."""
        return {"summaries": "auto", "threshold": self.threshold / 100, "cold_mark": Settings().cold_mark}

    def engine(self, base: Settings) -> Settings:
        """The engine's settings for every thread that says nothing else."""
        chosen: JsonObject = {**(self.on if self.auto else OFF), "preset": self.preset}
        return base.for_thread(json.dumps(chosen))


def changed_settings(settings: AppSettings, said: JsonObject) -> AppSettings:
    """The settings with what is said; fields that are not there stay. Raises Refused."""
    unknown = sorted(set(said) - set(AppSettings.__dataclass_fields__))
    if unknown:
        raise invalid(f"no such setting: {', '.join(unknown)[:200]}")
    new: dict[str, object] = {}
    for name in ("auto", "tools"):
        if (value := flag(said, name)) is not None:
            new[name] = value
    for name in ("summary_model", "naming_model", "preset", "language"):
        if (text := optional_text(said, name)) is not None:
            new[name] = text
    if (threshold := number(said, "threshold")) is not None:
        new["threshold"] = threshold
    if "windows" in said:
        new["windows"] = _read_windows(said["windows"])
    if "retention_days" in said:
        new["retention_days"] = number(said, "retention_days")
    return _checked(replace(settings, **new))  # type: ignore[arg-type]


def _read_windows(said: Json) -> tuple[tuple[str, int], ...]:
    if not isinstance(said, dict) or len(said) > MOST_WINDOWS:
        raise invalid("windows is an object of model names and tokens")
    kept = {name: tokens for name, tokens in said.items() if tokens is not None}
    for name, tokens in kept.items():
        if type(tokens) is not int or not 1 <= tokens <= LARGEST_WINDOW:
            raise invalid(f"the window of {name[:80]!r} is a number of tokens")
    return tuple(sorted(cast("dict[str, int]", kept).items()))


def _checked(settings: AppSettings) -> AppSettings:
    if settings.threshold not in THRESHOLDS:
        raise invalid(f"threshold is {THRESHOLDS[0]} to {THRESHOLDS[-1]} percent in steps of {THRESHOLDS.step}")
    if settings.language not in ("", *NOT_BUILT):
        raise invalid(f"language must be empty or one of {', '.join(NOT_BUILT)}")
    if settings.retention_days is not None and settings.retention_days < 1:
        raise invalid("retention_days is at least 1, or null")
    if settings.preset == "off":
        raise invalid("preset: switch automatic compaction off instead; what is sent must still fit")
    try:
        settings.engine(Settings())
    except InputError as error:
        raise invalid(str(error)) from None
    return settings


def load_settings(threads: Threads) -> AppSettings:
    """What was kept; the defaults where nothing was, or nothing that makes sense."""
    kept = threads.fact(FACTS, SETTINGS_FACT)
    try:
        said = json.loads(kept or "{}")
        return changed_settings(AppSettings(), said if isinstance(said, dict) else {})
    except (ValueError, RecursionError, Refused):
        return AppSettings()


def save_settings(threads: Threads, settings: AppSettings) -> None:
    """Keep them, for all who use this store."""
    threads.keep_fact(FACTS, SETTINGS_FACT, json.dumps(settings.shown(), ensure_ascii=False))


#: Automatic compaction of a thread: as set for all, always, never.
Auto: TypeAlias = Literal["follow", "on", "off"]
AUTO = ("follow", "on", "off")
METADATA_KEY = "app"  # in the metadata


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
    said = _json_object(thread.metadata).get(METADATA_KEY)
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
    return json.dumps(_json_object(metadata) | {METADATA_KEY: said}, ensure_ascii=False)


def own_settings(thread: Thread, settings: AppSettings, *, known: bool) -> tuple[JsonText, Choices]:
    """What the thread says otherwise than all, and the choices that go with it.

    Example: chosen off, on for all -> summaries off, the highest threshold; chosen follow, a known window -> nothing
    """
    choices = choices_of(thread)
    said = _json_object(thread.settings)
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


def _json_object(text: JsonText) -> JsonObject:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
