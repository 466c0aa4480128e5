"""The presets, one per file, and the table of them. `auto` is our own and the default.

The others do end to end what their design document asks. To add a preset, add its file and its row here.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from everlong.compress.options import Option
from everlong.compress.preset import Preset, SummaryPolicy, SummaryStyle
from everlong.compress.presets.auto import AUTO
from everlong.compress.presets.chatbox import CHATBOX
from everlong.compress.presets.nanobot import NANOBOT
from everlong.compress.presets.nanobot_v3 import NANOBOT_V3
from everlong.compress.presets.off import OFF
from everlong.compress.presets.simple import SIMPLE
from everlong.compress.presets.static_buffer import STATIC_BUFFER
from everlong.core import did_you_mean, value_named
from everlong.errors import InputError

__all__ = ["PRESETS", "PRESET_NAMES", "PRESET_OPTIONS", "policy_of_style", "preset_named", "unused_options"]

_TABLE = (AUTO, NANOBOT, NANOBOT_V3, CHATBOX, STATIC_BUFFER, SIMPLE, OFF)

#: The presets that compact, by name.
PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _TABLE if not preset.untouched})
#: All names that people may choose; those that change nothing come last.
PRESET_NAMES = (*sorted(PRESETS), *(preset.name for preset in _TABLE if preset.untouched))
#: The options of all presets, by name.
PRESET_OPTIONS: Mapping[str, Option] = MappingProxyType(
    {option.name: option for preset in _TABLE for option in preset.options}
)


def preset_named(name: str, *, modules: bool = False) -> Preset:
    """Return the preset with this name. Raises InputError with the names of all presets.

    With `modules`, a name may also be `module:NAME`: a `Preset` of the user's own. That runs the module's code, so it is
    only for names that the user of the program gave, never for those in a request. Example: "mine:LATEST"
    """
    if modules and ":" in name:
        value = value_named(name)
        if not isinstance(value, Preset):
            raise InputError(f"{name} is of type {type(value).__name__}, not a Preset")
        return value
    preset = next((preset for preset in _TABLE if preset.name == name), None)
    if preset is None:
        *names, last = PRESET_NAMES
        raise InputError(
            f"unknown preset {name!r}; the presets are {', '.join(names)} and {last}{did_you_mean(name, PRESET_NAMES)}"
        )
    return preset


def unused_options(given: Iterable[str], *presets: Preset) -> dict[str, str]:
    """Return the options that none of these presets uses, each with what to do instead.

    The last preset is the one in use. Example: ["history_window"], nanobot -> "preset nanobot does not use it; preset
    simple does; preset nanobot has max_messages instead"
    """
    used = {option.name for preset in presets for option in preset.options}
    chosen = presets[-1]
    return {
        name: _remedy(PRESET_OPTIONS[name], chosen) for name in given if name in PRESET_OPTIONS and name not in used
    }


def _remedy(option: Option, chosen: Preset) -> str:
    users = [preset.name for preset in _TABLE if any(own.name == option.name for own in preset.options)]
    does = f"preset {chosen.name} does not use it; preset {users[0]} does"
    instead = [own.name for own in chosen.options if option.subject and own.subject == option.subject]
    return f"{does}; preset {chosen.name} has {instead[0]} instead" if instead else does


def policy_of_style(style: SummaryStyle) -> SummaryPolicy:
    """Return the policy of the first preset with this style of summary, or the default policy."""
    policies = (preset.summary for preset in _TABLE if preset.summary.style == style)
    return next(policies, SummaryPolicy(style=style))
