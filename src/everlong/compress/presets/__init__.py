"""The presets, one a file, and the one table of them. `auto` is ours and the default.

The others do end to end what their design document asks. To add a preset, add its file and its row here.
"""

from collections.abc import Mapping
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
from everlong.errors import InputError

__all__ = ["PRESETS", "PRESET_NAMES", "PRESET_OPTIONS", "policy_of_style", "preset_named"]

_TABLE = (AUTO, NANOBOT, NANOBOT_V3, CHATBOX, STATIC_BUFFER, SIMPLE, OFF)

#: The presets that compact, by name.
PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _TABLE if not preset.untouched})
#: All names that people may choose; those that change nothing come last.
PRESET_NAMES = (*sorted(PRESETS), *(preset.name for preset in _TABLE if preset.untouched))
#: The options of all presets, by name.
PRESET_OPTIONS: Mapping[str, Option] = MappingProxyType(
    {option.name: option for preset in _TABLE for option in preset.options}
)


def preset_named(name: str) -> Preset:
    """Return the preset of that name. Raises InputError, naming those that exist."""
    preset = next((preset for preset in _TABLE if preset.name == name), None)
    if preset is None:
        *names, last = PRESET_NAMES
        raise InputError(f"no preset {name!r}; there are {', '.join(names)} and {last}")
    return preset


def policy_of_style(style: SummaryStyle) -> SummaryPolicy:
    """Return the policy of the first preset with this style of summaries; for a style of no preset, the usual one."""
    policies = (preset.summary for preset in _TABLE if preset.summary.style == style)
    return next(policies, SummaryPolicy(style=style))
