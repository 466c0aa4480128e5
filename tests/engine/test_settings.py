"""Settings from the environment and from a thread: a bad value is one clear line, never a traceback later."""

import json
from typing import Any

import pytest

from everlong.engine.settings import Settings
from everlong.errors import InputError

BAD: list[tuple[str, Any]] = [
    ("mode", "automatic"),
    ("mode", None),
    ("mode", 7),
    ("preset", None),
    ("preset", "no-such-preset"),
    ("threshold", "high"),
    ("threshold", True),
    ("threshold", 0.2),
    ("threshold", 95),
    ("threshold", float("nan")),
    ("threshold", [0.8]),
    ("window", -1),
    ("window", "8x"),
    ("window", True),
    ("window", 8_000.5),
    ("window", float("inf")),
    ("window", {}),
    ("reserve", -1),
    ("reserve", "1e3"),
    ("recall_share", 1.5),
    ("recall_share", None),
    ("pin_share", -0.1),
    ("cold_mark", float("nan")),
    ("cache_seconds", -1),
    ("cache_seconds", float("nan")),
    ("cache_seconds", None),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=[f"{name} {value}" for name, value in BAD])
def test_a_bad_value_of_a_thread_is_one_clear_line(name: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"{name}|preset|share|tokens") as told:
        Settings().for_thread(json.dumps({name: value}))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, value in BAD if isinstance(value, str)], ids=lambda value: str(value)
)
def test_a_bad_value_of_the_environment_is_one_clear_line(name: str, value: str) -> None:
    with pytest.raises(InputError):
        Settings.from_environment({f"EVERLONG_{name.upper()}": value})


@pytest.mark.parametrize("own", ["", "nonsense", "[]", "7", "null", '"auto"', "[" * 100_000])
def test_settings_of_a_thread_that_are_no_object_are_one_clear_line(own: str) -> None:
    with pytest.raises(InputError, match="JSON object"):
        Settings().for_thread(own)


def test_what_is_said_is_taken_and_the_rest_is_left() -> None:
    base = Settings(threshold=0.5, window=9_000)
    said = base.for_thread('{"window": null, "mode": "trim", "theme": "dark", "reserve": 500.0}')
    assert said == Settings(threshold=0.5, window=None, mode="trim", reserve=500)


def test_the_environment_says_numbers_as_text_and_empty_is_not_said() -> None:
    said = Settings.from_environment(
        {"EVERLONG_THRESHOLD": " 0.8 ", "EVERLONG_WINDOW": "16000", "EVERLONG_RESERVE": "", "EVERLONG_MODE": " "}
    )
    assert said == Settings(threshold=0.8, window=16_000)


def test_off_is_a_preset_too() -> None:
    assert Settings(preset="off").preset == "off"
