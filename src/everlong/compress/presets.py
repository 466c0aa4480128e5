"""The presets: each a readable tuple of steps with settings. `auto` is ours and the default.

The others do what their design document asks, with the same steps and other marks: where a document trims
before every call, its steps run before every call.
"""

from functools import partial

from everlong.compress.pipeline import Preset, when_close
from everlong.compress.steps.by_need import by_need
from everlong.compress.steps.duplicates import duplicates
from everlong.compress.steps.emergency import emergency
from everlong.compress.steps.hard_trim import hard_trim
from everlong.compress.steps.images import images
from everlong.compress.steps.json_tables import json_tables
from everlong.compress.steps.long_messages import long_messages
from everlong.compress.steps.newest import newest
from everlong.compress.steps.priority import priority
from everlong.compress.steps.reasoning import reasoning
from everlong.compress.steps.repeated_lines import repeated_lines
from everlong.compress.steps.soft_trim import soft_trim
from everlong.compress.steps.superseded import superseded
from everlong.compress.steps.terminal import terminal
from everlong.compress.steps.tool_rounds import tool_rounds
from everlong.errors import InputError

__all__ = ["AUTO", "CHATBOX", "NANOBOT", "NANOBOT_V3", "PRESETS", "SIMPLE", "STATIC_BUFFER", "nanobot", "preset_named"]

AUTO = Preset(
    name="auto",
    cut=(
        when_close(duplicates),
        when_close(partial(superseded, after_edits=False)),
        when_close(terminal),
        when_close(json_tables),
        when_close(repeated_lines),
        images,
        reasoning,
        by_need,
    ),
)


def nanobot(*, soft: float = 0.3, hard: float = 0.5, user: int = 30_000, assistant: int = 20_000) -> Preset:
    """The nine-stage document with its settings: shares of the window for results, characters for long messages."""
    return Preset(
        name="nanobot",
        arrival=(partial(soft_trim, share=soft, unit="characters"),),
        cut=(
            partial(hard_trim, share=hard),
            partial(long_messages, user=user, assistant=assistant),
            priority,
            partial(emergency, keep=(5, 2), unit="rounds", share=0.6),
        ),
        every_call=True,
    )


NANOBOT = nanobot()

NANOBOT_V3 = Preset(
    name="nanobot-v3",
    arrival=(partial(soft_trim, share=0.3, unit="tokens", most_characters=15_000),),
    cut=(
        partial(reasoning, longest=2_000),
        partial(hard_trim, share=0.5),
        partial(long_messages, user=30_000, assistant=30_000, shares=(0.6, 0.2)),
        partial(emergency, keep=(10, 4), unit="messages", share=0.6),
    ),
    every_call=True,
)

CHATBOX = Preset(
    name="chatbox",
    cut=(partial(tool_rounds, rounds=2), newest),
    every_call=True,
)

STATIC_BUFFER = Preset(
    name="static-buffer",
    cut=(partial(newest, most_messages=50, least_messages=10),),
    every_call=True,
)

SIMPLE = Preset(
    name="simple",
    cut=(
        partial(newest, most_messages=12, whole_rounds=False),
        partial(long_messages, user=4_000, assistant=4_000, shares=(1.0, 0.0), keep_last_round=False),
        partial(soft_trim, share=1.0, most_characters=4_000),
    ),
    every_call=True,
)

PRESETS: dict[str, Preset] = {
    preset.name: preset for preset in (AUTO, NANOBOT, NANOBOT_V3, CHATBOX, STATIC_BUFFER, SIMPLE)
}


def preset_named(name: str) -> Preset:
    """The preset of that name. Raises InputError, naming those that exist."""
    try:
        return PRESETS[name]
    except KeyError:
        raise InputError(f"no preset {name!r}; there are {', '.join(sorted(PRESETS))} and off") from None
