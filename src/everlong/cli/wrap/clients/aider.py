"""aider: base URLs as options, because its .env files override variables; it does not shorten the chat by itself.

It takes windows from litellm's table by the model's name, whatever the address is. It has an old chat summarised when
that is longer than a sixteenth of the window; a limit that is never reached leaves this to the gateway. Models of
providers other than OpenAI, Anthropic and DeepSeek are called at their own addresses, not through the gateway.
"""

from everlong.cli.wrap.client import BASES, NO_LIMIT, PLACEHOLDER, Client, Launch, Situation

__all__ = ["AIDER"]

BASE_NAMES = ("OPENAI_API_BASE", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")
OWN = tuple(base for name in BASE_NAMES for base in BASES if base.variable == name)
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY")
#: Options that select the model.
MODEL = ("--model", "--opus", "--sonnet", "--haiku", "--4", "--4o", "--mini", "--35turbo", "--deepseek", "--o1-mini")


def _prepare(given: Situation) -> Launch:
    launch = Launch()
    options = ["--openai-api-base", f"{given.gateway}/v1", "--max-chat-history-tokens", str(NO_LIMIT)]
    for name, address in (("ANTHROPIC_API_BASE", given.gateway), ("DEEPSEEK_API_BASE", f"{given.gateway}/v1")):
        options += ["--set-env", f"{name}={address}"]
    if given.upstream:
        said = any(argument.partition("=")[0] in MODEL for argument in given.arguments)
        if given.models and not said and not given.has("AIDER_MODEL"):
            options += ["--model", f"openai/{given.models[0]}"]
        if not given.has("OPENAI_API_KEY"):
            launch.variables["OPENAI_API_KEY"] = PLACEHOLDER
    launch.arguments = (*options, *given.arguments)
    return launch


AIDER = Client(
    name="aider",
    title="aider",
    program="aider",
    install="pip install aider-chat",
    prepare=_prepare,
    bases=OWN,
    keys=KEYS,
    model=lambda given: given.option("--model").removeprefix("openai/") or given.environment.get("AIDER_MODEL", ""),
    listed=True,
)
