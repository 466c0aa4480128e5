"""How a conversation is to be kept, as one value: for all threads, and what a thread says otherwise."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Literal, TypeAlias, cast, get_args

from everlong.compress import preset_named
from everlong.core import JsonText
from everlong.errors import InputError

__all__ = [
    "DEFAULT_SETTINGS",
    "DEFAULT_THRESHOLD",
    "HIGHEST_THRESHOLD",
    "LOWEST_THRESHOLD",
    "Mode",
    "Settings",
    "Summarizing",
]

#: off: nothing is changed, an overflow is an error. trim: cuts, but no model is asked to summarise. auto: both.
Mode: TypeAlias = Literal["off", "trim", "auto"]

#: auto: summaries where the preset has them by itself. on: also where its document leaves them to be asked for.
Summarizing: TypeAlias = Literal["auto", "on", "off"]

LOWEST_THRESHOLD, HIGHEST_THRESHOLD = 0.40, 0.95
DEFAULT_THRESHOLD = 0.90
PREFIX = "EVERLONG_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every field has a default that serves; a thread's own settings name only what differs."""

    mode: Mode = "auto"
    preset: str = "auto"
    #: The share of the room at which a cut is due, and the share it goes down to; None: by what the model charges
    #: and how large its window is.
    threshold: float = DEFAULT_THRESHOLD
    low_mark: float | None = None
    #: Tokens above which nobody wants to pay, however large the window is: the marks are then shares of this.
    soft_cap: int | None = None
    #: The window, where the user knows better than any table.
    window: int | None = None
    #: Tokens kept free for the answer where a request asks for none.
    reserve: int | None = None
    #: The share of the room that one recalled block may take; 0 recalls nothing by itself.
    recall_share: float = 0.08
    #: The share of the room that pins may take.
    pin_share: float = 0.25
    #: Seconds after which a provider has forgotten a prefix, and the share from which a cut is then made.
    cache_seconds: float = 300.0
    cold_mark: float = 0.6
    #: Whether summaries are begun by themselves, in mode auto and where there is someone to write them.
    summaries: Summarizing = "auto"
    #: For the preset nanobot, by the names of its document: shares of the window for one tool result, on arrival and at
    #: a cut, and characters of one message.
    tool_result_soft_limit: float = 0.3
    tool_result_hard_limit: float = 0.5
    max_user_message_chars: int = 30_000
    max_assistant_message_chars: int = 20_000

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise InputError(f"mode is one of {', '.join(get_args(Mode))}, not {self.mode!r}")
        if self.summaries not in get_args(Summarizing):
            raise InputError(f"summaries is one of {', '.join(get_args(Summarizing))}, not {self.summaries!r}")
        if not LOWEST_THRESHOLD <= self.threshold <= HIGHEST_THRESHOLD:
            raise InputError(
                f"the threshold is a share from {LOWEST_THRESHOLD:.2f} to {HIGHEST_THRESHOLD:.2f}, not {self.threshold}"
            )
        if self.low_mark is not None and not 0 < self.low_mark <= HIGHEST_THRESHOLD:
            raise InputError(f"low_mark is a share above 0 and up to {HIGHEST_THRESHOLD:.2f}, not {self.low_mark}")
        self._check_figures()
        if self.preset != "off":
            preset_named(self.preset)

    def _check_figures(self) -> None:
        for name in ("recall_share", "pin_share", "cold_mark", "tool_result_soft_limit", "tool_result_hard_limit"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is a share from 0 to 1, not {getattr(self, name)}")
        if not self.cache_seconds >= 0:
            raise InputError(f"cache_seconds is a number of seconds, not {self.cache_seconds}")
        for name, least in (("window", 1), ("reserve", 0), ("soft_cap", 1)):
            said = getattr(self, name)
            if said is not None and said < least:
                raise InputError(f"{name} is a number of tokens, not {said}")
        for name in ("max_user_message_chars", "max_assistant_message_chars"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is a number of characters, not {getattr(self, name)}")

    def for_thread(self, own: JsonText) -> "Settings":
        """These settings with what a thread says otherwise; fields that are no settings of ours are left alone."""
        try:
            said = json.loads(own)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise InputError("the settings of a thread are a JSON object")
        return self._with({name: said[name] for name in TYPES if name in said})

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """What EVERLONG_MODE, EVERLONG_PRESET, EVERLONG_THRESHOLD … say; the rest, and what is empty, is the default.

        Example: {"EVERLONG_THRESHOLD": "0.8"} -> Settings(threshold=0.8)
        """
        said = {name: environment.get(PREFIX + name.upper(), "").strip() for name in TYPES}
        return cls()._with({name: value for name, value in said.items() if value})

    def _with(self, said: Mapping[str, object]) -> "Settings":
        return replace(self, **{name: _value(name, value) for name, value in said.items()})  # type: ignore[arg-type]


def _value(name: str, said: object) -> object:
    """What is said for a field, as the field takes it. Raises InputError."""
    kind = TYPES[name]
    if said is None and getattr(DEFAULT_SETTINGS, name) is None:
        return None
    try:
        value = kind(cast(str, said))
        fits = isinstance(said, str | int | float) and not isinstance(said, bool)
        if fits and (isinstance(said, str) or value == said or kind is str):
            return value
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{name} is {NAMES[kind]}, not {said!r}")


NAMES = {str: "a word", int: "a whole number", float: "a number"}
#: What each field is made of when it comes as text or JSON.
TYPES: Mapping[str, type[str] | type[int] | type[float]] = MappingProxyType(
    {
        field.name: int if "int" in str(field.type) else float if "float" in str(field.type) else str
        for field in fields(Settings)
    }
)
DEFAULT_SETTINGS = Settings()
