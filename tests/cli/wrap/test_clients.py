"""What each client is told for a run: its address, its own compaction off, the user's settings and login kept."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from everlong.cli.wrap.client import NO_LIMIT, PLACEHOLDER, Launch, Situation
from everlong.cli.wrap.clients import ANY_COMMAND, CLIENTS, client_named
from everlong.cli.wrap.gateway import Wanted
from everlong.cli.wrap.run import wanted_for

GATEWAY = "http://127.0.0.1:4711"
NAMES = [client.name for client in CLIENTS]
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def situation(home: Path, *arguments: str, upstream: str = "", **variables: str) -> Situation:
    environment = {"HOME": str(home), **variables}
    models = ("house-model", "small") if upstream else None
    return Situation(
        environment=environment,
        arguments=arguments,
        gateway=GATEWAY,
        upstream=upstream,
        models=models,
        folder=home / "run",
    )


def launch(name: str, home: Path, *arguments: str, upstream: str = "", **variables: str) -> Launch:
    client = client_named(name)
    assert client is not None
    return client.prepare(situation(home, *arguments, upstream=upstream, **variables))


def wrote(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def everything(given: Launch) -> str:
    return json.dumps([given.variables, given.arguments, given.files])


# --- what holds for all ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_client_is_told_the_gateways_address_and_keeps_its_own_arguments(name: str, home: Path) -> None:
    given = launch(name, home, "do", "this", OPENAI_API_KEY="sk-own", ANTHROPIC_API_KEY="sk-too")
    assert not given.refused
    assert GATEWAY in everything(given)
    assert given.arguments[-2:] == ("do", "this")


@pytest.mark.parametrize("name", NAMES)
def test_no_key_of_a_variable_is_written_anywhere_where_none_needs_to_be(name: str, home: Path) -> None:
    for upstream in ("", "http://127.0.0.1:9/v1"):
        given = launch(name, home, upstream=upstream, **dict.fromkeys(KEYS, "sk-own"))
        assert "sk-own" not in everything(given)
        assert PLACEHOLDER not in given.variables.values()


@pytest.mark.parametrize("name", NAMES)
def test_files_of_a_run_are_for_this_user_alone_and_in_its_own_folder(name: str, home: Path) -> None:
    given = launch(name, home, upstream="http://127.0.0.1:9/v1")
    (home / "run").mkdir(mode=0o700)
    given.write(home / "run")
    for path in (home / "run").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in home.iterdir()) == ["run", "work"]


@pytest.mark.parametrize("name", ["aider", "claude", "codex", "gemini", "llm", "openclaw", "opencode", "pi", "qwen"])
def test_a_server_of_ones_own_needs_no_key_and_no_other_set_up(name: str, home: Path) -> None:
    given = launch(name, home, upstream="http://127.0.0.1:9/v1")
    assert not given.refused
    assert PLACEHOLDER in everything(given)


def test_other_names_of_clients_are_known() -> None:
    for other, name in {"claude-code": "claude", "gemini-cli": "gemini", "qwen-code": "qwen", "CODEX": "codex"}.items():
        found = client_named(other)
        assert found is not None
        assert found.name == name


# --- their own compaction, the window, and the user's settings ---------------------------------------


def test_claude_code_keeps_compact_by_hand_and_loses_the_automatic_one(home: Path) -> None:
    given = launch("claude", home, "-p", "hi")
    assert given.variables["ANTHROPIC_BASE_URL"] == GATEWAY
    assert given.variables["DISABLE_AUTO_COMPACT"] == "1"
    assert given.variables["CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE"] == str(NO_LIMIT)
    assert "DISABLE_COMPACT" not in given.variables


def test_claude_codes_settings_of_variables_do_not_win_over_the_run(home: Path) -> None:
    wrote(home / ".claude" / "settings.json", '{"env": {"ANTHROPIC_BASE_URL": "https://proxy.example/anthropic"}}')
    given = launch("claude", home, "-p", "hi")
    assert given.arguments[0] == "--settings"
    assert json.loads(given.arguments[1])["env"]["ANTHROPIC_BASE_URL"] == GATEWAY
    client = client_named("claude")
    assert client is not None
    (table, *_) = wanted_for(client, situation(home), Wanted()).upstreams
    assert table == {"url": "https://proxy.example/anthropic/v1", "formats": ["anthropic"], "models": ["*"]}


def codex_config(given: Launch) -> dict[str, Any]:
    values = [value for option, value in zip(given.arguments, given.arguments[1:], strict=False) if option == "-c"]
    return tomllib.loads("\n".join(values))


def test_codex_asks_with_the_key_of_the_variable_or_with_its_login(home: Path) -> None:
    config = codex_config(launch("codex", home, "exec", "hi", OPENAI_API_KEY="sk-own"))
    provider = config["model_providers"][config["model_provider"]]
    assert provider["base_url"] == f"{GATEWAY}/v1"
    assert provider["env_key"] == "OPENAI_API_KEY"
    assert provider["supports_websockets"] is False
    assert config["model_auto_compact_token_limit"] == NO_LIMIT
    wrote(home / ".codex" / "auth.json", '{"OPENAI_API_KEY": null, "tokens": {"access_token": "t"}}')
    config = codex_config(launch("codex", home))
    assert config["model_providers"][config["model_provider"]]["requires_openai_auth"] is True
    client = client_named("codex")
    assert client is not None
    assert client.signed_in(situation(home)).kind == "token"
    assert client.servers(situation(home))[0].url == "https://chatgpt.com/backend-api/codex"


def test_codexs_own_provider_stays_and_its_address_becomes_the_upstream(home: Path) -> None:
    own = 'model_provider = "house"\n[model_providers.house]\nname = "House"\nbase_url = "https://llm.example/v1"\n'
    wrote(home / ".codex" / "config.toml", own)
    config = codex_config(launch("codex", home))
    assert config["model_providers"] == {"house": {"base_url": f"{GATEWAY}/v1"}}
    client = client_named("codex")
    assert client is not None
    wanted = wanted_for(client, situation(home), Wanted())
    assert wanted.upstreams[0]["url"] == "https://llm.example/v1"
    assert not wanted.plain


def test_opencodes_configuration_is_merged_with_what_the_variable_held(home: Path) -> None:
    before = '{"theme": "x", "provider": {"anthropic": {"options": {"timeout": 5}}}}'
    given = launch("opencode", home, OPENCODE_CONFIG_CONTENT=before, ANTHROPIC_API_KEY="k")
    config = json.loads(given.variables["OPENCODE_CONFIG_CONTENT"])
    assert config["theme"] == "x"
    assert config["compaction"] == {"auto": False}
    assert config["provider"]["anthropic"]["options"] == {"timeout": 5, "baseURL": f"{GATEWAY}/v1"}
    assert "openai" not in config["provider"]  # not one that the user has


def test_opencodes_own_providers_are_asked_at_the_gateway_and_the_gateway_asks_them(home: Path) -> None:
    own = {"house": {"options": {"baseURL": "https://llm.example/v1"}, "models": {"big": {}, "small": {}}}}
    text = "// mine\n" + json.dumps({"provider": own, "model": "house/big"})[:-1] + ",}"
    wrote(home / ".config" / "opencode" / "opencode.jsonc", text)
    config = json.loads(launch("opencode", home).variables["OPENCODE_CONFIG_CONTENT"])
    assert config["provider"]["house"] == {"options": {"baseURL": f"{GATEWAY}/v1"}}
    client = client_named("opencode")
    assert client is not None
    table = wanted_for(client, situation(home), Wanted()).upstreams[0]
    assert (table["url"], table["models"]) == ("https://llm.example/v1", ["big", "small"])


def test_gemini_cli_sees_the_users_folder_with_other_settings(home: Path) -> None:
    wrote(home / ".gemini" / "settings.json", '{"ui": {"theme": "x"}, "model": {"name": "m"}} // mine')
    wrote(home / ".gemini" / "GEMINI.md", "Be brief.")
    wrote(home / ".gemini" / "tmp" / "chat.json", "{}")
    given = launch("gemini", home, GEMINI_API_KEY="k")
    assert given.variables == {"GOOGLE_GEMINI_BASE_URL": GATEWAY, "GEMINI_CLI_HOME": str(home / "run")}
    (home / "run").mkdir()
    given.write(home / "run")
    seen = home / "run" / ".gemini"
    settings = json.loads((seen / "settings.json").read_text())
    assert settings["ui"] == {"theme": "x"}
    assert settings["model"]["name"] == "m"
    assert settings["model"]["compressionThreshold"] > 1
    assert settings["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert (seen / "GEMINI.md").read_text() == "Be brief."
    # what the client writes goes where it would have gone, and the user's settings stay as they are
    (seen / "tmp" / "new.json").write_text("1")
    (seen / "projects.json").write_text("2")
    given.collect(home / "run")
    own = home / ".gemini"
    assert [(own / name).read_text() for name in ("tmp/new.json", "projects.json")] == ["1", "2"]
    assert (own / "settings.json").read_text().endswith("// mine")


def test_qwen_codes_listed_models_are_asked_at_the_gateway(home: Path) -> None:
    rows = [{"id": "q", "baseUrl": "https://llm.example/v1", "envKey": "K", "generationConfig": {"timeout": 9}}]
    wrote(home / ".qwen" / "settings.json", json.dumps({"modelProviders": {"openai": rows}}))
    settings = json.loads(launch("qwen", home).files["qwen-settings.json"])
    (row,) = settings["modelProviders"]["openai"]
    assert row == {
        "id": "q",
        "baseUrl": f"{GATEWAY}/v1",
        "envKey": "K",
        "generationConfig": {"timeout": 9, "contextWindowSize": NO_LIMIT},
    }


def test_pis_extension_cancels_only_what_nobody_asked_for(home: Path) -> None:
    given = launch("pi", home, "-p", "hi", OPENAI_API_KEY="k")
    text = given.files["pi-extension.mjs"]
    assert given.arguments[:2] == ("--extension", str(home / "run" / "pi-extension.mjs"))
    assert 'event.reason === "threshold"' in text
    assert f'"baseUrl": "{GATEWAY}/v1"' in text


def test_openclaws_configuration_includes_the_users(home: Path) -> None:
    wrote(home / ".openclaw" / "openclaw.json", "{gateway: {port: 1}}")
    given = launch("openclaw", home, "agent", upstream="http://127.0.0.1:9/v1")
    config = json.loads(given.files["openclaw.json"])
    assert config["$include"] == [str(home / ".openclaw" / "openclaw.json")]
    assert given.variables["OPENCLAW_INCLUDE_ROOTS"] == str(home / ".openclaw")
    assert config["agents"]["defaults"]["model"]["primary"] == "everlong/house-model"
    assert given.variables["OPENCLAW_STATE_DIR"] == str(home / ".openclaw")


def test_aiders_addresses_are_options_because_its_env_files_win_over_variables(home: Path) -> None:
    given = launch("aider", home, "--message", "hi", upstream="http://127.0.0.1:9/v1")
    told = " ".join(given.arguments)
    assert f"--openai-api-base {GATEWAY}/v1" in told
    assert f"--max-chat-history-tokens {NO_LIMIT}" in told
    assert f"--set-env ANTHROPIC_API_BASE={GATEWAY} " in told
    assert "--model openai/house-model" in told
    said = launch("aider", home, "--model", "openai/small", upstream="http://127.0.0.1:9/v1")
    assert "house-model" not in " ".join(said.arguments)


# --- logins that go elsewhere --------------------------------------------------------------------------

ELSEWHERE = {
    "claude": ("", "", {"CLAUDE_CODE_USE_BEDROCK": "1"}, "CLAUDE_CODE_USE_BEDROCK"),
    "gemini": (
        ".gemini/settings.json",
        '{"security": {"auth": {"selectedType": "oauth-personal"}}}',
        {},
        "GEMINI_API_KEY",
    ),
    "qwen": (".qwen/settings.json", '{"security": {"auth": {"selectedType": "qwen-oauth"}}}', {}, "OPENAI_API_KEY"),
    "opencode": (".local/share/opencode/auth.json", '{"openai": {"type": "oauth"}}', {}, "OPENAI_API_KEY"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_login_that_goes_past_the_gateway_is_refused_in_one_line_with_the_remedy(name: str, home: Path) -> None:
    file, text, variables, remedy = ELSEWHERE[name]
    if file:
        wrote(home / file, text)
    given = launch(name, home, **variables)
    assert "bypasses the gateway" in given.refused
    assert remedy in given.refused
    assert "\n" not in given.refused


@pytest.mark.parametrize("name", ["openclaw", "opencode", "pi"])
def test_an_agent_without_a_provider_that_could_be_behind_the_gateway_is_not_started_as_if_it_were(
    name: str, home: Path
) -> None:
    refused = launch(name, home, OPENROUTER_API_KEY="k").refused
    assert "no provider that works through the gateway" in refused
    assert "--upstream" in refused


def test_a_key_in_a_variable_is_used_although_gemini_cli_is_signed_in_with_google(home: Path) -> None:
    wrote(home / ".gemini" / "settings.json", '{"security": {"auth": {"selectedType": "oauth-personal"}}}')
    given = launch("gemini", home, GEMINI_API_KEY="k")
    assert not given.refused
    assert json.loads(given.overlays[0].text)["security"]["auth"]["selectedType"] == "gemini-api-key"


# --- where requests go --------------------------------------------------------------------------------

BASES = {
    "an OpenAI server": ({"OPENAI_BASE_URL": "http://127.0.0.1:1234/v1"}, "http://127.0.0.1:1234/v1", "openai-chat"),
    "its other name": ({"OPENAI_API_BASE": "http://127.0.0.1:1234/v1/"}, "http://127.0.0.1:1234/v1", "openai-chat"),
    "an Anthropic server": ({"ANTHROPIC_BASE_URL": "https://x.example/a"}, "https://x.example/a/v1", "anthropic"),
    "a Gemini server": ({"GOOGLE_GEMINI_BASE_URL": "https://g.example"}, "https://g.example/v1beta", "gemini"),
    "an Ollama": ({"OLLAMA_HOST": "127.0.0.1:11435"}, "http://127.0.0.1:11435/api", "ollama"),
    "an Ollama without a port": ({"OLLAMA_HOST": "gpu-box"}, "http://gpu-box:11434/api", "ollama"),
    "one with its version": ({"ANTHROPIC_BASE_URL": "https://x.example/v1"}, "https://x.example/v1", "anthropic"),
}


@pytest.mark.parametrize("case", BASES)
def test_a_base_url_that_the_user_had_set_is_the_upstream(case: str, home: Path) -> None:
    variables, url, fmt = BASES[case]
    wanted = wanted_for(ANY_COMMAND, situation(home, **variables), Wanted())
    assert wanted.upstreams[0]["url"] == url
    assert fmt in wanted.upstreams[0]["formats"]
    assert not wanted.plain
    assert len(wanted.upstreams) > 1  # other formats go to their makers


def test_without_one_each_provider_is_asked_at_its_address_without_a_key_of_the_gateways(home: Path) -> None:
    wanted = wanted_for(ANY_COMMAND, situation(home, OPENAI_API_KEY="sk-own"), Wanted())
    assert wanted.plain
    urls = [table["url"] for table in wanted.upstreams]
    assert {"https://api.openai.com/v1", "https://api.anthropic.com/v1"} <= set(urls)
    assert all(url.startswith(("https://", "http://127.0.0.1:11434/")) for url in urls)
    assert "sk-own" not in json.dumps([wanted.options(), wanted.variables()])
    assert wanted.check({"HOME": str(home), "OPENAI_API_KEY": "sk-own"}) == wanted


def test_an_upstream_of_the_users_configuration_is_kept(home: Path) -> None:
    wanted = wanted_for(ANY_COMMAND, situation(home), Wanted())
    own = {"HOME": str(home), "EVERLONG_GATEWAY_UPSTREAM": "http://127.0.0.1:9/v1"}
    assert wanted.check(own).upstreams == ()
    explicit = wanted_for(ANY_COMMAND, situation(home), Wanted(upstream="http://127.0.0.1:8/v1"))
    assert explicit.check(own).upstream == "http://127.0.0.1:8/v1"
