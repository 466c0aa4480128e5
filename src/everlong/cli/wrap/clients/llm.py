"""llm: the variables of the SDKs that it and its plugins use. It has no window and never shortens anything.

Models with their own address (`extra-openai-models.yaml`) are called there, not through the gateway.
"""

from pathlib import Path

from everlong.cli.wrap.client import BASES, PLACEHOLDER, Client, Launch, Situation

__all__ = ["LLM"]

OWN = tuple(base for base in BASES if base.variable != "GOOGLE_GEMINI_BASE_URL")
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")


def _prepare(given: Situation) -> Launch:
    launch = Launch(arguments=given.arguments)
    launch.variables = {base.variable: base.address(given.gateway) for base in OWN}
    stored = given.read(_keys(given))
    if given.upstream and not given.has(KEYS[0]) and "openai" not in stored:
        launch.variables[KEYS[0]] = PLACEHOLDER
    return launch


def _keys(given: Situation) -> Path:
    folder = given.environment.get("LLM_USER_PATH")
    return Path(folder) / "keys.json" if folder else given.home / ".config" / "io.datasette.llm" / "keys.json"


LLM = Client(
    name="llm",
    title="llm",
    program="llm",
    install="pip install llm",
    prepare=_prepare,
    bases=OWN,
    keys=KEYS,
    compacts=False,
    model=lambda given: given.option("-m", "--model") or given.environment.get("LLM_MODEL", ""),
)
