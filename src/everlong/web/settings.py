"""The app's settings: one value, kept in the store, and what it means for the engine. Nothing secret is in it."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias, cast

from everlong.core import Json, JsonObject
from everlong.engine import HIGHEST_THRESHOLD, Settings, Threads
from everlong.errors import InputError, Refused
from everlong.web.fields import flag, number, optional_text, wrong

__all__ = ["FACTS", "OFF", "THRESHOLDS", "AppSettings", "changed", "keep_settings", "kept_settings"]

FACTS = "app"  # the kind of what is kept
KEY = "settings"
THRESHOLDS = range(40, 91, 5)  # percent
DEFAULT_THRESHOLD = 60
LARGEST_WINDOW = 100_000_000
MOST_WINDOWS = 1_000
Language: TypeAlias = Literal["", "en", "zh"]

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
    language: Language = ""
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


def changed(settings: AppSettings, said: JsonObject) -> AppSettings:
    """The settings with what is said; fields that are not there stay. Raises Refused."""
    unknown = sorted(set(said) - set(AppSettings.__dataclass_fields__))
    if unknown:
        raise wrong(f"no such setting: {', '.join(unknown)[:200]}")
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
        new["windows"] = _windows(said["windows"])
    if "retention_days" in said:
        new["retention_days"] = number(said, "retention_days")
    return _checked(replace(settings, **new))  # type: ignore[arg-type]


def _windows(said: Json) -> tuple[tuple[str, int], ...]:
    if not isinstance(said, dict) or len(said) > MOST_WINDOWS:
        raise wrong("windows is an object of model names and tokens")
    kept = {name: tokens for name, tokens in said.items() if tokens is not None}
    for name, tokens in kept.items():
        if type(tokens) is not int or not 1 <= tokens <= LARGEST_WINDOW:
            raise wrong(f"the window of {name[:80]!r} is a number of tokens")
    return tuple(sorted(cast("dict[str, int]", kept).items()))


def _checked(settings: AppSettings) -> AppSettings:
    if settings.threshold not in THRESHOLDS:
        raise wrong(f"threshold is {THRESHOLDS[0]} to {THRESHOLDS[-1]} percent in steps of {THRESHOLDS.step}")
    if settings.language not in ("", "en", "zh"):
        raise wrong("language is en, zh or empty")
    if settings.retention_days is not None and settings.retention_days < 1:
        raise wrong("retention_days is at least 1, or null")
    if settings.preset == "off":
        raise wrong("preset: switch automatic compaction off instead; what is sent must still fit")
    try:
        settings.engine(Settings())
    except InputError as error:
        raise wrong(str(error)) from None
    return settings


def kept_settings(threads: Threads) -> AppSettings:
    """What was kept; the defaults where nothing was, or nothing that makes sense."""
    kept = threads.fact(FACTS, KEY)
    try:
        said = json.loads(kept or "{}")
        return changed(AppSettings(), said if isinstance(said, dict) else {})
    except (ValueError, RecursionError, Refused):
        return AppSettings()


def keep_settings(threads: Threads, settings: AppSettings) -> None:
    """Keep them, for all who use this store."""
    threads.keep_fact(FACTS, KEY, json.dumps(settings.shown(), ensure_ascii=False))
