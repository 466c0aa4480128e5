"""Gemini CLI: the base URL as a variable, and settings above the user's for this run alone.

It takes every window for a million tokens, or 256 000 for Gemma, and compresses the chat at half of that; a share above
one keeps it from coming first, and `/compress` still works. A login with Google goes to another service at an address
of its own, and in another form: only keys can be behind the gateway.
"""

import json
from pathlib import Path
from typing import Any

from everlong.cli.wrap.client import BASES, NO_LOGIN, PLACEHOLDER, Client, Launch, Login, Situation

__all__ = ["GEMINI_CLI"]

BASE = next(base for base in BASES if base.variable == "GOOGLE_GEMINI_BASE_URL")
KEY = "GEMINI_API_KEY"
SETTINGS = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
SYSTEM = Path("/etc/gemini-cli/settings.json")
FILE = "gemini-settings.json"
NEVER = 1_000  # times the window
WITH_KEY, WITH_VERTEX = "gemini-api-key", "vertex-ai"
REMEDY = f"set {KEY} (a key of Google AI Studio)"


def _home(given: Situation) -> Path:
    return Path(given.environment.get("GEMINI_CLI_HOME") or given.home) / ".gemini"


def _chosen(given: Situation) -> str:
    """Return how the user chose to sign in: the name in the settings; "" if nowhere said."""
    for place in (Path(".gemini") / "settings.json", _home(given) / "settings.json"):
        settings = given.read(place)
        security = settings.get("security", {})
        auth = security.get("auth", {}) if isinstance(security, dict) else {}
        found = auth.get("selectedType") if isinstance(auth, dict) else None
        if found or settings.get("selectedAuthType"):
            return str(found or settings["selectedAuthType"])
    return ""


def _login(given: Situation) -> Login:
    if given.has(KEY):
        return NO_LOGIN
    if _chosen(given) == WITH_VERTEX or given.environment.get("GOOGLE_GENAI_USE_VERTEXAI") == "true":
        return Login(kind="elsewhere", name="Vertex AI", remedy=REMEDY)
    if _chosen(given) not in ("", WITH_KEY) or given.environment.get("GOOGLE_GENAI_USE_GCA") == "true":
        return Login(kind="elsewhere", name="Google", remedy=REMEDY)
    # A key that Gemini CLI itself has stored is in the system's keychain.
    return Login(kind="key", name="keychain") if _chosen(given) == WITH_KEY else NO_LOGIN


def _prepare(given: Situation) -> Launch:
    launch = Launch(arguments=given.arguments)
    login = _login(given)
    if login.kind == "elsewhere" and not given.upstream:
        launch.refused = (
            f"Gemini CLI is signed in with {login.name}, which goes past the gateway in another form: {login.remedy}"
        )
    settings: dict[str, Any] = given.read(Path(given.environment.get(SETTINGS) or SYSTEM))
    model = settings.get("model", {})
    settings["model"] = {**(model if isinstance(model, dict) else {}), "compressionThreshold": NEVER}
    security = settings.get("security", {})
    settings["security"] = {**(security if isinstance(security, dict) else {}), "auth": {"selectedType": WITH_KEY}}
    launch.files[FILE] = json.dumps(settings, indent=2) + "\n"
    launch.variables = {BASE.variable: BASE.address(given.gateway), SETTINGS: str(given.folder / FILE)}
    if given.upstream and not given.has(KEY):
        launch.variables[KEY] = PLACEHOLDER
    return launch


GEMINI_CLI = Client(
    name="gemini",
    aliases=("gemini-cli",),
    title="Gemini CLI",
    program="gemini",
    install="npm install -g @google/gemini-cli",
    prepare=_prepare,
    bases=(BASE,),
    keys=(KEY,),
    login=_login,
    model=lambda given: given.option("-m", "--model") or given.environment.get("GEMINI_MODEL", ""),
)
