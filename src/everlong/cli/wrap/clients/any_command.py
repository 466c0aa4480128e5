"""Any other command: the variables that SDKs read for the address of their server."""

from everlong.cli.wrap.client import BASES, PLACEHOLDER, Client, Launch, Situation

__all__ = ["ANY_COMMAND"]

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


def _prepare(given: Situation) -> Launch:
    launch = Launch(arguments=given.arguments)
    launch.variables = {base.variable: base.address(given.gateway) for base in BASES}
    if given.upstream:  # a server of the user's own may need no key, but SDKs do
        launch.variables |= {name: PLACEHOLDER for name in KEYS[:3] if not given.has(name)}
    return launch


ANY_COMMAND = Client(
    name="--",
    title="any other command",
    program="",
    install="",
    prepare=_prepare,
    keys=KEYS,
)
