"""What a chat starts with: its options, the agent's configuration, and the endpoint of its model.

The model is on this machine, at an address or a provider, in the environment, or where the person says. Keys are typed
without echo, held in memory for this run and never shown.
"""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp

from everlong.agent import DEFAULT_CONFIG, AgentConfig, at_home, folder_config
from everlong.cli.chat.keyboard import Person
from everlong.cli.permissions import sandbox_settings
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.errors import InputError
from everlong.llm import (
    KNOWN,
    PACKED,
    USUAL_MODELS,
    Endpoint,
    LocalServer,
    WitnessServer,
    cache_folder,
    endpoint_at,
    endpoint_from_environment,
    local_file,
    read_whole,
)
from everlong.wire import format_named

__all__ = [
    "LOCAL_WINDOW",
    "ChatOptions",
    "Source",
    "choose",
    "config_for",
    "default_model",
    "for_local_model",
    "local_source",
    "provider_of_key",
    "witness_source",
]

LOCAL_WINDOW = 8_192
LOCAL_REPLY = 220  # tokens; the local model writes about twenty a second and does not stop by itself
LOCAL_SYSTEM = "You are a helpful assistant. Answer in a few sentences."
SAMPLE_WINDOW = 2_048  # tokens; the local model reads them in about ten seconds
LARGEST_LISTING = 16 * 1024 * 1024  # bytes of that list
LISTING_SECONDS = 5.0  # for a server to list its models
#: The beginnings of keys, longest first, and their providers.
KEY_PREFIXES: tuple[tuple[str, str], ...] = (
    ("sk-ant-", "anthropic"),
    ("sk-or-", "openrouter"),
    ("sk-proj-", "openai"),
    ("gsk_", "groq"),
    ("AIza", "google"),
    ("xai-", "xai"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """The options of the command; None and "" mean not given."""

    language: Language
    message: str | None = None
    json_wanted: bool = False
    model: str | None = None
    upstream: str | None = None
    local: str | None = None
    sample: bool = False
    latest: bool = False
    thread: str | None = None
    store: str | None = None
    workspace: str | None = None
    yes: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    policy: str | None = None
    sandbox: str | None = None
    no_sandbox: bool = False
    network: bool = False
    no_tools: bool = False
    system: str | None = None
    preset: str | None = None

    def __post_init__(self) -> None:
        if self.local is not None and self.upstream:
            raise InputError("--local and --upstream contradict each other: use one of them")
        if sum((self.latest, self.thread is not None, self.sample)) > 1:
            raise InputError("--continue, --thread and --sample contradict each other: use one of them")


def config_for(options: ChatOptions, environment: Mapping[str, str]) -> tuple[AgentConfig, tuple[str, ...]]:
    """Return the configuration from file, variables and options, and the ignored fields of the folder's file."""
    folder = at_home(options.workspace) if options.workspace else Path.cwd()
    if not folder.is_dir():
        raise InputError(f"--workspace: {folder} is not a folder")
    given: dict[str, object] = {
        "model": options.model,
        "system": options.system,
        "preset": options.preset,
        "workspace": options.workspace,
        "approval": "always" if options.yes else None,
        "policy": options.policy,
        **sandbox_settings(options.sandbox, off=options.no_sandbox, network=options.network),
    }
    config, ignored = folder_config(environment, folder, given)
    return replace(config.with_patterns(options.allow, options.deny), workspace=config.workspace.resolve()), ignored


def for_local_model(config: AgentConfig) -> AgentConfig:
    """Return a configuration for the slow local model: a short system text and short answers."""
    system = LOCAL_SYSTEM if config.system == DEFAULT_CONFIG.system else config.system
    return replace(config, model="local", system=system, max_tokens=config.max_tokens or LOCAL_REPLY)


# --- the model ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """An endpoint.

    `local` means the small model on this machine; `window` is set if the server was started with one.
    """

    endpoint: Endpoint
    local: bool = False
    window: int | None = None


def choose(
    options: ChatOptions, config: AgentConfig, environment: Mapping[str, str], person: Person | None, say: Words
) -> Endpoint | None:
    """Return the endpoint to talk to; None means the local model.

    Raises InputError if no endpoint is known and nobody can be asked.
    """
    if options.local is not None:
        return None
    if options.upstream:
        return _named(options.upstream, environment)
    if config.upstream and not environment.get("EVERLONG_UPSTREAM"):
        return _named(config.upstream, environment)
    endpoint = endpoint_from_environment(environment)
    if endpoint is not None:
        return endpoint
    if person is None:
        raise InputError(say("no_model"))
    return _ask(person, environment, say)


def _named(where: str, environment: Mapping[str, str]) -> Endpoint:
    """Return the endpoint at an address or provider: a provider gets its own key, an unknown address EVERLONG_KEY."""
    endpoint = endpoint_at(where, environment=environment)
    if endpoint.key:
        return endpoint
    variable = KNOWN[endpoint.provider][2] if endpoint.provider in KNOWN else "EVERLONG_KEY"
    return replace(endpoint, key=environment.get(variable, "") if variable else "")


def _ask(person: Person, environment: Mapping[str, str], say: Words) -> Endpoint | None:
    """Ask the person for a model; None means the local one."""
    answer = person.line(f"{say('which_model')}\n  1  {say('which_local')}\n  2  {say('which_key')}\n{say('which')} ")
    if answer.strip() in ("", "1"):
        return None
    given = person.secret(say("paste_key")).strip() if answer.strip() == "2" else answer.strip()
    if given in KNOWN or "://" in given:
        key = "" if given in KNOWN else person.secret(say("paste_server_key")).strip()
        return endpoint_at(given, key=key, environment=environment)
    if not given:
        raise InputError(say("no_model"))
    provider = provider_of_key(given) or person.line(say("whose_key", list=", ".join(KNOWN))).strip()
    if provider not in KNOWN:
        raise InputError(say("no_provider", list=", ".join(KNOWN)))
    return endpoint_at(provider, key=given)


def provider_of_key(key: str) -> str:
    """Return the provider of a key by its beginning; "" if it is unknown. Example: "sk-ant-…" -> "anthropic" """
    return next((provider for prefix, provider in KEY_PREFIXES if key.startswith(prefix)), "")


@contextmanager
def local_source(options: ChatOptions, window: int | None, report: Callable[[str], None]) -> Iterator[Source]:
    """Serve a local model while this is entered: the named file with the window in the settings, or the small model."""
    named = options.local or ""
    file = local_file(named, cache_folder(os.environ), report)
    server = LocalServer(file, context=SAMPLE_WINDOW if options.sample else (named and window) or LOCAL_WINDOW)
    with _without_interrupts():
        server.__enter__()
    try:
        yield Source(server.endpoint(), local=not named, window=server.context if named else None)
    finally:
        server.__exit__(None, None, None)


@contextmanager
def witness_source() -> Iterator[Source]:
    """Serve the witness while this is entered; it starts at once and knows only what it receives."""
    with WitnessServer() as server:
        yield Source(server.endpoint(), window=server.model.window.tokens)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let processes that start here ignore Ctrl-C: a terminal sends it to all of them, but it is meant for the turn."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def default_model(config: AgentConfig, endpoint: Endpoint) -> str:
    """Return the named model, else the provider's usual one, else the first that the server lists."""
    if "model" in config.named:
        return config.model
    if endpoint.provider in USUAL_MODELS:
        return USUAL_MODELS[endpoint.provider]
    return await _first_listed(endpoint) or config.model


async def _first_listed(endpoint: Endpoint) -> str:
    api = format_named(endpoint.fmt).api
    timeout = aiohttp.ClientTimeout(total=LISTING_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(
                endpoint.name + api.models,
                headers={**PACKED, **api.headers(endpoint.key)},
                allow_redirects=False,
                auto_decompress=False,
            ) as response,
        ):
            listed = json.loads(await read_whole(response, LARGEST_LISTING))["data"][0]["id"]
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, LookupError, TypeError, RecursionError):
        return ""  # the server may have a model without listing it
    return listed if isinstance(listed, str) else ""
