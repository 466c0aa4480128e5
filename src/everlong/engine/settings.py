"""The settings of the engine: one value for all threads, and the values that a thread overrides.

Every field is described once, here (name, type, default, bounds, unit, help); presets describe their own options.
`read_settings` reads and checks the values of files, variables, commands and threads by these descriptions.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast, get_args

from everlong.compress import PRESET_OPTIONS, Option, Preset, Scalar, preset_named, unused_options
from everlong.core import JsonText, did_you_mean
from everlong.errors import InputError

__all__ = [
    "DEFAULT_SETTINGS",
    "HIGHEST_THRESHOLD",
    "LOWEST_THRESHOLD",
    "PREFIX",
    "SETTINGS",
    "SURFACE_DEFAULTS",
    "Mode",
    "Settings",
    "Summarizing",
    "Surface",
    "defaults_of",
    "read_settings",
    "unknown_names",
    "unused_settings",
    "variables_of",
]

#: off: nothing is changed, an overflow is an error. trim: compactions, but no model is asked to summarise. auto: both.
Mode: TypeAlias = Literal["off", "trim", "auto"]

#: auto: summaries where the preset has them by itself. on: also where its document leaves them to be asked for.
Summarizing: TypeAlias = Literal["auto", "on", "off"]

#: Where a conversation is held. "app, off" is the app with automatic compaction switched off.
Surface: TypeAlias = Literal["library", "gateway", "agent", "app", "app, off"]

LOWEST_THRESHOLD, HIGHEST_THRESHOLD = 0.40, 0.95
PREFIX = "EVERLONG_"


def _setting(default: Scalar, help_text: str, kind: type, **bounds: Any) -> Any:
    """A field of Settings with the rest of its description."""
    return field(default=default, metadata={"help": help_text, "kind": kind, **bounds})


@lru_cache(maxsize=64)
def _configured_preset(name: str, options: tuple[tuple[str, Scalar], ...]) -> Preset:
    return preset_named(name).configured(dict(options))


def _checked_options(given: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
    """The options that differ from their defaults."""
    for name, value in given.items():
        if name not in PRESET_OPTIONS:
            raise InputError(f"no preset has an option {name!r}")
        PRESET_OPTIONS[name].check(value)
    return {name: value for name, value in given.items() if value != PRESET_OPTIONS[name].default}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every field has a default that serves; a thread's own settings name only what differs."""

    mode: Mode = _setting(  # noqa: RUF009 - the value is immutable
        "auto", "off changes nothing, trim compacts, auto also summarises.", str, choices=get_args(Mode)
    )
    #: The name of a preset, or a preset of one's own.
    preset: str | Preset = _setting("auto", "How a history is compacted.", str)  # noqa: RUF009 - see mode
    threshold: float | None = _setting(
        None,
        "The share of what a compaction can move at which one is due; by default the preset's own, 0.9 (chatbox: 0.6).",
        float,
        unit="share",
        least=LOWEST_THRESHOLD,
        most=HIGHEST_THRESHOLD,
    )
    low_mark: float | None = _setting(
        None,
        "The target: the share that a compaction goes down to; by default what the model's prices and window suggest.",
        float,
        unit="share",
        least=0,
        most=HIGHEST_THRESHOLD,
        above=True,
    )
    soft_cap: int | None = _setting(
        None,
        "Tokens above which nobody wants to pay, however large the window; threshold and target are then shares of it.",
        int,
        unit="tokens",
        least=1,
    )
    window: int | None = _setting(
        None, "The window, where the user knows better than any table; in 0 nothing fits.", int, unit="tokens", least=0
    )
    reserve: int | None = _setting(
        None, "Tokens kept free for the answer where a request asks for none.", int, unit="tokens", least=0
    )
    recall_share: float = _setting(
        0.08,
        "The share of the budget that one recalled block may take; 0 recalls nothing by itself.",
        float,
        unit="share",
        least=0,
        most=1,
    )
    pin_share: float = _setting(
        0.25, "The share of the budget that pins may take.", float, unit="share", least=0, most=1
    )
    cache_seconds: float = _setting(
        300.0, "Seconds after which a provider has forgotten a prefix.", float, unit="seconds", least=0
    )
    cold_mark: float = _setting(
        0.6,
        "The share of the budget from which a compaction is made once the provider has forgotten the prefix.",
        float,
        unit="share",
        least=0,
        most=1,
    )
    summaries: Summarizing = _setting(  # noqa: RUF009 - see mode
        "auto", "Whether summaries are written by themselves, in mode auto.", str, choices=get_args(Summarizing)
    )
    #: Options of presets by name; those of other presets than the one in force do nothing.
    options: Mapping[str, Scalar] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for option in SETTINGS:
            if option.name in _OWN and not isinstance(getattr(self, option.name), Preset):
                option.check(getattr(self, option.name))
        if isinstance(self.preset, str):
            preset_named(self.preset)
        object.__setattr__(self, "options", _checked_options(self.options))

    @property
    def rules(self) -> Preset:
        """The preset in force, with its options."""
        if isinstance(self.preset, Preset):
            return self.preset.configured(self.options)
        return _configured_preset(self.preset, tuple(sorted(self.options.items())))

    @property
    def threshold_share(self) -> float:
        """The threshold in force: what is set, else the preset's own."""
        return self.rules.threshold if self.threshold is None else self.threshold

    @property
    def untouched(self) -> bool:
        """Whether everything is sent as it is: by mode, or by preset."""
        return self.mode == "off" or self.rules.untouched

    @property
    def summarises(self) -> bool:
        """Whether summaries are begun by themselves."""
        if self.mode != "auto" or self.untouched or self.summaries == "off":
            return False
        return self.summaries == "on" or self.rules.summary.automatic

    def option(self, name: str) -> Scalar:
        """Return the value of a preset's option: what is set, else its default."""
        return self.options.get(name, PRESET_OPTIONS[name].default)

    def for_thread(self, own: JsonText) -> "Settings":
        """Return these settings with the values that a thread overrides; unknown fields are ignored."""
        try:
            given = json.loads(own)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise InputError("the settings of a thread are a JSON object")
        return self.with_values({option.name: given[option.name] for option in SETTINGS if option.name in given})

    def with_values(self, given: Mapping[str, object]) -> "Settings":
        """Return these settings with values by name, as text or JSON; options of presets too. Raises InputError."""
        if not given:
            return self
        values = {option.name: option.read(given[option.name]) for option in SETTINGS if option.name in given}
        own = {name: value for name, value in values.items() if name in _OWN}
        if own.get("preset") == self.rules.name:  # by its name, one's own stays
            del own["preset"]
        options = {name: value for name, value in values.items() if name not in _OWN}
        return replace(self, **own, options={**self.options, **options})  # type: ignore[arg-type]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Return what EVERLONG_MODE, EVERLONG_PRESET, EVERLONG_THRESHOLD … set; empty ones count as not set.

        Example: {"EVERLONG_THRESHOLD": "0.8"} -> Settings(threshold=0.8)
        """
        given = variables_of(environment)
        settings = cls().with_values(given)
        for line in unused_settings(given, settings).values():
            raise InputError(f"{PREFIX}…: {line}")
        return settings


_OWN = frozenset(each.name for each in fields(Settings)) - {"options"}
#: The description of every setting: the fields of Settings, then the options of presets.
SETTINGS: tuple[Option, ...] = (
    *(
        Option(name=each.name, default=cast(Scalar, each.default), **each.metadata)
        for each in fields(Settings)
        if each.name in _OWN
    ),
    *PRESET_OPTIONS.values(),
)
DEFAULT_SETTINGS = Settings()

#: The values that a surface starts with where they differ from the defaults of the fields. What a preset starts with
#: otherwise, it says itself.
SURFACE_DEFAULTS: Mapping[Surface, Mapping[str, Scalar]] = MappingProxyType(
    {
        "library": {},
        "gateway": {},
        "agent": {},
        "app": {"threshold": 0.60},
        # No summary begins by itself, and nothing is compacted that still fits.
        "app, off": {"summaries": "off", "threshold": HIGHEST_THRESHOLD, "cold_mark": 1.0},
    }
)


def defaults_of(surface: Surface) -> Settings:
    """Return the settings that a surface starts with."""
    return DEFAULT_SETTINGS.with_values(SURFACE_DEFAULTS[surface])


def variables_of(environment: Mapping[str, str], *, prefix: str = PREFIX) -> dict[str, str]:
    """Return the settings that variables set, by name, still as text; empty ones count as not set."""
    given = {option.name: environment.get(prefix + option.name.upper(), "").strip() for option in SETTINGS}
    return {name: value for name, value in given.items() if value}


def read_settings(
    given: Mapping[str, object], *, base: Settings = DEFAULT_SETTINGS, where: str = "", also: Collection[str] = ()
) -> Settings:
    """Return the settings with what a file, the environment or a command gives, by name.

    `also` are names that the caller reads itself. Raises InputError with one line: `where` it was set, what is wrong,
    and for an unknown name what may have been meant.
    """
    origin = f"{where}: " if where else ""
    unknown = unknown_names(given, also)
    if unknown:
        raise InputError(f"{origin}{unknown}")
    try:
        return base.with_values({name: value for name, value in given.items() if name not in also})
    except InputError as error:
        raise InputError(f"{origin}{error}") from None


def unused_settings(given: Mapping[str, object], settings: Settings) -> dict[str, str]:
    """Return the options that a file, the environment or a command gives in vain, each with a line that says why.

    They belong neither to the preset in force nor to the one that was named beside them, before something else was
    chosen. Example: {"history_window": 5}, preset auto -> "history_window: preset auto does not use it, …"
    """
    beside = given.get("preset")
    presets = (preset_named(beside),) if isinstance(beside, str) else ()
    unused = unused_options(given, *presets, settings.rules)
    return {name: f"{name}: {remedy}" for name, remedy in unused.items()}


def unknown_names(given: Iterable[str], also: Collection[str] = ()) -> str:
    """Return what is wrong with unknown names, with the nearest known one; "" if all are known.

    Example: ["treshold"] -> "no such setting: treshold; did you mean threshold?"
    """
    known = [*(option.name for option in SETTINGS), *also]
    unknown = sorted(set(given) - set(known))
    if not unknown:
        return ""
    return f"no such setting: {', '.join(unknown)}{did_you_mean(unknown[0], known)}"
