"""nanobot's `config.json` and the names of the documents: what is written counts, wherever it is written."""

import json
from pathlib import Path

import pytest

from everlong.agent import AgentConfig
from everlong.agent.config import load_config
from everlong.engine import Call, Settings, due_at
from everlong.engine.budget import budget_of
from everlong.errors import BudgetImpossible, InputError
from everlong.store import open_store


def read(folder: Path, environment: dict[str, str] | None = None, /, **defaults: object) -> AgentConfig:
    """What the agent makes of nanobot's own file, and of variables."""
    file = folder / "config.json"
    file.write_text(json.dumps({"agents": {"defaults": defaults}}), "utf-8")
    return load_config(environment or {}, file=file)


def in_toml(folder: Path, environment: dict[str, str], **settings: object) -> AgentConfig:
    file = folder / "everlong.toml"
    file.write_text(
        "[agent]\n" + "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items()), "utf-8"
    )
    return load_config(environment, file=file)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


#: The settings of the documents, under their names.
NAMED = {
    "static-buffer": {"message_buffer_limit": 30, "message_buffer_min": 6},
    "simple": {"history_window": 5, "max_chars_per_message": 700},
    "nanobot": {"context_reserve_ratio": 0.4, "max_messages": 8, "tool_result_hard_limit": 0.1},
    "nanobot-v3": {"max_messages": 8},
}


@pytest.mark.parametrize("preset", NAMED)
def test_the_settings_of_a_document_count_in_every_place_alike(preset: str, tmp_path: Path) -> None:
    wanted = Settings(preset=preset, options=NAMED[preset])  # type: ignore[arg-type]
    variables = {f"EVERLONG_{name.upper()}": str(value) for name, value in NAMED[preset].items()}
    assert load_config({"EVERLONG_PRESET": preset, **variables}).engine == wanted
    assert Settings.from_environment({"EVERLONG_PRESET": preset, **variables}) == wanted
    assert in_toml(tmp_path, {}, preset=preset, **NAMED[preset]).engine == wanted
    assert in_toml(tmp_path, {"EVERLONG_PRESET": preset}, **NAMED[preset]).engine == wanted
    assert read(tmp_path, contextPreset=preset, **NAMED[preset]).engine == wanted
    assert (
        read(
            tmp_path, **{camel(name): value for name, value in {"context_preset": preset, **NAMED[preset]}.items()}
        ).engine
        == wanted
    )


@pytest.mark.parametrize("preset", ["nanobot", "static-buffer", "simple"])
def test_a_file_without_a_preset_has_the_one_whose_settings_it_has(preset: str, tmp_path: Path) -> None:
    config = read(tmp_path, **NAMED[preset])
    assert (config.engine.preset, config.unused) == (preset, ())
    assert config.engine.options == NAMED[preset]


@pytest.mark.parametrize("name", ["summaryModel", "summary_model", "compressionModel", "compression_model"])
def test_the_model_of_summaries_has_the_names_of_both_documents(name: str, tmp_path: Path) -> None:
    assert read(tmp_path, **{name: "gpt-4o-mini"}).summary_model == "gpt-4o-mini"


@pytest.mark.parametrize("ratio", [0.0, 0.05, 0.15, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("more", [{}, {"maxTokens": 2_000}, {"maxTokens": 8_192}], ids=str)
def test_N1_1_4_the_reserve_is_the_share_that_is_written(ratio: float, more: dict[str, object], tmp_path: Path) -> None:
    config = read(tmp_path, contextWindowOverride=100_000, contextReserveRatio=ratio, **more)
    with open_store("memory:") as store:
        budget = budget_of(store, config.engine, Call(model="gpt-4o", max_tokens=config.max_tokens))
    document = int(100_000 * (1 - ratio))
    room = 100_000 - max(budget.parts.reply, config.max_tokens or 0) - budget.parts.margin
    assert budget.messages == min(document, room)
    assert room >= document - budget.parts.margin or config.max_tokens, "only an answer that was asked for takes more"


def test_V3_the_defaults_come_with_its_preset_and_give_way_to_what_is_set(tmp_path: Path) -> None:
    def own(config: AgentConfig) -> tuple[object, ...]:
        return config.max_tokens, config.temperature, config.most_steps

    assert own(read(tmp_path, contextPreset="nanobot-v3")) == (8_192, 0.7, 20)
    assert own(load_config({"EVERLONG_PRESET": "nanobot-v3"})) == (8_192, 0.7, 20)
    assert own(load_config({}, options={"preset": "nanobot-v3", "most_steps": 40})) == (8_192, 0.7, 40)
    assert own(read(tmp_path, contextPreset="nanobot-v3", maxTokens=100, temperature=0)) == (100, 0, 20)
    assert own(read(tmp_path)) == own(AgentConfig())


def test_V3_a_window_of_nothing_is_taken_literally_and_the_error_says_so(tmp_path: Path) -> None:
    config = read(tmp_path, contextWindowOverride=0)
    assert config.engine.window == 0
    with open_store("memory:") as store, pytest.raises(BudgetImpossible, match="nothing fits into 0 tokens"):
        due_at(store, config.engine, Call(model="gpt-4o"))


def test_what_a_foreign_file_has_in_vain_is_named_as_it_is_written_and_the_file_loads(tmp_path: Path) -> None:
    config = read(tmp_path, contextPreset="nanobot", messageBufferLimit=30, history_window=5, maxMessages=8, x=1)
    assert config.unused == ("messageBufferLimit", "history_window")
    assert config.engine.option("max_messages") == 8
    assert read(tmp_path, {"EVERLONG_PRESET": "simple"}, contextPreset="nanobot", history_window=5).unused == ()


IN_VAIN = [
    ("auto", "history_window", "history_window: preset auto does not use it; preset simple does"),
    (
        "nanobot",
        "history_window",
        "history_window: preset nanobot does not use it; preset simple does; preset nanobot has max_messages instead",
    ),
    (
        "simple",
        "max_user_message_chars",
        "max_user_message_chars: preset simple does not use it; preset nanobot does; "
        "preset simple has max_chars_per_message instead",
    ),
    ("chatbox", "message_buffer_min", "message_buffer_min: preset chatbox does not use it; preset static-buffer does"),
]


@pytest.mark.parametrize(("preset", "name", "line"), IN_VAIN, ids=lambda value: value)
def test_what_our_own_places_have_in_vain_is_refused_in_one_line(
    preset: str, name: str, line: str, tmp_path: Path
) -> None:
    variable = {f"EVERLONG_{name.upper()}": "9"}
    attempts = [
        lambda: load_config({"EVERLONG_PRESET": preset} | variable),
        lambda: Settings.from_environment({"EVERLONG_PRESET": preset} | variable),
        lambda: load_config({}, options={"preset": preset, name: 9}),
        lambda: in_toml(tmp_path, {}, preset=preset, **{name: 9}),
        lambda: in_toml(tmp_path, {"EVERLONG_PRESET": preset}, **{name: 9}),
    ]
    for attempt in attempts:
        with pytest.raises(InputError) as refused:
            attempt()
        assert str(refused.value).partition(": ")[2] == line


def test_what_a_file_sets_for_its_own_preset_stays_when_another_is_chosen_for_once(tmp_path: Path) -> None:
    config = in_toml(tmp_path, {"EVERLONG_PRESET": "simple"}, preset="nanobot", max_messages=8)
    assert config.engine.rules.name == "simple"


def test_a_thread_may_have_another_preset_than_the_settings_are_for() -> None:
    settings = Settings.from_environment({"EVERLONG_PRESET": "simple", "EVERLONG_HISTORY_WINDOW": "5"})
    assert settings.for_thread('{"preset": "auto"}').rules.name == "auto"
    assert settings.for_thread('{"preset": "nanobot", "max_messages": 8}').option("max_messages") == 8
