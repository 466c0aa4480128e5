"""Claude Code: the base URL as a variable; its automatic compaction is off for this run, and `/compact` still works.

At any address that is not Anthropic's, it takes the window of a model from its own table: 200,000 for Sonnet 4.5 and
Opus 4.6, a million for newer ones, for names that end with [1m] and for unknown names. It compacts by itself at that
window minus its answer and 13,000 tokens, and refuses to continue 3,000 tokens before the window. Both are measured
with the usage that it receives, which is that of the forwarded request.
"""

import json
from pathlib import Path

from everlong.cli.wrap.client import BASES, NO_LIMIT, NO_LOGIN, PLACEHOLDER, Client, Launch, Login, Server, Situation

__all__ = ["CLAUDE_CODE"]

BASE = next(base for base in BASES if base.variable == "ANTHROPIC_BASE_URL")
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
LOCAL = Path(".claude")  # settings of the project in which it is started
#: Variables with which Claude Code uses another provider than Anthropic; we cannot change those addresses.
OTHER_CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")


def _folder(given: Situation) -> Path:
    named = given.environment.get("CLAUDE_CONFIG_DIR")
    return Path(named) if named else given.home / ".claude"


def _settings(given: Situation) -> dict[str, object]:
    """Return the variables in the user's settings; they override those of the process."""
    merged: dict[str, object] = {}
    for place in (_folder(given) / "settings.json", LOCAL / "settings.json", LOCAL / "settings.local.json"):
        found = given.read(place).get("env")
        merged |= found if isinstance(found, dict) else {}
    return merged


def _own_servers(given: Situation) -> tuple[Server, ...]:
    found = _settings(given).get(BASE.variable)
    return (BASE.server(found),) if isinstance(found, str) and found.strip() else ()


def _login(given: Situation) -> Login:
    settings = _settings(given)
    cloud = given.has(*OTHER_CLOUDS) or next((name for name in OTHER_CLOUDS if settings.get(name)), "")
    if cloud:
        return Login(kind="elsewhere", name=cloud, remedy=f"unset {cloud}")
    if given.has("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        return NO_LOGIN
    stored = given.read(_folder(given) / ".credentials.json").get("claudeAiOauth")
    return Login(kind="token", name="claude.ai") if stored else NO_LOGIN


def _prepare(given: Situation) -> Launch:
    variables = {
        BASE.variable: BASE.address(given.gateway),
        "DISABLE_AUTO_COMPACT": "1",
        "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": str(NO_LIMIT),
    }
    if given.window is not None:  # respected for models that Claude Code does not know
        variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(given.window)
    launch = Launch(variables=variables, arguments=given.arguments)
    login = _login(given)
    if login.kind == "elsewhere":
        launch.refused = f"Claude Code uses another cloud ({login.name}), which bypasses the gateway: {login.remedy}"
    elif login.kind == "none" and given.upstream and not given.has(*KEYS):
        launch.variables["ANTHROPIC_AUTH_TOKEN"] = PLACEHOLDER
    if _own_servers(given):  # variables in the user's settings win, unless settings are given as an option
        launch.arguments = ("--settings", json.dumps({"env": variables}), *given.arguments)
    return launch


CLAUDE_CODE = Client(
    name="claude",
    aliases=("claude-code",),
    title="Claude Code",
    program="claude",
    install="npm install -g @anthropic-ai/claude-code",
    prepare=_prepare,
    bases=(BASE,),
    keys=KEYS,
    own_servers=_own_servers,
    login=_login,
    model=lambda given: given.option("--model") or given.environment.get("ANTHROPIC_MODEL", ""),
)
