"""Read the agent defaults in nanobot's `config.json` as our settings.

Fields are read by name, in both of nanobot's spellings (`maxTokens`, `max_tokens`); null means not set. They include
options of presets. `contextPreset` names the preset; without it, the preset that leaves the fewest of the file's
options unused is taken, `nanobot` if in doubt. Unknown fields and sections are ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from everlong.compress import PRESET_OPTIONS, preset_named, unused_options
from everlong.core import Json
from everlong.engine import SETTINGS
from everlong.errors import InputError

__all__ = ["NOTHING", "NanobotValues", "nanobot_values"]

PRESET = "context_preset"
#: The presets to choose from by the options in the file; if in doubt, the first.
GUESSED = ("nanobot", "static-buffer", "simple")
RESERVE = "context_reserve_ratio"
#: nanobot's names and ours. If two names mean the same setting, the later one wins.
NAMES: Mapping[str, str] = {
    "model": "model",
    "workspace": "workspace",
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "max_tool_iterations": "most_steps",
    "compression_model": "summary_model",
    "summary_model": "summary_model",
    PRESET: "preset",
    "context_window_override": "window",
}
#: Switches: the setting that each one sets, and its values for true and false.
FLAGS: Mapping[str, tuple[str, str, str]] = {
    "context_compression": ("mode", "auto", "off"),
    "enable_history_summarization": ("summaries", "on", "auto"),
}


@dataclass(frozen=True, slots=True)
class NanobotValues:
    """Settings by our names, and how the file spells each."""

    values: dict[str, object] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)


NOTHING = NanobotValues()


def nanobot_values(content: Mapping[str, Json]) -> NanobotValues:
    """Return our settings from nanobot's agents.defaults. Raises InputError, naming the field as the file does.

    Example: {"agents": {"defaults": {"maxToolIterations": 20}}} -> preset nanobot, most_steps 20
    """
    agents = content.get("agents")
    defaults = agents.get("defaults") if isinstance(agents, dict) else None
    given = defaults if isinstance(defaults, dict) else {}
    written = {_snake(name): name for name, value in given.items() if value not in (None, "")}
    found = NanobotValues()
    for name, spelt in written.items():
        if name in FLAGS:
            setting, on, off = FLAGS[name]
            if not isinstance(given[spelt], bool):
                raise InputError(f"{spelt} must be true or false, not {given[spelt]!r}")
            found.values[setting] = on if given[spelt] else off
        elif name in PRESET_OPTIONS:
            found.values[name], found.written[name] = _checked(name, spelt, given[spelt]), spelt
    for name, setting in NAMES.items():
        if name in written:
            found.values[setting] = _checked(setting, written[name], given[written[name]])
    found.values.setdefault("preset", min(GUESSED, key=lambda name: len(unused_options(written, preset_named(name)))))
    window, ratio = found.values.get("window"), found.values.get(RESERVE, PRESET_OPTIONS[RESERVE].default)
    reserved = not unused_options([RESERVE], preset_named(str(found.values["preset"])))
    if reserved and isinstance(window, int) and isinstance(ratio, int | float):
        found.values["reserve"] = window - int(window * (1 - ratio))
    return found


def _checked(setting: str, spelt: str, value: Json) -> object:
    """Return the value. Engine settings are checked here, so that an error names the field as the file spells it."""
    option = next((option for option in SETTINGS if option.name == setting), None)
    if option is None:
        return value
    read = replace(option, name=spelt).read(value)
    if setting == "preset":
        preset_named(str(read))
    return read


def _snake(name: str) -> str:
    """contextCompression -> context_compression"""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
