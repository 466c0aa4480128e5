"""The settings of the gateway: where they come from, and what is said about a bad one."""

import contextlib
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from everlong.compress import PRESETS, Option
from everlong.engine import DEFAULT_SETTINGS, SETTINGS, Settings
from everlong.errors import InputError
from everlong.gateway.config import GatewayConfig, KeyTable, Limits, UpstreamTable, load_config
from everlong.store import default_store

HASH = "a1" * 32
SECRET = "sk-very-secret"
#: An environment that has no file of settings anywhere.
NOWHERE = {"XDG_CONFIG_HOME": "/nowhere"}


def written(folder: Path, text: str) -> str:
    path = folder / "gateway.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def said_about(folder: Path, text: str) -> str:
    """The one line, without the name of the file before it."""
    file = written(folder, text)
    with pytest.raises(InputError) as refused:
        load_config(file, {}, {})
    line = str(refused.value)
    assert "\n" not in line
    assert SECRET not in line
    return line.removeprefix(f"{file}: ")


def test_every_field_has_a_default_and_a_description() -> None:
    assert GatewayConfig().port == 8333
    for table in (GatewayConfig, UpstreamTable, KeyTable, Limits):
        for field in fields(table):
            assert field.name == "engine" or field.metadata["help"], field.name


def test_constructing_reads_nothing() -> None:
    assert GatewayConfig(port=5) == replace(GatewayConfig(), port=5)


def test_the_engine_is_told_the_same_by_default() -> None:
    assert GatewayConfig().engine == DEFAULT_SETTINGS
    config = load_config(None, {"mode": "trim", "preset": "nanobot", "threshold": 0.5, "summaries": "off"}, NOWHERE)
    assert config.engine == Settings(mode="trim", preset="nanobot", threshold=0.5, summaries="off")
    config = load_config(None, {"low_mark": 0.3}, NOWHERE | {"EVERLONG_GATEWAY_SOFT_CAP": "60000"})
    assert config.engine == Settings(low_mark=0.3, soft_cap=60_000)


@pytest.mark.parametrize("option", SETTINGS, ids=lambda option: option.name)
def test_every_setting_of_the_engine_may_be_set(option: Option, tmp_path: Path) -> None:
    if option.default is None:
        return
    value = f"{option.default!r}" if not isinstance(option.default, str) else f'"{option.default}"'
    line = f"{option.name} = {value}"
    users = [preset for preset in PRESETS.values() if option in preset.options]
    if not users:
        assert load_config(written(tmp_path, line), {}, {}) == GatewayConfig()
    for preset in users:
        config = load_config(written(tmp_path, line), {"preset": preset.name}, {})
        assert config == GatewayConfig(engine=Settings(preset=preset.name))


def test_a_setting_that_the_preset_does_not_use_is_refused_where_it_was_set(tmp_path: Path) -> None:
    line = "history_window: preset auto does not use it; preset simple does"
    assert said_about(tmp_path, "history_window = 5") == line
    for options, environment, origin in (
        ({}, {"EVERLONG_GATEWAY_HISTORY_WINDOW": "5"}, "EVERLONG_GATEWAY_HISTORY_WINDOW"),
        ({"history_window": 5}, {}, "--history-window"),
    ):
        with pytest.raises(InputError) as refused:
            load_config(None, options, NOWHERE | environment)
        assert str(refused.value) == f"{origin}: {line}"
    both = load_config(written(tmp_path, "history_window = 5"), {}, {"EVERLONG_GATEWAY_PRESET": "simple"})
    assert both.engine == Settings(preset="simple", options={"history_window": 5})


def test_options_outweigh_the_environment_and_that_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, 'port = 1\nworkers = 2\nusage = "original"\nkeep = "text"\n')
    environment = {"EVERLONG_GATEWAY_PORT": "3", "EVERLONG_GATEWAY_WORKERS": "4", "EVERLONG_GATEWAY_KEEP": ""}
    config = load_config(file, {"port": 5, "usage": None}, environment)
    assert (config.port, config.workers, config.usage, config.keep, config.host) == (
        5,
        4,
        "original",
        "text",
        "127.0.0.1",
    )


def test_a_file_with_everything(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        f"""
        host = "0.0.0.0"
        largest_body = "8MiB"
        memory = 1_000_000
        access_log = false

        [[upstreams]]
        name = "main"
        url = "anthropic"
        key = "env:MAIN_KEY"
        formats = ["anthropic"]
        models = ["claude-*"]
        headers = {{ "x-team" = "core" }}

        [[keys]]
        name = "alice"
        hash = "{HASH.upper()}"
        mode = "off"
        recall = true
        limits = {{ requests_per_minute = 60, at_once = 4 }}
        """,
    )
    config = load_config(file, {}, {})
    assert config.largest_body == 8 * 2**20
    assert not config.access_log
    assert config.upstreams == (
        UpstreamTable(
            name="main",
            url="anthropic",
            key="env:MAIN_KEY",
            formats=("anthropic",),
            models=("claude-*",),
            headers={"x-team": "core"},
        ),
    )
    limits = Limits(requests_per_minute=60, at_once=4)
    assert config.keys == (KeyTable(name="alice", hash=HASH, mode="off", recall=True, limits=limits),)


def test_lists_in_the_environment_are_json() -> None:
    config = load_config(None, {}, NOWHERE | {"EVERLONG_GATEWAY_UPSTREAMS": '[{"url": "openai"}]'})
    assert config.upstreams == (UpstreamTable(url="openai"),)


def test_what_kubernetes_says_of_a_service_is_not_taken_for_ours() -> None:
    environment = {
        "EVERLONG_GATEWAY_PORT": "tcp://10.0.0.1:8333",
        "EVERLONG_GATEWAY_SERVICE_HOST": "10.0.0.1",
        "EVERLONG_GATEWAY_PORT_8333_TCP_PROTO": "tcp",
    }
    assert load_config(None, {}, environment | NOWHERE).port == 8333


# --- which file --------------------------------------------------------------------------------


def test_the_file_that_is_read(tmp_path: Path) -> None:
    named, variable, here, own = (tmp_path / name for name in ("named.toml", "variable.toml", "here", "own"))
    (own / "everlong").mkdir(parents=True)
    here.mkdir()
    environment = {"XDG_CONFIG_HOME": str(own), "EVERLONG_CONFIG": str(variable)}
    usual = {"XDG_CONFIG_HOME": str(own)}
    files = (named, variable, here / "everlong.toml", own / "everlong" / "gateway.toml")
    for port, path in enumerate(files, start=1):
        path.write_text(f"port = {port}", encoding="utf-8")
    with contextlib.chdir(here):
        assert load_config(str(named), {}, environment).port == 1
        assert load_config(None, {}, environment).port == 2
        assert load_config(None, {}, usual).port == 3
        (here / "everlong.toml").unlink()
        assert load_config(None, {}, usual).port == 4
        assert load_config(None, {}, {"XDG_CONFIG_HOME": str(here)}).port == 8333


def test_a_variable_names_the_store() -> None:
    assert default_store({"EVERLONG_STORE": "jsonl:here"}, "linux") == "jsonl:here"


# --- bad input ---------------------------------------------------------------------------------

KEY = f'[[keys]]\nname = "a"\nhash = "{HASH}"\n'

BAD = [
    ("unknown field", "prot = 1", "unknown setting 'prot'; did you mean port?"),
    ("unknown, nothing near", "zzz = 1", "unknown setting 'zzz'; known: access_log, app, app_lease, body_timeout,"),
    ("unknown in a table", '[[upstreams]]\nulr = "x"', "unknown setting 'upstreams[0].ulr'; did you mean url?"),
    (
        "unknown in limits",
        KEY + "limits.at_onc = 1",
        "unknown setting 'keys[0].limits.at_onc'; did you mean at_once?",
    ),
    ("a key as it is", f'[[keys]]\nname = "a"\nkey = "{SECRET}"', "unknown setting 'keys[0].key'; known: hash,"),
    ("deployments of text", 'deployments = "gpt-4o"', 'deployments must be a table, such as my-name = "gpt-4o"'),
    ("a deployment of nothing", 'deployments = {a = ""}', "deployments.a.model is empty"),
    ("a deployment of truth", "deployments = {a = 0}", "deployments.a.window must be at least 1"),
    ("a deployment with more", "deployments = {a = {model = 'm', size = 3}}", "unknown setting 'deployments.a.size'"),
    ("no network", 'trusted_proxies = ["10.0.0.0/8", "lb"]', "trusted_proxies[1] must be an address or a network"),
    ("a word for a number", 'port = "web"', "port must be an integer, not 'web'"),
    ("a fraction", "port = 1.5", "port must be an integer, not 1.5"),
    ("true for a number", "port = true", "port must be an integer, not True"),
    ("true for seconds", "grace = true", "grace must be a number, not True"),
    ("negative", "port = -1", "port must be at least 0, not -1"),
    ("too large", "port = 65536", "port must be at most 65535, not 65536"),
    ("no workers", "workers = 0", "workers must be at least 1, not 0"),
    ("no time", "connect_timeout = 0", "connect_timeout must be more than 0, not 0"),
    ("negative days", "retention_days = -1", "retention_days must be at least 0, not -1"),
    ("for ever", "grace = inf", "grace must be a finite number, not inf"),
    ("not a number", "threshold = nan", "threshold must be a number, not nan"),
    ("threshold too low", "threshold = 0.1", "threshold must be a share from 0.40 to 0.95, not 0.1"),
    ("low mark too high", "low_mark = 0.96", "low_mark must be a share above 0 and up to 0.95, not 0.96"),
    ("no low mark", "low_mark = 0", "low_mark must be a share above 0 and up to 0.95, not 0"),
    ("no soft cap", "soft_cap = 0", "soft_cap must be a number of tokens, not 0"),
    ("a number for a word", "host = 5", "host must be text, not 5"),
    ("perhaps", 'open = "perhaps"', "open must be true or false, not 'perhaps'"),
    ("unknown mode", 'mode = "on"', "mode must be one of off, trim, auto, not 'on'"),
    ("unknown preset", 'preset = "best"', "unknown preset 'best'; the presets are auto, chatbox, nanobot,"),
    ("unknown keep", 'keep = "all"', "keep must be one of nothing, edits, text, not 'all'"),
    (
        "size below nothing",
        "largest_body = -1",
        "largest_body must be a number of bytes, such as 67108864 or 64MiB, not -1",
    ),
    (
        "size of no unit",
        'memory = "5 cats"',
        "memory must be a number of bytes, such as 67108864 or 64MiB, not '5 cats'",
    ),
    ("a long value", f'port = "{"x" * 500}"', "port must be an integer, not 'xxxxxxxxxx"),
    ("no list", "upstreams = 3", "upstreams must be a list"),
    ("no table", f'upstreams = ["{SECRET}"]', "upstreams[0] must be a table"),
    ("no url", '[[upstreams]]\nname = "x"', "upstreams[0].url is missing"),
    ("empty url", '[[upstreams]]\nurl = ""', "upstreams[0].url is empty"),
    (
        "no such format",
        '[[upstreams]]\nurl = "x"\nformats = ["soap"]',
        "upstreams[0].formats[0] must be one of openai-chat,",
    ),
    ("a number for a key", '[[upstreams]]\nurl = "x"\nkey = 5', "upstreams[0].key must be text"),
    ("a slash in a name", '[[upstreams]]\nurl = "x"\nname = "a/b"', "upstreams[0].name must not contain spaces"),
    (
        "two upstreams of a name",
        '[[upstreams]]\nurl = "x"\nname = "a"\n[[upstreams]]\nurl = "y"\nname = "A"',
        "upstreams has two tables with the same name, 'a'",
    ),
    ("headers no table", f'[[upstreams]]\nurl = "x"\nheaders = "{SECRET}"', "upstreams[0].headers must be a table"),
    ("a header no text", '[[upstreams]]\nurl = "x"\nheaders = {a = 1}', "upstreams[0].headers.a must be text"),
    ("a key instead of its hash", f'[[keys]]\nname = "a"\nhash = "{SECRET}"', "keys[0].hash must be the SHA-256"),
    ("no hash", '[[keys]]\nname = "a"', "keys[0].hash is missing"),
    ("two keys of a name", KEY + KEY.replace("a1", "b2"), "keys has two tables with the same name, 'a'"),
    ("one key twice", KEY + KEY.replace('"a"', '"b"'), "keys has two tables with the same hash"),
    ("limit of nothing", KEY + "limits.at_once = 0", "keys[0].limits.at_once must be at least 1"),
    ("TOML", "port = 1\nhost = = 2\n", "Invalid value (at line 2, column 8)"),
    ("TOML, twice", "port = 1\nport = 2\n", "Cannot overwrite a value (at line 2, column 9)"),
]


@pytest.mark.parametrize(("text", "line"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_setting_is_told_in_one_line(tmp_path: Path, text: str, line: str) -> None:
    said = said_about(tmp_path, text)
    assert said.startswith(line)
    assert len(said) < 1_000


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none.toml", "No such file"), (tmp_path, "a folder, not a file")):
        with pytest.raises(InputError, match=said):
            load_config(str(path), {}, {})
        with pytest.raises(InputError, match=said):
            load_config(None, {}, {"EVERLONG_CONFIG": str(path)})
    with pytest.raises(InputError, match=r"^~nobody-of-this-name/x: "):
        load_config("~nobody-of-this-name/x", {}, {})
    (tmp_path / "bytes.toml").write_bytes(b'host = "\xff"')
    with pytest.raises(InputError, match="not UTF-8 text \\(at byte 8\\)"):
        load_config(str(tmp_path / "bytes.toml"), {}, {})
    with pytest.raises(InputError, match="nested too deeply"):
        load_config(written(tmp_path, "host = " + "[" * 50_000), {}, {})


def test_proxies_stand_in_one_line_of_a_variable() -> None:
    config = load_config(None, {}, {"EVERLONG_GATEWAY_TRUSTED_PROXIES": "10.0.0.1, 192.168.0.0/16"})
    assert config.trusted_proxies == ("10.0.0.1/32", "192.168.0.0/16")


BAD_VARIABLES = [
    ("a word", {"EVERLONG_GATEWAY_PORT": "web"}, "EVERLONG_GATEWAY_PORT: port must be an integer, not 'web'"),
    (
        "no JSON",
        {"EVERLONG_GATEWAY_UPSTREAMS": f"[{SECRET}"},
        "EVERLONG_GATEWAY_UPSTREAMS: upstreams must be a list of tables",
    ),
    ("no list", {"EVERLONG_GATEWAY_KEYS": f'"{SECRET}"'}, "EVERLONG_GATEWAY_KEYS: keys must be a list"),
    ("field", {"EVERLONG_GATEWAY_KEYS": f'[{{"key": "{SECRET}"}}]'}, "EVERLONG_GATEWAY_KEYS: unknown setting"),
]


@pytest.mark.parametrize(
    ("variables", "line"), [row[1:] for row in BAD_VARIABLES], ids=[row[0] for row in BAD_VARIABLES]
)
def test_a_bad_variable_is_named(variables: dict[str, str], line: str) -> None:
    with pytest.raises(InputError) as refused:
        load_config(None, {}, variables | NOWHERE)
    assert str(refused.value).startswith(line)
    assert SECRET not in str(refused.value)


def test_a_bad_option_is_named() -> None:
    with pytest.raises(InputError, match=r"^--connect-timeout: connect_timeout must be a number, not 'soon'$"):
        load_config(None, {"connect_timeout": "soon"}, NOWHERE)
    with pytest.raises(InputError, match=r"^--prot: unknown setting 'prot'; did you mean port"):
        load_config(None, {"prot": 1}, NOWHERE)


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        f'store = "postgresql://me:{SECRET}@host/db"\n[[upstreams]]\nurl = "https://u:{SECRET}@host"\n'
        f'key = "{SECRET}"\nheaders = {{ "x-key" = "{SECRET}" }}\n' + KEY,
    )
    config = load_config(file, {"upstream": f"https://{SECRET}@host"}, {})
    for text in (repr(config), str(config), repr(config.upstreams), repr(config.keys)):
        assert SECRET not in text
        assert HASH not in text


# --- who can reach it --------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_this_machine_needs_no_keys(host: str) -> None:
    assert not load_config(None, {"host": host}, NOWHERE).closed


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.5", "gateway.example", "127.0.0.1.example"])
def test_beyond_this_machine_keys_are_needed(host: str) -> None:
    assert load_config(None, {"host": host}, NOWHERE).closed
    assert not load_config(None, {"host": host, "open": True}, NOWHERE).closed
    assert load_config(None, {"host": host, "open": True, "keys": [{"name": "a", "hash": HASH}]}, NOWHERE).closed


@pytest.mark.parametrize(("word", "truth"), [("t", True), ("Y", True), ("on", True), ("f", False), ("n", False)])
def test_yes_and_no_have_many_words(word: str, truth: bool) -> None:
    assert load_config(None, {}, NOWHERE | {"EVERLONG_GATEWAY_APP": word}).app is truth


@pytest.mark.parametrize(
    ("given", "size"), [("8k", 8_000), ("1_000", 1_000), ("1.5 MiB", 3 * 2**19), (1e3, 1_000), (10**20 - 1, 10**20 - 1)]
)
def test_sizes_come_with_and_without_units(given: object, size: int) -> None:
    assert load_config(None, {"memory": given}, NOWHERE).memory == size


@pytest.mark.parametrize("given", [0.5, -1, float("inf"), "8 boats", "127.0.0.1", True])
def test_a_size_that_is_none_is_refused(given: object) -> None:
    with pytest.raises(InputError, match="memory must be a number of bytes"):
        load_config(None, {"memory": given}, NOWHERE)


def test_names_in_a_file_may_be_in_capitals(tmp_path: Path) -> None:
    assert load_config(written(tmp_path, "PORT = 5"), {}, {}).port == 5


@pytest.mark.parametrize("way", ["file", "variable"])
def test_deployments_are_models_windows_or_both(way: str, tmp_path: Path) -> None:
    file = tmp_path / "everlong.toml"
    file.write_text('[deployments]\nchat = "gpt-4o"\nSmall = 16000\n"my.own" = { model = "o3", window = 100000 }\n')
    variable = json.dumps({"chat": "gpt-4o", "Small": 16_000, "my.own": {"model": "o3", "window": 100_000}})
    config = (
        load_config(str(file), {}, {})
        if way == "file"
        else load_config(None, {}, {"EVERLONG_GATEWAY_DEPLOYMENTS": variable, "XDG_CONFIG_HOME": str(tmp_path)})
    )
    told = {name: config.deployment(name) for name in ("CHAT", "small", "My.Own", "other")}
    assert {name: (each.model, each.window) for name, each in told.items()} == {
        "CHAT": ("gpt-4o", None),
        "small": ("small", 16_000),
        "My.Own": ("o3", 100_000),
        "other": ("other", None),
    }


def test_deployments_of_a_variable_that_are_no_table_are_told() -> None:
    with pytest.raises(InputError, match="deployments must be a table, written as JSON"):
        load_config(None, {}, {"EVERLONG_GATEWAY_DEPLOYMENTS": "chat=gpt-4o"})
