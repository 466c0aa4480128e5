"""What each preset says about itself. The values are those of the documents."""

from typing import Any

import pytest

from everlong.compress.preset import Preset
from everlong.compress.presets import PRESET_NAMES, PRESET_OPTIONS, PRESETS, preset_named
from everlong.compress.presets.chatbox import compaction_tokens
from everlong.errors import InputError

#: every call, style, automatic, in the system text, when needed, replaces, messages, characters
POLICIES: dict[str, tuple[Any, ...]] = {
    "auto": (False, "structured", True, False, False, False, None, None),
    "nanobot": (True, "rolling", False, True, True, False, 50, 20_000),
    "nanobot-v3": (True, "rolling", False, True, True, False, 50, 15_000),
    "chatbox": (True, "chat", True, False, False, True, None, None),
    "static-buffer": (True, "buffer", True, True, False, False, 50, None),
    "simple": (True, "structured", False, False, False, False, 12, 4_000),
    "off": (False, "structured", False, False, False, False, None, None),
}


@pytest.mark.parametrize("name", POLICIES)
def test_what_a_preset_says(name: str) -> None:
    preset = preset_named(name)
    policy, history = preset.summary, preset.history
    said = (preset.every_call, policy.style, policy.automatic, policy.in_system, policy.when_needed, policy.replaces)
    assert (*said, history.messages, history.characters) == POLICIES[name]
    assert preset.unknown_window == (96_000 if name == "chatbox" else 128_000)


def test_the_table_has_all_of_them_and_what_changes_nothing_comes_last() -> None:
    assert set(PRESET_NAMES) == set(POLICIES)
    assert PRESET_NAMES[-1] == "off"
    assert "off" not in PRESETS
    assert [name for name in PRESET_NAMES if preset_named(name).due_by_tokens] == ["auto"]
    assert [name for name in PRESET_NAMES if preset_named(name).measured] == ["auto"]


def test_an_unknown_name_is_one_line_that_names_the_others() -> None:
    with pytest.raises(InputError) as told:
        preset_named("fast")
    assert str(told.value) == (
        "unknown preset 'fast'; the presets are auto, chatbox, nanobot, nanobot-v3, simple, static-buffer and off"
    )


@pytest.mark.parametrize(
    ("name", "window", "reply", "tokens"),
    [
        ("nanobot", 64_000, 1, 54_400),
        ("nanobot", 1_000, 500, 850),
        ("nanobot-v3", 32_768, 8_192, 27_852),
    ],
)
def test_how_much_a_document_leaves_to_the_messages(name: str, window: int, reply: int, tokens: int) -> None:
    budget = preset_named(name).budget
    assert budget is not None
    assert budget(window, reply) == tokens


@pytest.mark.parametrize(
    ("window", "threshold", "tokens"), [(200_000, 0.6, 100_800), (64_000, 0.5, 16_000), (40_000, 0.5, 10_000)]
)
def test_where_chatbox_compacts(window: int, threshold: float, tokens: int) -> None:
    assert compaction_tokens(window, threshold) == tokens


def test_a_preset_with_options_is_the_same_preset_with_other_limits() -> None:
    nanobot = preset_named("nanobot")
    assert set(PRESET_OPTIONS) == {option.name for name in PRESET_NAMES for option in preset_named(name).options}
    assert [option.name for option in preset_named("nanobot-v3").options] == ["max_messages"]
    smaller = nanobot.configured({"max_assistant_message_chars": 500, "of another preset": 3})
    assert (smaller.name, smaller.history.characters) == ("nanobot", 500)
    assert smaller.configured().history.characters == 20_000
    assert preset_named("auto").configured({"max_user_message_chars": 1}) is preset_named("auto")
    assert preset_named("simple").configured({"history_window": 4}).history.messages == 4


def test_a_preset_of_ones_own_needs_a_name_and_nothing_else() -> None:
    assert Preset(name="mine").configured({}) == Preset(name="mine")
