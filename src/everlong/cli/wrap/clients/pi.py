"""pi: an extension for this run only, which gives providers the gateway's address and cancels pi's own compaction.

pi takes windows from its catalogue by provider and model, whatever the address is, and compacts at the window minus 16
384 tokens; `/compact` still works, and so does its recovery after an overflow. Logins and keys stay in pi. A login with
ChatGPT is a separate provider in pi (openai-codex) and does not go through the gateway.
"""

import json
from pathlib import Path
from typing import Any

from everlong.cli.wrap.client import NO_LOGIN, Base, Client, Launch, Login, Server, Situation
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

__all__ = ["PI"]

FILE = "pi-extension.mjs"
EXTENSION = """\
const providers = {providers};
export default function (pi) {{
  for (const [name, config] of Object.entries(providers)) pi.registerProvider(name, config);
  pi.on("session_before_compact", (event) => (event.reason === "threshold" ? {{ cancel: true }} : undefined));
}}
"""


def _folder(given: Situation) -> Path:
    return Path(given.environment.get("PI_CODING_AGENT_DIR") or given.home / ".pi" / "agent")


def _addressed(given: Situation) -> dict[str, tuple[str, Base, tuple[str, ...]]]:
    """Return the providers with an address in the user's models.json."""
    known = {provider.name: provider.base for provider in PROVIDERS}
    found = {}
    for name, row in (given.read(_folder(given) / "models.json").get("providers") or {}).items():
        address = row.get("baseUrl") if isinstance(row, dict) else None
        if isinstance(address, str) and address:
            models = tuple(str(model.get("id")) for model in row.get("models") or () if isinstance(model, dict))
            found[name] = (address, known.get(name, OPENAI), models)
    return found


def _login(given: Situation) -> Login:
    stored = given.read(_folder(given) / "auth.json")
    known = [provider.name for provider in PROVIDERS if provider.name in stored]
    if stored and not known and not list(providers_in_use(given, ())):
        name = next(iter(stored))
        return Login(
            kind="elsewhere", name=name, remedy="use a key for one of " + ", ".join(one.name for one in PROVIDERS)
        )
    return Login(kind="key", name=known[0]) if known else NO_LOGIN


def _own_servers(given: Situation) -> tuple[Server, ...]:
    return configured_servers(_addressed(given))


def _prepare(given: Situation) -> Launch:
    launch = Launch()
    stored = given.read(_folder(given) / "auth.json")
    providers: dict[str, Any] = {
        provider.name: {"baseUrl": versioned_address(provider.base, given.gateway)}
        for provider in providers_in_use(given, stored)
    }
    for name, (_, base, _) in _addressed(given).items():
        providers[name] = {"baseUrl": versioned_address(base, given.gateway)}
    chosen: tuple[str, ...] = ()
    if given.upstream and given.models:
        free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
        models = [
            {"id": name, "name": name, "reasoning": False, "input": ["text"], "cost": free}
            | {"contextWindow": row["window"], "maxTokens": row["output"]}
            for name, row in models_shown(given).items()
        ]
        own = {
            "baseUrl": f"{given.gateway}/v1",
            "apiKey": key_or_placeholder(given, "${name}"),
            "api": "openai-completions",
        }
        providers[OWN_NAME] = own | {"models": models}
        if not given.option("--model", "--provider", "--models"):
            chosen = ("--provider", OWN_NAME, "--model", given.models[0])
    if not providers:
        launch.refused = none_of("pi", given)
    launch.files[FILE] = EXTENSION.format(providers=json.dumps(providers, indent=2))
    launch.arguments = ("--extension", str(given.folder / FILE), *chosen, *given.arguments)
    return launch


PI = Client(
    name="pi",
    title="pi",
    program="pi",
    install="npm install -g @earendil-works/pi-coding-agent",
    prepare=_prepare,
    bases=(),
    keys=KEYS,
    own_servers=_own_servers,
    login=_login,
    model=lambda given: given.option("--model").rpartition("/")[2],
    listed=True,
    speaks=SPOKEN,
)
