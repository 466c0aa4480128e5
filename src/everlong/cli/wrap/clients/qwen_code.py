"""Qwen Code: base URLs as variables, and settings for this run only that override the user's.

It knows the windows of many models by their names, assumes 200,000 for others, and compresses the chat at 85 % of that.
A larger window in the settings prevents that; `/compress` still works. Models that the user has listed with their own
address (`modelProviders`) get the gateway's address, and the gateway gets theirs.
"""

import json
from pathlib import Path
from typing import Any

from everlong.cli.wrap.client import (
    BASES,
    NO_LIMIT,
    NO_LOGIN,
    PLACEHOLDER,
    Base,
    Client,
    Launch,
    Login,
    Server,
    Situation,
)

__all__ = ["QWEN_CODE"]

OPENAI, ANTHROPIC = (
    next(base for base in BASES if base.variable == f"{name}_BASE_URL") for name in ("OPENAI", "ANTHROPIC")
)
KEYS = ("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "ANTHROPIC_API_KEY")
SETTINGS = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
SYSTEM = Path("/etc/qwen-code/settings.json")
FILE = "qwen-settings.json"
OAUTH = "qwen-oauth"
#: Qwen Code's name for an API, and the address that it needs.
APIS = (("openai", OPENAI), ("anthropic", ANTHROPIC))


def _user_settings(given: Situation) -> dict[str, Any]:
    home = Path(given.environment.get("QWEN_HOME") or given.home / ".qwen")
    return given.read(home / "settings.json")


def _listed(given: Situation) -> list[tuple[str, Base, list[dict[str, Any]]]]:
    """Return the models that the user has listed, by API."""
    providers = _user_settings(given).get("modelProviders", {})
    found = []
    for api, base in APIS:
        rows = providers.get(api) if isinstance(providers, dict) else None
        if isinstance(rows, list):
            found.append((api, base, [row for row in rows if isinstance(row, dict)]))
    return found


def _own_servers(given: Situation) -> tuple[Server, ...]:
    rows = [(base, row) for _, base, listed in _listed(given) for row in listed]
    found = [(base.server(str(row["baseUrl"])), str(row.get("id", ""))) for base, row in rows if row.get("baseUrl")]
    return tuple(Server(server.url, server.formats, (model,)) for server, model in found if model)


def _chosen(given: Situation) -> str:
    security = _user_settings(given).get("security", {})
    auth = security.get("auth", {}) if isinstance(security, dict) else {}
    return given.option("--auth-type") or str(auth.get("selectedType", "") if isinstance(auth, dict) else "")


def _login(given: Situation) -> Login:
    if _chosen(given) == OAUTH:
        return Login(
            kind="elsewhere", name="Qwen", remedy="use a key: qwen --auth-type openai, with OPENAI_API_KEY set"
        )
    return NO_LOGIN


def _prepare(given: Situation) -> Launch:
    launch = Launch(arguments=given.arguments)
    login = _login(given)
    if login.kind == "elsewhere":
        launch.refused = f"Qwen Code is signed in with {login.name}, which bypasses the gateway: {login.remedy}"
    settings: dict[str, Any] = given.read(Path(given.environment.get(SETTINGS) or SYSTEM))
    model = settings.get("model", {})
    settings["model"] = {
        **(model if isinstance(model, dict) else {}),
        "generationConfig": {"contextWindowSize": NO_LIMIT},
    }
    listed = {api: [_rerouted(row, base, given) for row in rows] for api, base, rows in _listed(given)}
    if listed:
        settings["modelProviders"] = listed
    if not _chosen(given):
        settings["security"] = {"auth": {"selectedType": "openai"}}
    launch.files[FILE] = json.dumps(settings, indent=2) + "\n"
    launch.variables = {base.variable: base.address(given.gateway) for _, base in APIS}
    launch.variables[SETTINGS] = str(given.folder / FILE)
    if not given.has("OPENAI_API_KEY") and (given.upstream or given.has("DASHSCOPE_API_KEY")):
        launch.variables["OPENAI_API_KEY"] = given.environment.get("DASHSCOPE_API_KEY") or PLACEHOLDER
    return launch


def _rerouted(row: dict[str, Any], base: Base, given: Situation) -> dict[str, Any]:
    """Return a model of the user with the gateway's address."""
    generation = row.get("generationConfig", {})
    changed = {**(generation if isinstance(generation, dict) else {}), "contextWindowSize": NO_LIMIT}
    return {**row, "baseUrl": base.address(given.gateway), "generationConfig": changed}


QWEN_CODE = Client(
    name="qwen",
    aliases=("qwen-code",),
    title="Qwen Code",
    program="qwen",
    install="npm install -g @qwen-code/qwen-code",
    prepare=_prepare,
    bases=(OPENAI, ANTHROPIC),
    keys=KEYS,
    own_servers=_own_servers,
    login=_login,
    model=lambda given: given.option("-m", "--model") or given.environment.get("OPENAI_MODEL", ""),
)
