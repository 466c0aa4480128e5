"""opencode: a configuration for this run only, in a variable; it switches opencode's own compaction off.

opencode takes windows from its catalogue by provider and model, whatever the address is, and compacts at the window
minus 20,000 tokens or minus the answer. Its `/compact` still works. A login with ChatGPT rewrites the address of each
request, so those requests do not go through the gateway.
"""

import json
from pathlib import Path
from typing import Any

from everlong.cli.wrap.client import NO_LOGIN, Base, Client, Launch, Login, Server, Situation, merged
from everlong.cli.wrap.providers import (
    KEYS,
    OPENAI,
    OWN_NAME,
    PROVIDERS,
    SPOKEN,
    configured_servers,
    key_or_placeholder,
    models_shown,
    none_of,
    providers_in_use,
)

__all__ = ["OPENCODE"]

CONFIG = "OPENCODE_CONFIG_CONTENT"
FILES = ("opencode.jsonc", "opencode.json")


def _config(given: Situation) -> dict[str, Any]:
    """Return the providers and the model of the user's configuration: the folder's, else the user's."""
    folder = Path(given.environment.get("XDG_CONFIG_HOME") or given.home / ".config") / "opencode"
    named = given.environment.get("OPENCODE_CONFIG")
    places = [Path(named)] if named else []
    places += [*map(Path, FILES), *(folder / name for name in (*FILES, "config.json"))]
    merged: dict[str, Any] = {}
    for place in reversed(places):
        found = given.read(place)
        providers = {**merged.get("provider", {}), **(found.get("provider") or {})}
        merged |= found | {"provider": providers}
    return merged


def _addressed(given: Situation) -> dict[str, tuple[str, Base, tuple[str, ...]]]:
    """Return the providers with an address in the user's configuration."""
    known = {provider.name: provider.base for provider in PROVIDERS}
    found = {}
    for name, row in _config(given).get("provider", {}).items():
        address = (row.get("options") or {}).get("baseURL") if isinstance(row, dict) else None
        if isinstance(address, str) and address:
            found[name] = (address, known.get(name, OPENAI), tuple(row.get("models") or ()))
    return found


def _own_servers(given: Situation) -> tuple[Server, ...]:
    return configured_servers(_addressed(given))


def _stored(given: Situation) -> dict[str, Any]:
    folder = Path(given.environment.get("XDG_DATA_HOME") or given.home / ".local" / "share")
    return given.read(folder / "opencode" / "auth.json")


def _login(given: Situation) -> Login:
    stored = {name: row.get("type") for name, row in _stored(given).items() if isinstance(row, dict)}
    if stored.get("openai") == "oauth" and len(stored) == 1 and not list(providers_in_use(given, ())):
        return Login(
            kind="elsewhere", name="ChatGPT", remedy="set OPENAI_API_KEY, or run opencode auth login and enter a key"
        )
    return Login(kind="key", name=next(iter(stored))) if stored else NO_LOGIN


def _address(base: Base, gateway: str) -> str:
    """Return the address for the AI SDK, which expects the version in it, whatever the API is."""
    return gateway + (base.version or "/v1")


def _prepare(given: Situation) -> Launch:
    launch = Launch(arguments=given.arguments)
    login = _login(given)
    if login.kind == "elsewhere" and not given.upstream:
        launch.refused = f"opencode is signed in with {login.name}, which bypasses the gateway: {login.remedy}"
    providers: dict[str, Any] = {
        provider.name: {"options": {"baseURL": _address(provider.base, given.gateway)}}
        for provider in providers_in_use(given, _stored(given))
    }
    for name, (_, base, _) in _addressed(given).items():
        providers[name] = {"options": {"baseURL": _address(base, given.gateway)}}
    config: dict[str, Any] = {"compaction": {"auto": False}, "provider": providers}
    if given.upstream and given.models:
        rows = models_shown(given).items()
        models = {
            name: {"name": name, "limit": {"context": row["window"], "output": row["output"]}} for name, row in rows
        }
        options = {"baseURL": f"{given.gateway}/v1", "apiKey": key_or_placeholder(given, "{{env:{name}}}")}
        own = {"npm": "@ai-sdk/openai-compatible", "name": "Everlong", "options": options, "models": models}
        providers[OWN_NAME] = own
        if not _config(given).get("model"):
            config |= {"model": f"{OWN_NAME}/{given.models[0]}", "small_model": f"{OWN_NAME}/{given.models[0]}"}
    if not providers:
        launch.refused = launch.refused or none_of("opencode", given)
    before = given.environment.get(CONFIG, "")
    launch.variables[CONFIG] = json.dumps(merged(_parsed(before), config))
    return launch


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


OPENCODE = Client(
    name="opencode",
    title="opencode",
    program="opencode",
    install="npm install -g opencode-ai",
    prepare=_prepare,
    bases=(),
    keys=KEYS,
    own_servers=_own_servers,
    login=_login,
    model=lambda given: (given.option("-m", "--model") or str(_config(given).get("model", ""))).partition("/")[2],
    listed=True,
    speaks=SPOKEN,
)
