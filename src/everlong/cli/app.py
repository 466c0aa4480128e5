"""The application that `everlong serve` runs on one port: the gateway, and the chat app on the same store."""

import asyncio
import json
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

from starlette.applications import Starlette
from starlette.routing import Route

from everlong.agent import AgentConfig, folder_config, sandbox_of
from everlong.cli.chat.sample import sample_turns
from everlong.cli.permissions import sandbox_settings
from everlong.engine import Threads
from everlong.errors import Refused
from everlong.extras import expect_extras
from everlong.gateway import Boundary, GatewayConfig, Report, Services, application, config_from_environment
from everlong.llm import WITNESS, Fetch, LocalServer, WitnessServer, cache_folder, model_file, registry_now
from everlong.relevance import in_language
from everlong.store import default_store, is_remote, make_folder
from everlong.web import (
    BUILT,
    EVERYBODY,
    OWNER,
    Apps,
    AppState,
    Guard,
    Logins,
    MemberThreads,
    ProxyUsers,
    Setup,
    Site,
    Source,
    environment_sources,
    is_loopback,
    sample_language,
    sample_metadata,
    sources_file,
    web_routes,
)

if TYPE_CHECKING:
    from everlong.web import Vault

__all__ = [
    "FACTORY",
    "app_from_environment",
    "chat_app",
    "lone_app",
    "planned_local",
    "reason_not_served",
    "serving_options",
    "share_password",
]

FACTORY = "everlong.cli.app:app_from_environment"
#: Variables that pass options to the server process that are not settings of the gateway.
LOCAL, SAMPLE, TOOLS = "EVERLONG_SERVING_LOCAL", "EVERLONG_SERVING_SAMPLE", "EVERLONG_SERVING_TOOLS"
PASSWORD, SECRET = "EVERLONG_PASSWORD", "EVERLONG_SECRET"
UPSTREAM, KEY = "EVERLONG_UPSTREAM", "EVERLONG_KEY"
REACHED_WITHOUT_A_KEY = ("", "ollama")

SAMPLE_TITLES = {"en": "Lantern Books", "zh": "灯笼书店"}


@contextmanager
def serving_options(*, local: str | None, sample: bool, tools: Mapping[str, object]) -> Iterator[None]:
    """Set the variables for the server process while this is entered; `tools` says what tools may do without asking.

    `local` is the value of the option: a file is a model like any other, but the small model ("") is not.
    """
    said = any(tools.values())
    if said:
        _agent_config(tools)  # a wrong pattern is reported now, in one line
    small = local is not None and not local
    options = {LOCAL: "1" if small else "", SAMPLE: "1" if sample else "", TOOLS: json.dumps(tools) if said else ""}
    os.environ.update({name: value for name, value in options.items() if value})
    try:
        yield
    finally:
        for name in options:
            os.environ.pop(name, None)


def planned_local() -> str:
    """Return the address at which the small local model will answer once it runs, and set it in the environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    os.environ.update({UPSTREAM: address, KEY: secrets.token_urlsafe(24), "EVERLONG_FORMAT": ""})
    return address


def app_from_environment() -> Starlette:
    """Return the application of one process, with the chat app if it is served."""
    config = config_from_environment()
    if not config.app or reason_not_served(config):
        return application(config)
    return application(config, beside=partial(chat_app, config))


def reason_not_served(config: GatewayConfig) -> str:
    """Return why the chat app cannot be served with these settings; "" if it can.

    Processes notify each other through Postgres. With a file they cannot: a page would see only the turns of the
    process that it happens to reach.
    """
    if config.workers == 1 or is_remote(config.store or default_store(os.environ, sys.platform)):
        return ""
    return f"with {config.workers} processes it needs Postgres (--store postgresql://…)"


def share_password(config: GatewayConfig) -> str:
    """Return a password that all processes of this program share; "" if they have one already, or none is needed."""
    if os.environ.get(PASSWORD) or config.workers == 1 or config.users.by != "none" or is_loopback(config.host):
        return ""
    os.environ[PASSWORD] = Guard.listening_at(config.host).password
    return os.environ[PASSWORD]


def lone_app(app: AppState | Apps, guard: Guard, built: Path = BUILT) -> Boundary:
    """Return an application with only the chat app, without a gateway, for this machine."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await app.start()
        try:
            yield
        finally:
            await app.close()

    return Boundary(app=Starlette(routes=web_routes(app, guard, built), lifespan=lifespan))


@asynccontextmanager
async def chat_app(config: GatewayConfig, services: Services) -> AsyncIterator[Sequence[Route]]:
    """Run the chat app on the gateway's store and upstreams, as long as the gateway runs; yield its routes."""
    stack = ExitStack()

    def owner_of(headers: Sequence[tuple[bytes, bytes]]) -> str:
        return services.clients.identify(headers).scope

    users, store = config.users, services.state_store.store
    guard = await asyncio.to_thread(_guard, config, store)
    witness = _witness_source(stack)
    setup = Setup(
        threads=store,
        jobs=services.jobs if users.by == "none" else None,  # a job does not know which user's app it belongs to
        sources=(*_sources(services), *_keyed(services), witness),
        sources_file=sources_file(os.environ) if users.by == "none" else None,
        config=_agent_config(json.loads(os.environ.get(TOOLS, "{}"))),
        registry=registry_now(cache_folder(os.environ)),
        start_local=partial(_local_source, stack) if config.workers == 1 and users.by == "none" else None,
        sample=_sample,
        opens_sample=bool(os.environ.get(SAMPLE)),
        watched=owner_of if services.clients.needs_key else _nobody if users.by != "none" else None,
        keys=users.by == "none" and (is_loopback(config.host) or services.clients.needs_key),
        near=is_loopback(config.host) and users.by == "none",
        lease_seconds=config.app_lease,
        tools=users.by == "none" or users.tools,
        vault=_vault(store, "") if is_remote(config.store or default_store(os.environ, sys.platform)) else None,
    )
    app = AppState(setup) if users.by == "none" else _apps(setup)

    def forward(scope: str, report: Report) -> None:
        app.report_request(report.explanation(), scope if services.clients.needs_key else EVERYBODY)

    await app.start()
    if isinstance(app, AppState) and not app.sandbox.kind:
        print(f"The app's shell: {app.sandbox.description}", file=sys.stderr, flush=True)  # noqa: T201 - said once
    if os.environ.get(LOCAL) and isinstance(app, AppState):
        app.local.begin()
    services.recent.observers.append(forward)
    services.ending.append(app.end_streams)
    try:
        yield web_routes(app, guard)
    finally:
        services.recent.observers.remove(forward)
        await app.close()
        await asyncio.to_thread(stack.close)


def _guard(config: GatewayConfig, store: Threads) -> Guard:
    """Return the guard of the app: for the configured users, else for people on this machine or with the password."""
    users, logins = config.users, Logins(store)
    if users.by == "proxy":
        return Guard(proxy=ProxyUsers(users.header, config.trusted_proxies))
    if users.by == "oidc":
        expect_extras("signing in", "login")
        from everlong.web import OpenId, OpenIdProvider  # noqa: PLC0415 - needs an extra

        openid = OpenId(
            issuer=users.issuer,
            client=users.client_id,
            secret=os.environ.get(users.client_secret_env, ""),
            address=users.address.rstrip("/") + "/",
            scopes=users.scopes,
            domains=tuple(domain.lower() for domain in users.domains),
            groups=users.groups,
            groups_claim=users.groups_claim,
        )
        return Guard(logins=logins, provider=OpenIdProvider(openid, store), session=3_600 * users.session_hours)
    guard = Guard.listening_at(config.host, os.environ.get(PASSWORD, ""))
    guard.logins = logins
    if guard.password and not os.environ.get(PASSWORD):
        print(f"The app's password is {guard.password}", file=sys.stderr, flush=True)  # noqa: T201 - printed once
    return guard


def _vault(store: Threads, owner: str) -> "Vault | None":
    """Return where an owner's sources are kept in the store; None if there is no secret to encrypt them with."""
    secret = os.environ.get(SECRET, "")
    if not secret:
        return None
    expect_extras("encrypting keys in the store", "login")
    from everlong.web import Vault  # noqa: PLC0415 - needs an extra

    return Vault(store, secret, owner)


def _apps(setup: Setup) -> Apps:
    """Return an app for each user, with separate threads, settings and sources, and a separate folder for tools."""
    site = Site(setup.threads, lease=setup.lease_seconds)

    def make(owner: str) -> AppState:
        threads = MemberThreads(setup.threads, owner)
        config = setup.config
        if setup.tools:
            folder = config.workspace / "users" / owner.rpartition("/")[2]
            make_folder(folder)
            config = replace(config, workspace=folder)
        own = replace(setup, threads=threads, owner=owner, config=config, vault=_vault(threads, owner))
        return AppState(own, site)

    return Apps(site, make)


def _nobody(_: Sequence[tuple[bytes, bytes]]) -> str:
    """Refuse to show live requests: without keys, a page would show the requests of others."""
    raise Refused("live requests are shown per key, and this gateway has no keys", status=403, kind="no_keys")


def _agent_config(tools: Mapping[str, Any]) -> AgentConfig:
    """Return the agent's settings in this folder, with the options for permissions and the sandbox."""
    options = {"policy": tools.get("policy"), "approval": "always" if tools.get("yes") else None}
    options |= sandbox_settings(tools.get("sandbox"), off=tools.get("no_sandbox"), network=tools.get("network"))
    config, _ = folder_config(os.environ, Path(), options)
    config = config.with_patterns(tools.get("allow", ()), tools.get("deny", ()))
    config.permissions()  # raises if the policy file is wrong
    sandbox_of(config)  # raises if there is no such sandbox
    return config


def _sources(services: Services) -> list[Source]:
    """Return the upstreams that the app can use: those with a key, or that need none.

    The small local model becomes a source when it runs.
    """
    if os.environ.get(LOCAL):
        return []
    reached = [
        upstream
        for upstream in services.routes.upstreams
        if upstream.endpoint.key or upstream.endpoint.provider in REACHED_WITHOUT_A_KEY
    ]
    return [Source(name=one.name, endpoint=one.endpoint) for one in reached]


def _witness_source(stack: ExitStack) -> Source:
    """Start the witness, which needs no key and no model; it ends with the app."""
    server = stack.enter_context(WitnessServer())
    return Source(name=WITNESS, endpoint=server.endpoint(), models=(WITNESS,), witness=True)


def _local_source(stack: ExitStack, fetch: Fetch) -> Source:
    """Start the local model, which is downloaded once; it ends with the app."""
    expect_extras("a local model", "local")
    file = model_file(cache_folder(os.environ), fetch=fetch)
    planned = bool(os.environ.get(LOCAL))  # then the gateway's upstream has this address
    port, key = (urlsplit(os.environ[UPSTREAM]).port, os.environ[KEY]) if planned else (None, "")
    server = stack.enter_context(LocalServer(file, port=port or 0, key=key))
    return Source(name="local", endpoint=server.endpoint(), models=("local",), local=True)


def _keyed(services: Services) -> list[Source]:
    """Return the providers whose keys are in the environment and that are not upstreams of the gateway."""
    known = {upstream.endpoint.name for upstream in services.routes.upstreams}
    return [source for source in environment_sources(os.environ) if source.endpoint.name not in known]


async def _sample(app: AppState, language: str) -> str:
    """Return the sample thread of a language: it is longer than the witness's window and has the witness's summary."""
    kept = await asyncio.to_thread(partial(app.threads.threads, owner=OWNER, archived=False))
    found = next((thread.id for thread in kept if sample_language(thread) == language), "")
    if found:
        return found
    thread, model = uuid4().hex, f"{WITNESS}/{WITNESS}"
    title, metadata = in_language(SAMPLE_TITLES, language), sample_metadata(model, language)
    await asyncio.to_thread(partial(app.threads.create, thread, owner=OWNER, title=title, metadata=metadata))
    await app.engine.append(thread, await asyncio.to_thread(sample_turns, language))
    await app.compactions.summarize(thread, await app.agents.for_thread(thread))
    return thread
