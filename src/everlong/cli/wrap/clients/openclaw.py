"""OpenClaw: a configuration for this run only that includes the user's and overrides parts of it.

OpenClaw takes windows from its catalogue or from the configuration and compacts before a request that would not fit; a
model of `--upstream` is described with a window that is never full. Its sessions and logins stay where they are.
"""

import json
from pathlib import Path
from typing import Any

from everlong.cli.wrap.client import Base, Client, Launch, Server, Situation
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
    versioned_address,
)

__all__ = ["OPENCLAW"]

CONFIG, ROOTS = "OPENCLAW_CONFIG_PATH", "OPENCLAW_INCLUDE_ROOTS"
FILE = "openclaw.json"


def _users_file(given: Situation) -> Path:
    named = given.environment.get(CONFIG)
    if named:
        return Path(named)
    state = given.environment.get("OPENCLAW_STATE_DIR")
    return (Path(state) if state else given.home / ".openclaw") / "openclaw.json"


def _addressed(given: Situation) -> dict[str, tuple[str, Base, tuple[str, ...]]]:
    """Return the providers with an address in the user's configuration."""
    known = {provider.name: provider.base for provider in PROVIDERS}
    models = given.read(_users_file(given)).get("models") or {}
    found = {}
    for name, row in (models.get("providers") or {}).items():
        address = row.get("baseUrl") if isinstance(row, dict) else None
        if isinstance(address, str) and address:
            names = tuple(str(model.get("id")) for model in row.get("models") or () if isinstance(model, dict))
            found[name] = (address, known.get(name, OPENAI), names)
    return found


def _signed_in(given: Situation) -> set[str]:
    """Return the providers with a key or a login in the user's configuration."""
    auth = given.read(_users_file(given)).get("auth") or {}
    profiles = (auth.get("profiles") or {}).values() if isinstance(auth, dict) else ()
    return {str(profile.get("provider", "")) for profile in profiles if isinstance(profile, dict)}


def _own_servers(given: Situation) -> tuple[Server, ...]:
    return configured_servers(_addressed(given))


def _prepare(given: Situation) -> Launch:
    launch = Launch(arguments=given.arguments)
    mine = _users_file(given)
    providers: dict[str, Any] = {
        provider.name: {"baseUrl": versioned_address(provider.base, given.gateway), "models": []}
        for provider in providers_in_use(given, _signed_in(given))
    }
    for name, (_, base, _) in _addressed(given).items():
        providers[name] = {"baseUrl": versioned_address(base, given.gateway)}
    config: dict[str, Any] = {"models": {"mode": "merge", "providers": providers}}
    if mine.is_file():
        config = {"$include": [str(mine)], **config}
        roots = [root for root in given.environment.get(ROOTS, "").split(":") if root]
        launch.variables[ROOTS] = ":".join([*roots, str(mine.parent)])
    if given.upstream and given.models:
        models = [
            {"id": name, "name": name, "input": ["text"], "contextWindow": row["window"], "maxTokens": row["output"]}
            for name, row in models_shown(given).items()
        ]
        own = {
            "baseUrl": f"{given.gateway}/v1",
            "apiKey": key_or_placeholder(given, "${{{name}}}"),
            "api": "openai-completions",
        }
        providers[OWN_NAME] = own | {"models": models}
        config["agents"] = {"defaults": {"model": {"primary": f"{OWN_NAME}/{given.models[0]}"}}}
    if not providers:
        launch.refused = none_of("OpenClaw", given)
    launch.files[FILE] = json.dumps(config, indent=2) + "\n"
    launch.variables[CONFIG] = str(given.folder / FILE)
    launch.variables.setdefault("OPENCLAW_STATE_DIR", given.environment.get("OPENCLAW_STATE_DIR") or str(mine.parent))
    return launch


OPENCLAW = Client(
    name="openclaw",
    title="OpenClaw",
    program="openclaw",
    install="npm install -g openclaw",
    prepare=_prepare,
    bases=(),
    keys=KEYS,
    own_servers=_own_servers,
    listed=True,
    speaks=SPOKEN,
)
