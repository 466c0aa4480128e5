"""Where the model comes from: the local one, an address or provider, the environment, or what a person says once.

Keys are typed unseen, held in memory for this run and shown nowhere.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import aiohttp

from everlong.agent import DEFAULT_CONFIG, AgentConfig
from everlong.cli.chat.options import LOCAL_WINDOW, ChatOptions
from everlong.cli.words.wording import Words
from everlong.errors import InputError
from everlong.llm import KNOWN, Endpoint, LocalServer, cache_folder, endpoint_at, endpoint_from_environment, model_file

__all__ = ["KEY_PREFIXES", "Asking", "Source", "choose", "default_model", "local_source", "provider_of_key"]

SAMPLE_WINDOW = 2_048  # a model that reads slowly has read all of it in some ten seconds
SECONDS = 5.0  # for a server to name its models
Tell = Callable[[str], None]

#: How keys begin, longest first, and whose they are.
KEY_PREFIXES: tuple[tuple[str, str], ...] = (
    ("sk-ant-", "anthropic"),
    ("sk-or-", "openrouter"),
    ("sk-proj-", "openai"),
    ("gsk_", "groq"),
    ("AIza", "google"),
    ("xai-", "xai"),
)
#: A model of each provider that does for a conversation, where none is named.
USUAL_MODELS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4o",
    "google": "gemini-2.5-flash",
    "openrouter": "openai/gpt-4o",
    "deepseek": "deepseek-chat",
    "moonshotai": "kimi-k2-0905-preview",
    "alibaba": "qwen-plus",
    "zhipuai": "glm-4.6",
    "groq": "llama-3.3-70b-versatile",
    "mistral": "mistral-large-latest",
    "xai": "grok-4",
}


class Asking(Protocol):
    """A person at a terminal."""

    def line(self, prompt: str) -> str:
        """What they type; "" for nothing."""

    def secret(self, prompt: str) -> str:
        """The same, unseen."""


@dataclass(frozen=True, slots=True)
class Source:
    """An endpoint; `local` if it is the model on this machine."""

    endpoint: Endpoint
    local: bool = False


def choose(
    options: ChatOptions, config: AgentConfig, environment: Mapping[str, str], asking: Asking | None, say: Words
) -> Endpoint | None:
    """The endpoint that was asked for; None is the local model. Raises InputError where nobody said and nobody can."""
    if options.local:
        return None
    if options.upstream:
        return _named(options.upstream, environment)
    if config.upstream and not environment.get("EVERLONG_UPSTREAM"):
        return _named(config.upstream, environment)
    found = endpoint_from_environment(environment)
    if found is not None:
        return found
    if asking is None:
        raise InputError(say("no_model"))
    return _asked(asking, environment, say)


def _named(where: str, environment: Mapping[str, str]) -> Endpoint:
    """A provider's own key goes to that provider; EVERLONG_KEY to an address that is nobody's we know."""
    found = endpoint_at(where, environment=environment)
    if found.key:
        return found
    variable = KNOWN[found.provider][2] if found.provider in KNOWN else "EVERLONG_KEY"
    return replace(found, key=environment.get(variable, "") if variable else "")


def _asked(asking: Asking, environment: Mapping[str, str], say: Words) -> Endpoint | None:
    answer = asking.line(f"{say('which_model')}\n  1  {say('which_local')}\n  2  {say('which_key')}\n{say('which')} ")
    if answer.strip() in ("", "1"):
        return None
    given = asking.secret(say("paste_key")).strip() if answer.strip() == "2" else answer.strip()
    if given in KNOWN or "://" in given:
        key = "" if given in KNOWN else asking.secret(say("paste_server_key")).strip()
        return endpoint_at(given, key=key, environment=environment)
    if not given:
        raise InputError(say("no_model"))
    provider = provider_of_key(given) or asking.line(say("whose_key", list=", ".join(KNOWN))).strip()
    if provider not in KNOWN:
        raise InputError(say("no_provider", list=", ".join(KNOWN)))
    return endpoint_at(provider, key=given)


def provider_of_key(key: str) -> str:
    """Whose key it is by its beginning, "" if that cannot be told. Example: "sk-ant-…" -> "anthropic" """
    return next((provider for prefix, provider in KEY_PREFIXES if key.startswith(prefix)), "")


@contextmanager
def local_source(tell: Tell, *, sample: bool) -> Iterator[Source]:
    """The local model, served while this is entered."""
    file = model_file(cache_folder(os.environ), tell)
    server = LocalServer(file, context=SAMPLE_WINDOW if sample else LOCAL_WINDOW)
    with _without_interrupts():
        server.__enter__()
    try:
        yield Source(server.endpoint(), local=True)
    finally:
        server.__exit__(None, None, None)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """What is started here ignores Ctrl-C, which a terminal sends to everyone: it is meant for the turn alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def default_model(config: AgentConfig, options: ChatOptions, endpoint: Endpoint) -> str:
    """The model that was named, else the provider's usual one, else the first that the server lists."""
    if options.model or config.model != DEFAULT_CONFIG.model:
        return config.model
    if endpoint.provider in USUAL_MODELS:
        return USUAL_MODELS[endpoint.provider]
    return await _first_listed(endpoint) or config.model


async def _first_listed(endpoint: Endpoint) -> str:
    headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{endpoint.name}/models", headers=headers, allow_redirects=False) as response,
        ):
            listed = (await response.json(content_type=None))["data"][0]["id"]
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, LookupError, TypeError):
        return ""  # it may serve one all the same
    return listed if isinstance(listed, str) else ""
