"""One reader of settings: names, defaults by surface, options of presets, and one clear line for what is wrong."""

import pickle
from dataclasses import asdict, replace

import pytest

from everlong.compress import PRESET_NAMES, PRESET_OPTIONS, PRESETS, preset_named
from everlong.engine.settings import (
    DEFAULT_SETTINGS,
    HIGHEST_THRESHOLD,
    SETTINGS,
    SURFACE_DEFAULTS,
    Settings,
    defaults_of,
    read_settings,
    variables_of,
)
from everlong.errors import InputError


def test_every_setting_is_described_once_and_its_default_is_what_settings_have() -> None:
    names = [option.name for option in SETTINGS]
    assert len(names) == len(set(names))
    assert all(option.help for option in SETTINGS)
    for option in SETTINGS:
        if option.name not in PRESET_OPTIONS:
            assert getattr(DEFAULT_SETTINGS, option.name) == option.default
        option.check(option.default)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"treshold": 0.8}, "gateway.toml: unknown setting: treshold; did you mean threshold?"),
        ({"summarise": "on"}, "gateway.toml: unknown setting: summarise; did you mean summaries?"),
        ({"qqq": 1}, "gateway.toml: unknown setting: qqq"),
        ({"threshold": "much"}, "gateway.toml: threshold must be a number, not 'much'"),
        ({"threshold": 0.39}, "gateway.toml: threshold must be a share from 0.40 to 0.95, not 0.39"),
        ({"low_mark": 0}, "gateway.toml: low_mark must be a share above 0 and up to 0.95, not 0.0"),
        ({"mode": "on"}, "gateway.toml: mode must be one of off, trim, auto, not 'on'"),
        ({"window": -1}, "gateway.toml: window must be a number of tokens, not -1"),
        ({"window": "12x"}, "gateway.toml: window must be an integer, not '12x'"),
        ({"cache_seconds": -1}, "gateway.toml: cache_seconds must be a number of seconds, not -1.0"),
        ({"max_user_message_chars": -1}, "gateway.toml: max_user_message_chars must be a number of characters, not -1"),
        ({"tool_result_hard_limit": 1.5}, "gateway.toml: tool_result_hard_limit must be a share from 0 to 1, not 1.5"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(given: dict[str, object], line: str) -> None:
    with pytest.raises(InputError) as told:
        read_settings(given, where="gateway.toml")
    assert str(told.value) == line


@pytest.mark.parametrize(
    ("name", "value"),
    [("threshold", 0.40), ("threshold", 0.95), ("low_mark", 0.95), ("window", 0), ("reserve", 0), ("soft_cap", 1)],
)
def test_the_bounds_themselves_are_allowed(name: str, value: float) -> None:
    assert getattr(read_settings({name: value}), name) == value


@pytest.mark.parametrize("written", ["200000", "200k", "0.2M", "200_000", "200,000", 200_000, 200_000.0])
def test_tokens_may_be_written_as_people_write_them(written: object) -> None:
    assert read_settings({"window": written, "soft_cap": written}) == Settings(window=200_000, soft_cap=200_000)


def test_names_of_the_caller_are_left_to_the_caller() -> None:
    settings = read_settings({"port": 8_333, "threshold": "0.8"}, also=("port",), base=Settings(mode="trim"))
    assert settings == Settings(threshold=0.8, mode="trim")


def test_options_of_presets_are_settings_by_their_own_names() -> None:
    variables = variables_of({"EVERLONG_TOOL_RESULT_SOFT_LIMIT": "0.1", "EVERLONG_PRESET": "nanobot", "PATH": "/bin"})
    settings = read_settings(variables)
    assert settings.option("tool_result_soft_limit") == 0.1
    assert settings.option("tool_result_hard_limit") == 0.5
    assert settings.rules.arrival[0].keywords["share"] == 0.1  # type: ignore[attr-defined]
    assert replace(settings, preset="auto").rules == preset_named("auto")
    assert settings.for_thread('{"max_user_message_chars": 7}').options == {
        "tool_result_soft_limit": 0.1,
        "max_user_message_chars": 7,
    }


def test_an_option_that_is_set_to_its_default_is_not_set() -> None:
    assert Settings(options={"tool_result_soft_limit": 0.3}) == Settings()
    with pytest.raises(InputError, match="no preset has an option named 'nothing'"):
        Settings(options={"nothing": 1})


def test_another_prefix_reads_other_variables() -> None:
    environment = {"EVERLONG_GATEWAY_THRESHOLD": "0.5", "EVERLONG_THRESHOLD": "0.7"}
    assert variables_of(environment, prefix="EVERLONG_GATEWAY_") == {"threshold": "0.5"}


def test_where_a_surface_starts() -> None:
    thresholds = {surface: defaults_of(surface).threshold_share for surface in SURFACE_DEFAULTS}
    assert thresholds == {"library": 0.9, "gateway": 0.9, "agent": 0.9, "app": 0.6, "app, off": HIGHEST_THRESHOLD}
    assert (defaults_of("app, off").summaries, defaults_of("app, off").cold_mark) == ("off", 1.0)


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_every_name_is_a_preset_that_settings_take(name: str) -> None:
    preset = Settings(preset=name).rules
    assert preset.name == name
    assert Settings(preset=name).untouched is preset.untouched is (name not in PRESETS)


def test_settings_can_be_copied_compared_and_sent_to_another_process() -> None:
    settings = Settings(preset="nanobot", options={"tool_result_soft_limit": 0.2})
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert asdict(settings)["options"] == {"tool_result_soft_limit": 0.2}
    assert hash(settings) == hash(replace(settings, options={}))
