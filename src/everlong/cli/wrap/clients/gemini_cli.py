"""Gemini CLI: the base URL as a variable, and the user's folder with other settings for this run only.

It has no option and no variable for settings, and reads system settings only from files that root owns. So the run sees
a folder in which everything is the user's own, by links, except the settings file.

It assumes a window of a million tokens, or 256,000 for Gemma, and compresses the chat at half of that; a share above
one prevents that, and `/compress` still works. A login with Google goes to another service at its own address and in
another format, so only keys work behind the gateway.
"""

import json
from pathlib import Path

from everlong.cli.wrap.client import BASES, NO_LOGIN, PLACEHOLDER, Client, Launch, Login, Overlay, Situation, merged

__all__ = ["GEMINI_CLI"]

BASE = next(base for base in BASES if base.variable == "GOOGLE_GEMINI_BASE_URL")
KEY = "GEMINI_API_KEY"
HOME, FOLDER, FILE = "GEMINI_CLI_HOME", ".gemini", "settings.json"
NEVER = 1_000  # times the window
WITH_KEY, WITH_VERTEX = "gemini-api-key", "vertex-ai"
REMEDY = f"set {KEY} (a Google AI Studio key)"


def _home(given: Situation) -> Path:
    return Path(given.environment.get(HOME) or given.home) / FOLDER


def _chosen(given: Situation) -> str:
    """Return how the user signs in: the name in the settings; "" if it is not set."""
    for place in (Path(FOLDER) / FILE, _home(given) / FILE):
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
    # A key that Gemini CLI itself stored is in the system's keychain.
    return Login(kind="key", name="keychain") if _chosen(given) == WITH_KEY else NO_LOGIN


def _prepare(given: Situation) -> Launch:
    launch = Launch(arguments=given.arguments)
    login = _login(given)
    if login.kind == "elsewhere" and not given.upstream:
        launch.refused = f"Gemini CLI is signed in with {login.name}, which bypasses the gateway: {login.remedy}"
    own = {"model": {"compressionThreshold": NEVER}, "security": {"auth": {"selectedType": WITH_KEY}}}
    text = json.dumps(merged(given.read(_home(given) / FILE), own), indent=2) + "\n"
    launch.overlays = [
        Overlay(source=_home(given), place=FOLDER, file=FILE, text=text, set_here=json.dumps(own)),
    ]
    launch.variables = {BASE.variable: BASE.address(given.gateway), HOME: str(given.folder)}
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
