"""The settings of the app and the choices for one thread, and the engine settings that follow from them.

The app's settings are one value in the store, without secrets: the engine's settings and a few fields of its own. The
choices for a thread are in its metadata; its own engine settings hold only what differs from the app's.
"""

import json
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

from everlong.core import Json, JsonObject, JsonText, Thread
from everlong.engine import SETTINGS, SURFACE_DEFAULTS, Settings, Threads, defaults_of, read_settings
from everlong.errors import InputError, Refused
from everlong.web.fields import flag, invalid, number, optional_text, stored_object
from everlong.web.state.options import NO_OPTIONS, Options, stored_options
from everlong.web.words import LANGUAGES

__all__ = [
    "AUTO",
    "FACTS",
    "OWNER",
    "THRESHOLDS",
    "AppSettings",
    "Auto",
    "Choices",
    "changed_settings",
    "choices_of",
    "load_settings",
    "own_settings",
    "sample_language",
    "sample_metadata",
    "save_settings",
    "with_choices",
]

OWNER = "app"  # the owner of the app's threads
FACTS = "app"  # the kind of the facts that the app stores
SETTINGS_FACT = "settings"
METADATA_KEY = "app"
SAMPLE_KEY = "sample"  # in the metadata of a sample thread: its language
THRESHOLDS = range(40, 91, 5)  # percent
LARGEST_WINDOW = 100_000_000  # tokens
MOST_WINDOWS = 1_000

#: Automatic compaction of a thread: as set for all, always, never.
Auto: TypeAlias = Literal["follow", "on", "off"]
AUTO = ("follow", "on", "off")

ENGINE_DEFAULTS = defaults_of("app")
#: Engine settings of a thread whose compaction is off: no automatic summary, and only what does not fit is trimmed.
OFF: JsonObject = dict(SURFACE_DEFAULTS["app, off"])


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSettings:
    """What a person set for the whole app. Models are SOURCE/NAME or ""; `windows` are tokens by model.

    The page reads and writes one flat object: the threshold in percent, the preset, the fields below, and every other
    engine setting that differs from the app's defaults, by its name.
    """

    engine: Settings = ENGINE_DEFAULTS
    auto: bool = True
    summary_model: str = ""
    naming_model: str = ""
    windows: tuple[tuple[str, int], ...] = ()
    language: str = ""
    tools: bool = False
    retention_days: int | None = None

    @property
    def threshold(self) -> int:
        """The percent of the budget at which a compaction is due."""
        return round(100 * self.engine.threshold_share)

    def shown(self) -> JsonObject:
        """Return the settings as the page reads them and the store keeps them."""
        return {
            "auto": self.auto,
            "summary_model": self.summary_model,
            "naming_model": self.naming_model,
            "windows": dict(self.windows),
            "language": self.language,
            "tools": self.tools,
            "retention_days": self.retention_days,
            **_changed(self.engine),
            "threshold": self.threshold,
            "preset": self.engine.rules.name,
        }

    def window(self, model: str) -> int | None:
        """Return the window that was set for a model, by its whole name or without the source."""
        windows = dict(self.windows)
        return windows.get(model, windows.get(model.partition("/")[2]))

    @property
    def on(self) -> JsonObject:
        """The engine settings of a thread whose compaction is on. A pause causes none below the threshold."""
        values = {name: _value(self.engine, name) for name in OFF}
        return values | {"cold_mark": max(self.engine.cold_mark, self.engine.threshold_share)}

    def over(self, base: Settings) -> Settings:
        """Return the engine settings of every thread without choices of its own: these override the server's."""
        switch = self.on if self.auto else OFF
        always = {"preset": self.engine.rules.name, "unknown_window": self.engine.unknown_window}
        return base.with_values({**_changed(self.engine), **switch, **always})


def _value(settings: Settings, name: str) -> Json:
    return getattr(settings, name) if hasattr(settings, name) else settings.option(name)


def _changed(settings: Settings) -> JsonObject:
    """Return the engine settings that differ from the defaults of the app, by name."""
    values = {option.name: _value(settings, option.name) for option in SETTINGS}
    return {name: value for name, value in values.items() if value != _value(ENGINE_DEFAULTS, name)}


def changed_settings(settings: AppSettings, body: JsonObject) -> AppSettings:
    """Return the settings with the fields of a body; missing fields stay. Raises Refused if one is wrong."""
    new: dict[str, object] = {}
    for name in ("auto", "tools"):
        if (value := flag(body, name)) is not None:
            new[name] = value
    for name in ("summary_model", "naming_model", "language"):
        if (text := optional_text(body, name)) is not None:
            new[name] = text
    if "windows" in body:
        new["windows"] = _read_windows(body["windows"])
    if "retention_days" in body:
        new["retention_days"] = number(body, "retention_days")
    new["engine"] = _changed_engine(settings.engine, body)
    return _checked(replace(settings, **new))  # type: ignore[arg-type]


def _changed_engine(settings: Settings, body: JsonObject) -> Settings:
    """Return the engine settings with those of a body; the threshold comes in percent."""
    own = set(AppSettings.__dataclass_fields__) - {"engine"}
    given: dict[str, object] = {name: value for name, value in body.items() if name not in own}
    if given.get("preset", "") is None:
        del given["preset"]
    percent = number(body, "threshold")
    given.pop("threshold", None)
    if percent is not None:
        if percent not in THRESHOLDS:
            raise invalid(
                f"threshold must be {THRESHOLDS[0]} to {THRESHOLDS[-1]} percent, in steps of {THRESHOLDS.step}"
            )
        given["threshold"] = percent / 100
    operators = [option.name for option in SETTINGS if option.operator and option.name in given]
    if operators:
        raise invalid(f"{operators[0]} can be changed only in the settings of the server")
    try:
        return read_settings(given, base=settings)
    except InputError as error:
        raise invalid(str(error)) from None


def _read_windows(value: Json) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, dict) or len(value) > MOST_WINDOWS:
        raise invalid("windows must be an object that maps model names to tokens")
    windows = {name: tokens for name, tokens in value.items() if tokens is not None}
    for name, tokens in windows.items():
        if type(tokens) is not int or not 1 <= tokens <= LARGEST_WINDOW:
            raise invalid(f"the window of {name[:80]!r} must be a number of tokens")
    return tuple(sorted(cast("dict[str, int]", windows).items()))


def _checked(settings: AppSettings) -> AppSettings:
    if settings.language not in ("", *LANGUAGES):
        raise invalid(f"language must be empty or one of {', '.join(LANGUAGES)}")
    if settings.retention_days is not None and settings.retention_days < 1:
        raise invalid("retention_days must be at least 1, or null")
    if settings.engine.untouched:
        raise invalid("requests must fit, so they cannot be sent unchanged; turn automatic compaction off instead")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a person chose for one thread. `model` is SOURCE/NAME; `window` is the figure set for it in the thread.

    `language` is the language of the page when the thread began; the default instructions are in it.
    """

    model: str = ""
    auto: Auto = "follow"
    window: int | None = None
    language: str = ""
    options: Options = NO_OPTIONS

    def on(self, settings: AppSettings, *, known: bool) -> bool:
        """Return whether compaction is automatic; never with an unknown window."""
        return known and (settings.auto if self.auto == "follow" else self.auto == "on")


def choices_of(thread: Thread) -> Choices:
    """Return the choices for a thread; a choice that cannot be read counts as not made."""
    stored = stored_object(thread.metadata).get(METADATA_KEY)
    if not isinstance(stored, dict):
        return Choices()
    model, auto, window, language = (stored.get(name) for name in ("model", "auto", "window", "language"))
    return Choices(
        model=model if isinstance(model, str) else "",
        auto=cast("Auto", auto) if auto in AUTO else "follow",
        window=window if type(window) is int else None,
        language=language if isinstance(language, str) and language in LANGUAGES else "",
        options=stored_options(stored.get("options")),
    )


def with_choices(metadata: JsonText, choices: Choices) -> JsonText:
    """Return the metadata of a thread with these choices in it."""
    stored: JsonObject = {
        "model": choices.model,
        "auto": choices.auto,
        "window": choices.window,
        "language": choices.language,
        "options": {name: value for name, value in choices.options.shown().items() if value not in (None, "")},
    }
    return json.dumps(stored_object(metadata) | {METADATA_KEY: stored}, ensure_ascii=False)


def sample_metadata(model: str, language: str) -> JsonText:
    """Return the metadata of a sample thread."""
    return with_choices(json.dumps({SAMPLE_KEY: language}), Choices(model=model))


def sample_language(thread: Thread) -> str:
    """Return the language of a sample thread, "" for any other."""
    language = stored_object(thread.metadata).get(SAMPLE_KEY)
    return language if isinstance(language, str) else ""


def own_settings(thread: Thread, settings: AppSettings, *, known: bool) -> tuple[JsonText, Choices]:
    """Return the thread's own engine settings and the choices that go with them.

    Example: off here, on for all -> summaries off, the highest threshold; follow, with a known window -> nothing
    """
    choices = choices_of(thread)
    own = stored_object(thread.settings)
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
