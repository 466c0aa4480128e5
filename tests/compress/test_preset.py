"""A preset of one's own: a wrong field is an error where the preset is made, and names preset and field."""

from functools import partial
from typing import Any

import pytest

from everlong.compress import PRESET_NAMES, HistoryWindow, Preset, SummaryPolicy, newest, preset_named, soft_trim
from everlong.errors import InputError

STEPS = "must be a tuple of steps, such as (newest,)"
SHARE = "threshold of preset 'mine' must be a share above 0 and up to 1, such as 0.9"
HISTORY = "history of preset 'mine' must be a HistoryWindow, such as HistoryWindow(messages=20)"


class Latest:
    """Not a step: nobody made an object of it."""


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a name of a step": (
        {"compaction": "newest"},
        f"compaction of preset 'mine' {STEPS}, not the string 'newest'",
    ),
    "a forgotten comma": (
        {"compaction": (partial(newest, most_messages=5))},
        f"compaction of preset 'mine' {STEPS}, not a partial",
    ),
    "a function alone": ({"arrival": soft_trim}, f"arrival of preset 'mine' {STEPS}, not a function"),
    "a list": ({"emergency": [newest]}, f"emergency of preset 'mine' {STEPS}, not a list"),
    "a class alone": ({"compaction": Latest}, f"compaction of preset 'mine' {STEPS}, not the class Latest"),
    "nothing": ({"compaction": None}, f"compaction of preset 'mine' {STEPS}, not None"),
    "a name among the steps": (
        {"compaction": (newest, "newest")},
        "step 2 in compaction of preset 'mine' must be a function, such as newest, not the string 'newest'",
    ),
    "a class among the steps": (
        {"compaction": (Latest,)},
        "step 1 in compaction of preset 'mine' must be a function, such as newest, not the class Latest",
    ),
    "what a call returned": (
        {"overflow": (sorted([3, 1]),)},
        "step 1 in overflow of preset 'mine' must be a function, such as newest, not a list",
    ),
    "a compressor by its name": (
        {"compressor": "last_three"},
        "compressor of preset 'mine' must be a function, not the string 'last_three'",
    ),
    "a number of messages": ({"history": 20}, f"{HISTORY}, not 20"),
    "no history": ({"history": None}, f"{HISTORY}, not None"),
    "a style for a policy": (
        {"summary": "free"},
        "summary of preset 'mine' must be a SummaryPolicy, such as SummaryPolicy(rounds=10), not the string 'free'",
    ),
    "percent": ({"threshold": 90}, f"{SHARE}, not 90"),
    "a share of nothing": ({"threshold": 0}, f"{SHARE}, not 0"),
    "a share below nothing": ({"threshold": -0.5}, f"{SHARE}, not -0.5"),
    "no number": ({"threshold": float("nan")}, f"{SHARE}, not nan"),
    "a share as text": ({"threshold": "0.9"}, f"{SHARE}, not the string '0.9'"),
    "no name": ({"name": " "}, "a preset needs a name, such as Preset(name='mine')"),
    "a number for a name": ({"name": 5}, "name of a preset must be a string, not 5"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_field_is_one_line_with_preset_and_field(name: str) -> None:
    fields, line = WRONG[name]
    with pytest.raises(InputError) as told:
        Preset(**{"name": "mine", **fields})
    assert str(told.value) == line


@pytest.mark.parametrize(
    ("style", "line"),
    [
        ("fancy", "not 'fancy'"),
        ("structred", "not 'structred'; did you mean structured?"),
        (None, "not None"),
        (["free"], "not ['free']; did you mean free?"),
    ],
)
def test_an_unknown_style_of_summaries_lists_the_styles(style: Any, line: str) -> None:
    with pytest.raises(InputError) as told:
        SummaryPolicy(style=style)
    styles = "structured, free, rolling, buffer, chat"
    assert str(told.value) == f"style of SummaryPolicy must be one of {styles}, {line}"


class Steps:
    """An object to call counts as a step."""

    def __call__(self, draft: Any, task: Any) -> Any:
        return draft


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"compaction": (newest, partial(newest, most_messages=5), Steps(), lambda draft, task: draft)},
        {"overflow": None, "arrival": (), "emergency": ()},
        {"threshold": 1, "history": HistoryWindow(messages=20), "summary": SummaryPolicy(style="chat")},
    ],
)
def test_what_makes_sense_is_taken(fields: dict[str, Any]) -> None:
    assert Preset(name="mine", **fields).name == "mine"


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_every_preset_of_ours_can_be_configured_and_made_lighter(name: str) -> None:
    preset = preset_named(name).configured({})
    assert preset.within_bytes(1_000).after_overflow.name == name
