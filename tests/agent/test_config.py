"""Configuration: every field has a default; file, variables and options each go over the one before."""

import json
from pathlib import Path

import pytest

from everlong.agent.config import TRUSTED, VARIABLES, AgentConfig, McpServer, SubAgents, config_file, load_config
from everlong.engine import Settings
from everlong.errors import InputError

TOML = """
[agent]
model = "claude-opus-4-5"
upstream = "anthropic"
workspace = "~/work"
most_steps = 12
tools_off = ["shell"]
approval = "never"
preset = "chatbox"
threshold = 0.8
language = "zh"
[agent.subagents]
model = "claude-haiku-4-5"
window = 32000
most_tokens = 100000
[agent.mcp.files]
command = "mcp-files"
args = ["--root", "."]
env = { TOKEN = "secret-token" }
[agent.mcp.web]
url = "http://127.0.0.1:9/mcp"
seconds = 5.0
[gateway]
port = 1
"""


def written(folder: Path, text: str, name: str = "everlong.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_every_field_has_a_default() -> None:
    assert load_config({}) == AgentConfig()


def test_the_file_is_read(tmp_path: Path) -> None:
    config = load_config({}, file=written(tmp_path, TOML))
    assert (config.model, config.upstream, config.most_steps) == ("claude-opus-4-5", "anthropic", 12)
    assert config.workspace == Path("~/work").expanduser()
    assert (config.tools_off, config.approval, config.language) == (("shell",), "never", "zh")
    assert config.engine == Settings(preset="chatbox", threshold=0.8)
    assert config.subagents == SubAgents(model="claude-haiku-4-5", window=32_000, most_tokens=100_000)
    assert config.mcp == (
        McpServer(name="files", command="mcp-files", args=("--root", "."), env=(("TOKEN", "secret-token"),)),
        McpServer(name="web", url="http://127.0.0.1:9/mcp", seconds=5.0),
    )
    assert "secret-token" not in repr(config)


def test_variables_go_over_the_file_and_options_over_both(tmp_path: Path) -> None:
    environment = {"EVERLONG_MODEL": "gpt-4o", "EVERLONG_MOST_STEPS": "7", "EVERLONG_THRESHOLD": "0.6", "OTHER": "x"}
    config = load_config(environment, file=written(tmp_path, TOML), options={"most_steps": 3, "model": None})
    assert (config.model, config.most_steps, config.engine.threshold) == ("gpt-4o", 3, 0.6)
    assert config.engine.preset == "chatbox"
    assert load_config({"EVERLONG_TOOLS_OFF": "shell, spawn", "EVERLONG_MODEL": " "}).tools_off == ("shell", "spawn")


WRONG = {
    "unknown": ('[agent]\nmodle = "x"', "unknown setting: modle; did you mean mode"),
    "not toml": ("[agent", "everlong.toml"),
    "a word for a number": ('[agent]\nmost_steps = "many"', "most_steps must be an integer"),
    "no steps": ("[agent]\nmost_steps = 0", "most_steps must be at least 1"),
    "true for a number": ("[agent]\nmost_steps = true", "most_steps must be an integer"),
    "approval": ('[agent]\napproval = "sometimes"', "approval must be one of ask, always, never"),
    "sandbox": ('[agent]\nsandbox = "soft"', "one of auto, off, namespaces, bubblewrap, landlock"),
    "sandbox network": ('[agent]\nsandbox_network = "some"', "sandbox_network must be true or false"),
    "threshold": ("[agent]\nthreshold = 0.1", "threshold must be a share"),
    "server": ("[agent.mcp.x]\nseconds = 1.0", "either a command or a url"),
    "server field": ('[agent.mcp.x]\ncomand = "x"', "MCP server 'x' must be a table of"),
    "subagents": ("[agent.subagents]\ndepth = 1", "subagents must be a table of"),
    "model": ("[agent]\nmodel = 1", "model must be a string"),
    "section": ("agent = 1", "agent must be a section"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense_is_refused_by_name_in_one_line(name: str, tmp_path: Path) -> None:
    text, said = WRONG[name]
    with pytest.raises(InputError, match=said) as error:
        load_config({}, file=written(tmp_path, text))
    assert "\n" not in str(error.value)


ORIGINS: dict[str, tuple[dict[str, str], dict[str, object], str]] = {
    "a variable": ({"EVERLONG_MODE": "trim", "EVERLONG_PRESET": "x"}, {}, "EVERLONG_PRESET: unknown preset 'x'"),
    "one of the agent": ({"EVERLONG_MOST_STEPS": "many"}, {}, "EVERLONG_MOST_STEPS: most_steps must be an integer"),
    "one in vain": ({"EVERLONG_HISTORY_WINDOW": "9"}, {}, "EVERLONG_HISTORY_WINDOW: history_window: preset auto does"),
    "an option": ({}, {"model": "m", "preset": "x"}, "--preset: unknown preset 'x'"),
    "an option of two words": ({}, {"most_steps": 0}, "--most-steps: most_steps must be at least 1"),
    "an option in vain": ({}, {"history_window": 9}, "--history-window: history_window: preset auto does not use it"),
}


@pytest.mark.parametrize("name", ORIGINS)
def test_what_is_refused_is_named_where_it_was_set(name: str) -> None:
    environment, options, line = ORIGINS[name]
    with pytest.raises(InputError) as error:
        load_config(environment, options=options)
    assert str(error.value).startswith(line)


def test_every_unknown_setting_of_a_file_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown setting: modle, tresh"):
        load_config({}, file=written(tmp_path, '[agent]\ntresh = 1\nmodle = "x"'))


def test_the_fields_that_variables_set_and_those_that_a_fetched_folder_may_not() -> None:
    of_files = {"allow", "allowed", "deny", "extra", "mcp", "remembered", "subagents", "engine", "named", "unused"}
    assert set(VARIABLES) == set(AgentConfig.__dataclass_fields__) - of_files
    assert (
        *("allow", "allowed", "approval", "mcp", "policy", "sandbox", "sandbox_network", "upstream", "workspace"),
    ) == TRUSTED


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_config({}, file=tmp_path / "none.toml")


def test_the_file_that_counts(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    (home / ".config" / "everlong").mkdir(parents=True)
    here.mkdir()
    environment = {"HOME": str(home)}
    assert config_file(environment, here) is None
    own = written(home / ".config" / "everlong", "", "config.toml")
    assert config_file(environment, here) == own
    local = written(here, "")
    assert config_file(environment, here) == local
    assert config_file({**environment, "EVERLONG_CONFIG": "x.toml"}, here) == Path("x.toml")


NANOBOT = {
    "agents": {
        "defaults": {
            "workspace": "~/.nanobot/workspace",
            "model": "gpt-4o",
            "maxTokens": 8192,
            "temperature": 0.7,
            "maxToolIterations": 20,
            "contextCompression": True,
            "contextWindowOverride": 64000,
            "compressionModel": "gpt-4o-mini",
            "enableHistorySummarization": True,
        }
    },
    "channels": {"telegram": {"enabled": False}},
}


def test_nanobots_file_is_understood_by_its_names(tmp_path: Path) -> None:
    config = load_config({}, file=written(tmp_path, json.dumps(NANOBOT), "config.json"))
    assert (config.model, config.max_tokens, config.temperature, config.most_steps) == ("gpt-4o", 8_192, 0.7, 20)
    assert config.summary_model == "gpt-4o-mini"
    assert config.engine == Settings(preset="nanobot", window=64_000, reserve=9_600, summaries="on")


@pytest.mark.parametrize("text", ["{}", '{"agents": {}}', '{"agents": {"defaults": {"model": "gpt-4o", "x": 1}}}'])
def test_an_old_file_of_nanobot_loads_unchanged(text: str, tmp_path: Path) -> None:
    config = load_config({}, file=written(tmp_path, text, "config.json"))
    assert (config.engine.preset, config.engine.mode, config.engine.window) == ("nanobot", "auto", None)


def test_nanobots_switch_off_is_off(tmp_path: Path) -> None:
    text = json.dumps({"agents": {"defaults": {"context_compression": False}}})
    assert load_config({}, file=written(tmp_path, text, "config.json")).engine.mode == "off"
