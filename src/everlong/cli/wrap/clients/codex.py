"""Codex: a separate provider for this run, set by options; the user's login, key and sessions stay.

Codex knows the windows of OpenAI's models whatever the address is; an unknown model gets 272,000. It compacts at nine
tenths of the window, measured with the usage that it receives. A limit for what follows the fixed part can be set above
that; at 95 % of the window it compacts in any case, but behind the gateway it never sees such a size.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

from everlong.cli.wrap.client import BASES, NO_LIMIT, NO_LOGIN, PLACEHOLDER, Client, Launch, Login, Server, Situation

__all__ = ["CODEX"]

BASE = next(base for base in BASES if base.variable == "OPENAI_BASE_URL")
KEY = "OPENAI_API_KEY"
NAME = "everlong"
ASSUMED = 272_000  # tokens of the window that Codex assumes for an unknown model
#: The server for logins with ChatGPT; API keys are not valid there.
CHATGPT = "https://chatgpt.com/backend-api/codex"


def _home(given: Situation) -> Path:
    named = given.environment.get("CODEX_HOME")
    return Path(named) if named else given.home / ".codex"


def _config(given: Situation) -> dict[str, Any]:
    try:
        return tomllib.loads((_home(given) / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _provider(given: Situation) -> dict[str, Any]:
    """Return the provider that the user has configured; {} for OpenAI's own."""
    config = _config(given)
    name = config.get("model_provider", "")
    providers = config.get("model_providers", {})
    found = providers.get(name) if isinstance(providers, dict) else None
    return {"id": name, **found} if isinstance(found, dict) else {}


def _own_servers(given: Situation) -> tuple[Server, ...]:
    own = _provider(given).get("base_url") or _config(given).get("openai_base_url")
    if isinstance(own, str) and own:
        return (BASE.server(own),)
    return (Server(CHATGPT, BASE.formats),) if _login(given).kind == "token" else ()


def _login(given: Situation) -> Login:
    if _provider(given):
        return NO_LOGIN
    stored = given.read(_home(given) / "auth.json")
    if stored.get("tokens") and not stored.get(KEY):
        return Login(kind="token", name="ChatGPT")
    return Login(kind="key", name="auth.json") if stored.get(KEY) else NO_LOGIN


def _prepare(given: Situation) -> Launch:
    launch = Launch()
    own, login = _provider(given), _login(given)
    if own:
        values: dict[str, object] = {f"model_providers.{own['id']}.base_url": BASE.address(given.gateway)}
    else:
        provider: dict[str, object] = {"name": "Everlong", "base_url": BASE.address(given.gateway)}
        provider |= {"wire_api": "responses", "supports_websockets": False}
        if login.kind != "none":
            provider["requires_openai_auth"] = True
        else:
            provider["env_key"] = KEY
            launch.variables = {} if given.has(KEY) or not given.upstream else {KEY: PLACEHOLDER}
        values = {"model_provider": NAME} | {
            f"model_providers.{NAME}.{name}": value for name, value in provider.items()
        }
    values |= {"model_auto_compact_token_limit": NO_LIMIT, "model_auto_compact_token_limit_scope": "body_after_prefix"}
    if given.window is not None and given.window > ASSUMED:
        values["model_context_window"] = given.window
    options = [part for name, value in values.items() for part in ("-c", f"{name}={json.dumps(value)}")]
    launch.arguments = (*options, *given.arguments)
    return launch


CODEX = Client(
    name="codex",
    title="Codex",
    program="codex",
    install="npm install -g @openai/codex",
    prepare=_prepare,
    bases=(BASE,),
    keys=(KEY,),
    own_servers=_own_servers,
    login=_login,
    model=lambda given: given.option("-m", "--model") or str(_config(given).get("model", "")),
)
