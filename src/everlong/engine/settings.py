"""The settings of the engine: one value for all threads, and the values that a thread overrides.

Each field is described once, here: name, type, default, limits, unit and help. Presets describe their own options.
`read_settings` reads and checks values from files, environment variables, commands and threads against these
descriptions.
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
    "operator_settings",
    "read_settings",
    "read_variables",
    "unknown_names",
    "unused_settings",
    "variable_named",
    "variables_of",
]

#: off: nothing is changed, and an overflow is an error. trim: compaction without a model. auto: summaries as well.
Mode: TypeAlias = Literal["off", "trim", "auto"]

#: auto: a model writes summaries where the preset says so; the preset auto does so in conversations without tools. on:
#: with tools too, and in presets that otherwise write them only on request.
Summarizing: TypeAlias = Literal["auto", "on", "off"]

#: The part of Everlong that runs a conversation. "app, off" is the app with automatic compaction switched off.
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
            raise InputError(f"no preset has an option named {name!r}{did_you_mean(name, PRESET_OPTIONS)}")
        PRESET_OPTIONS[name].check(value)
    return {name: value for name, value in given.items() if value != PRESET_OPTIONS[name].default}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of an engine. Every field has a default; a thread stores only the values that differ.

    - `mode`: "off" changes nothing, "trim" compacts without a model, "auto" also writes summaries.
    - `preset`: the name of a preset, or your own `Preset`.
    - `threshold`: when to compact, as a share of the tokens that compaction can remove (0.4 to 0.95).
    - `low_mark`: the target that a compaction goes down to, as a share of the same tokens.
    - `soft_cap`: the most tokens to pay for per request, however large the window is.
    - `window`: the model's context window in tokens, if you know better than the registry.
    - `unknown_window`: the context window in tokens to assume for a model that nothing is known about.
    - `reserve`: the tokens to keep free for the reply if a request does not set `max_tokens`.
    - `recall_share`: the share of the budget for one block of recalled text; 0 turns automatic recall off.
    - `pin_share`: the share of the budget for pins.
    - `cache_seconds`: how long the provider keeps a cached prefix, in seconds.
    - `cold_mark`: the share of the budget above which a compaction runs once the provider's cache has expired.
    - `summaries`: whether a model writes summaries: "auto" (as the preset says), "on" or "off".
    - `semantic`: vectors that help to choose what to keep: "off", "static", a folder with a model, or
      "module:function".
    - `options`: options of presets, by name. Options of other presets have no effect.
    """

    mode: Mode = _setting(  # noqa: RUF009 - the value is immutable
        "auto", "off changes nothing; trim compacts; auto also writes summaries.", str, choices=get_args(Mode)
    )
    preset: str | Preset = _setting(  # noqa: RUF009 - see mode
        "auto", "The strategy for compacting a history: a name, or module:NAME for a preset of your own.", str
    )
    threshold: float | None = _setting(
        None,
        "When to compact, as a share of the tokens that compaction can remove. Default: the preset's, 0.9 (chatbox: "
        "0.6).",
        float,
        unit="share",
        least=LOWEST_THRESHOLD,
        most=HIGHEST_THRESHOLD,
    )
    low_mark: float | None = _setting(
        None,
        "The target of a compaction, as a share of the same tokens. Default: chosen by the model's prices and window.",
        float,
        unit="share",
        least=0,
        most=HIGHEST_THRESHOLD,
        above=True,
    )
    soft_cap: int | None = _setting(
        None,
        "The most tokens to pay for in a request, however large the window. Threshold and target become shares of it.",
        int,
        unit="tokens",
        least=1,
    )
    window: int | None = _setting(
        None, "The model's context window, if you know better than the registry.", int, unit="tokens", least=0
    )
    unknown_window: int | None = _setting(
        None,
        "The context window to assume for an unknown model. Default: the preset's, 128,000 (chatbox: 96,000).",
        int,
        unit="tokens",
        least=1,
    )
    reserve: int | None = _setting(
        None, "Tokens to keep free for the reply if a request does not set a maximum.", int, unit="tokens", least=0
    )
    recall_share: float = _setting(
        0.08,
        "The share of the budget for one block of recalled text; 0 turns automatic recall off.",
        float,
        unit="share",
        least=0,
        most=1,
    )
    pin_share: float = _setting(0.25, "The share of the budget for pins.", float, unit="share", least=0, most=1)
    cache_seconds: float = _setting(
        300.0, "How long the provider keeps a cached prefix.", float, unit="seconds", least=0
    )
    cold_mark: float = _setting(
        0.6,
        "The share of the budget above which a compaction runs once the provider's cache has expired.",
        float,
        unit="share",
        least=0,
        most=1,
    )
    summaries: Summarizing = _setting(  # noqa: RUF009 - see mode
        "auto",
        "Whether a model writes summaries in mode auto: auto does what the preset says (preset auto: in conversations "
        "without tools), on always, off never.",
        str,
        choices=get_args(Summarizing),
    )
    semantic: str = _setting(
        "off",
        "Vectors that help to choose what to keep: off, static, a folder with a model, or module:function.",
        str,
        operator=True,
    )
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
        """The preset in use, with its options."""
        if isinstance(self.preset, Preset):
            return self.preset.configured(self.options)
        return _configured_preset(self.preset, tuple(sorted(self.options.items())))

    @property
    def threshold_share(self) -> float:
        """The threshold in use: the one that is set, or the preset's default."""
        return self.rules.threshold if self.threshold is None else self.threshold

    @property
    def assumed_window(self) -> int:
        """The context window to assume if it is unknown."""
        return self.rules.unknown_window if self.unknown_window is None else self.unknown_window

    @property
    def untouched(self) -> bool:
        """Whether messages are sent unchanged, because of the mode or the preset."""
        return self.mode == "off" or self.rules.untouched

    @property
    def summarises(self) -> bool:
        """Whether summaries start automatically."""
        if self.mode != "auto" or self.untouched or self.summaries == "off":
            return False
        return self.summaries == "on" or self.rules.summary.automatic

    @property
    def summarises_work(self) -> bool:
        """Whether a model also writes summaries of conversations that use tools."""
        return self.summarises and (self.summaries == "on" or self.rules.summary.in_work)

    @property
    def heeds_threshold(self) -> bool:
        """Whether the threshold decides when to compact. Some presets apply their own limits to every request."""
        policy = self.rules.summary
        return not self.rules.every_call or policy.due is not None or (self.summarises and not policy.by_count)

    def option(self, name: str) -> Scalar:
        """Return the value of a preset option: the one that is set, or its default."""
        return self.options.get(name, PRESET_OPTIONS[name].default)

    def for_thread(self, own: JsonText) -> "Settings":
        """Return these settings with the values that a thread overrides, given as JSON. Unknown fields are ignored."""
        try:
            given = json.loads(own)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise InputError("the settings of a thread must be a JSON object")
        theirs = (option.name for option in SETTINGS if not option.operator)
        return self.with_values({name: given[name] for name in theirs if name in given})

    def with_values(self, given: Mapping[str, object]) -> "Settings":
        """Return these settings with other values, given by name as text or JSON. Preset options count too.

        Raises InputError for a value that is not valid.
        """
        if not given:
            return self
        values: dict[str, Scalar | Preset] = {
            option.name: value if isinstance(value := given[option.name], Preset) else option.read(value)
            for option in SETTINGS
            if option.name in given
        }
        own = {name: value for name, value in values.items() if name in _OWN}
        if own.get("preset") == self.rules.name:  # a custom preset stays when it is named
            del own["preset"]
        options = {name: cast(Scalar, value) for name, value in values.items() if name not in _OWN}
        return replace(self, **own, options={**self.options, **options})  # type: ignore[arg-type]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Return the settings in EVERLONG_MODE, EVERLONG_PRESET, EVERLONG_THRESHOLD … Empty variables are ignored.

        Example: {"EVERLONG_THRESHOLD": "0.8"} -> Settings(threshold=0.8)
        """
        settings = read_variables(environment)
        for name, line in unused_settings(variables_of(environment), settings).items():
            raise InputError(f"{variable_named(name)}: {line}")
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

#: The values that a surface starts with if they differ from the defaults of the fields. A preset has its own defaults.
SURFACE_DEFAULTS: Mapping[Surface, Mapping[str, Scalar]] = MappingProxyType(
    {
        "library": {},
        "gateway": {},
        "agent": {},
        "app": {"threshold": 0.60, "unknown_window": 96_000},
        # No summary starts automatically, and nothing that fits is compacted.
        "app, off": {"summaries": "off", "threshold": HIGHEST_THRESHOLD, "cold_mark": 1.0},
    }
)


def defaults_of(surface: Surface) -> Settings:
    """Return the settings that a surface (library, gateway, agent, app) starts with."""
    return DEFAULT_SETTINGS.with_values(SURFACE_DEFAULTS[surface])


def variables_of(environment: Mapping[str, str], *, prefix: str = PREFIX) -> dict[str, str]:
    """Return the settings in environment variables, by name and still as text. Empty variables are ignored."""
    given = {option.name: environment.get(prefix + option.name.upper(), "").strip() for option in SETTINGS}
    return {name: value for name, value in given.items() if value}


def variable_named(name: str) -> str:
    """Return the environment variable of a setting. Example: "low_mark" -> "EVERLONG_LOW_MARK" """
    return PREFIX + name.upper()


def read_variables(environment: Mapping[str, str]) -> Settings:
    """Return the settings in environment variables. Raises InputError with the variable that is wrong."""
    settings = DEFAULT_SETTINGS
    for name, value in variables_of(environment).items():
        settings = read_settings({name: value}, base=settings, where=variable_named(name), modules=True)
    return settings


def read_settings(
    given: Mapping[str, object],
    *,
    base: Settings = DEFAULT_SETTINGS,
    where: str = "",
    also: Collection[str] = (),
    modules: bool = False,
) -> Settings:
    """Return settings with values from a file, the environment or a command, by name.

    `also` are names that the caller reads itself. `modules` allows a preset `module:NAME`, which runs code: only for
    what the user of the program wrote, never for a request. Raises InputError with one line: `where` the value was
    set, what is wrong with it, and for an unknown name the most similar known one.
    """
    origin = f"{where}: " if where else ""
    unknown = unknown_names(given, also)
    if unknown:
        raise InputError(f"{origin}{unknown}")
    values = {name: value for name, value in given.items() if name not in also}
    try:
        if modules and _in_module(given.get("preset")):
            values["preset"] = preset_named(str(given["preset"]), modules=True)
        return base.with_values(values)
    except InputError as error:
        raise InputError(f"{origin}{error}") from None


def unused_settings(given: Mapping[str, object], settings: Settings) -> dict[str, str]:
    """Return the options that have no effect under the preset in use, each with a line that explains why.

    An option also counts as used if it belongs to the preset named in the same place. Example: {"history_window": 5},
    preset auto -> "history_window: preset auto does not use it, …"
    """
    beside = given.get("preset")
    presets = (preset_named(beside),) if isinstance(beside, str) and not _in_module(beside) else ()
    unused = unused_options(given, *presets, settings.rules)
    return {name: f"{name}: {remedy}" for name, remedy in unused.items()}


def operator_settings(given: Mapping[str, object]) -> tuple[str, ...]:
    """Return the given settings that only the person who runs the program may set, because they name files or code.

    Example: {"preset": "mine:LATEST", "mode": "trim"} -> ("preset",)
    """
    named = {option.name for option in SETTINGS if option.operator}
    return tuple(sorted(name for name in given if name in named or (name == "preset" and _in_module(given[name]))))


def _in_module(preset: object) -> bool:
    """Whether a preset is named as `module:NAME`."""
    return isinstance(preset, str) and ":" in preset


def unknown_names(given: Iterable[str], also: Collection[str] = ()) -> str:
    """Return an error text for unknown setting names, with the most similar known one; "" if all are known.

    Example: ["treshold"] -> "unknown setting: treshold; did you mean threshold?"
    """
    known = [*(option.name for option in SETTINGS), *also]
    unknown = sorted(set(given) - set(known))
    if not unknown:
        return ""
    return f"unknown setting: {', '.join(unknown)}{did_you_mean(unknown[0], known)}"
