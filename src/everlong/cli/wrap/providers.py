"""Agents with many providers (opencode, pi, OpenClaw): which providers go through the gateway, and under what name.

A provider of the user is recognised by its key, its login or its row in the client's settings. Providers whose models
cannot be distinguished from another provider's by name, such as OpenRouter, are called at their own addresses.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from everlong.cli.wrap.client import BASES, NO_LIMIT, PLACEHOLDER, Base, Server, Situation

__all__ = [
    "KEYS",
    "OPENAI",
    "OWN_NAME",
    "PROVIDERS",
    "SPOKEN",
    "Provider",
    "configured_servers",
    "key_or_placeholder",
    "models_shown",
    "none_of",
    "providers_in_use",
    "versioned_address",
]

#: The name of the provider for `--upstream`.
OWN_NAME = "everlong"
KEY = "OPENAI_API_KEY"
LONGEST_ANSWER = 32_000  # tokens, for a model that only its server knows


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider that agents know by name: the variables for its key, and its API."""

    name: str
    keys: tuple[str, ...]
    base: Base


def _base(variable: str) -> Base:
    return next(base for base in BASES if base.variable == variable)


OPENAI, ANTHROPIC, GOOGLE = (_base(f"{name}_BASE_URL") for name in ("OPENAI", "ANTHROPIC", "GOOGLE_GEMINI"))
PROVIDERS = (
    Provider("anthropic", ("ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN"), ANTHROPIC),
    Provider("openai", ("OPENAI_API_KEY",), OPENAI),
    Provider("google", ("GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"), GOOGLE),
    Provider("deepseek", ("DEEPSEEK_API_KEY",), OPENAI),
    Provider("xai", ("XAI_API_KEY",), OPENAI),
    Provider("mistral", ("MISTRAL_API_KEY",), OPENAI),
    Provider("moonshotai", ("MOONSHOT_API_KEY",), OPENAI),
)
#: The variables that may have one of their keys.
KEYS = tuple(key for provider in PROVIDERS for key in provider.keys)
#: The formats of their APIs.
SPOKEN = tuple(dict.fromkeys(name for provider in PROVIDERS for name in provider.base.formats))


def versioned_address(base: Base, gateway: str) -> str:
    """Return the address for a client that adds Anthropic's version itself and expects others in the address."""
    return gateway if base.version == "/v1" else gateway + (base.version or "/v1")


def providers_in_use(given: Situation, signed_in: Collection[str]) -> Iterator[Provider]:
    """Yield the providers whose key is in a variable or that the client is signed in to."""
    for provider in PROVIDERS:
        if given.has(*provider.keys) or provider.name in signed_in:
            yield provider


def configured_servers(rows: Mapping[str, tuple[str, Base, tuple[str, ...]]]) -> tuple[Server, ...]:
    """Return the servers of providers that the user's settings describe: their address, API and models."""
    found = []
    for address, base, models in rows.values():
        server = base.server(address)
        found.append(Server(server.url, server.formats, models or ("*",)))
    return tuple(found)


def models_shown(given: Situation) -> dict[str, dict[str, Any]]:
    """Return the models of `--upstream` by name, with the figures that a client needs."""
    window = max(given.window or 0, NO_LIMIT)
    return {name: {"window": window, "output": LONGEST_ANSWER} for name in given.models or ()}


def key_or_placeholder(given: Situation, reference: str) -> str:
    """Return how a client finds the key for `--upstream`: by a reference to OpenAI's variable, if it is set."""
    return reference.format(name=KEY) if given.has(KEY) else PLACEHOLDER


def none_of(title: str, given: Situation) -> str:
    """Return why a client with no such provider cannot run behind the gateway, and what to do.

    "" if the server of `--upstream` has not been asked for its models.
    """
    if given.upstream:
        silent = f"{title} needs the list of models, and {given.upstream} lists none: check that the server runs"
        return "" if given.models is None else silent
    keys = ", ".join(provider.keys[0] for provider in PROVIDERS[:3])
    return (
        f"{title} has no provider that works through the gateway: set a key ({keys} …), or name a server with "
        "--upstream"
    )
