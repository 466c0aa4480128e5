"""One run: which gateway it needs, what the client gets, and the result."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from everlong.cli.wrap.client import Client, Launch, Server, Situation, environment_of_run
from everlong.cli.wrap.figures import Figures, figures_now
from everlong.cli.wrap.gateway import (
    GATEWAY,
    Running,
    Wanted,
    answer_of,
    health_of,
    running_gateway,
    state_folder,
    with_own_config,
)
from everlong.cli.wrap.process import run_client
from everlong.errors import InputError
from everlong.llm import KNOWN
from everlong.wire import FORMATS

__all__ = ["SERVED", "Outcome", "launch_of", "models_of", "run_behind_gateway", "wanted_for"]

#: Providers that answer for their own models wherever a client sends them; each format's maker comes after them.
BY_MODEL = ("deepseek", "moonshotai", "alibaba", "zhipuai", "xai", "mistral", "groq")
#: The formats that the gateway speaks.
SERVED = tuple(name for name, each in FORMATS.items() if each.server_side is not None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run: the client's exit code, the gateway's figures, and whether others used the gateway too.

    `died`: the gateway ended before the client.
    """

    code: int
    came: Figures | None
    shared: bool
    gateway: Running
    died: bool = False


def wanted_for(client: Client, given: Situation, said: Wanted) -> Wanted:
    """Return the gateway that a client needs: for the user's `--upstream`, else for the servers that the user has set.

    Without either, each provider is called at its own address with the client's own key.
    """
    if said.upstream:
        return replace(said, plain=False)
    own = [server for server in client.servers(given) if set(server.formats) & set(SERVED)]
    plain = not own and said == Wanted()
    return replace(said, upstreams=tuple(_tables(own)), plain=plain)


def _tables(own: Sequence[Server]) -> Iterator[Mapping[str, Any]]:
    """Yield the tables of upstreams, with addresses instead of names, so that the gateway adds no key."""
    taken: set[str] = set()
    for server in own:
        formats = [name for name in server.formats if name in SERVED and name not in taken]
        if not formats:
            continue
        yield {"url": server.url, "formats": formats, "models": list(server.models)}
        taken |= set(formats) if "*" in server.models else set()
    if not taken:
        yield from ({"url": KNOWN[name][0]} for name in BY_MODEL)
    makers: dict[str, list[str]] = {}
    for name in SERVED:
        side = FORMATS[name].server_side
        if side is not None and name not in taken:
            makers.setdefault(side.maker, []).append(name)
    for maker, formats in makers.items():
        yield {"url": KNOWN[maker][0], "formats": formats, "models": ["*"]}


def own_gateway(client: Client, given: Situation) -> str:
    """Return the address of an Everlong gateway that the user has already set for the client; "" if there is none."""
    for server in client.servers(given):
        root = server.url.removesuffix("/v1").removesuffix("/v1beta")
        if ("://127.0.0.1" in root or "://localhost" in root) and health_of(root):
            return root
    return ""


def launch_of(client: Client, given: Situation) -> Launch:
    """Return what the client gets. Raises InputError if it cannot run behind a gateway with its current setup."""
    launch = client.prepare(given)
    if launch.refused:
        raise InputError(launch.refused)
    return launch


@contextmanager
def _folder(environment: Mapping[str, str]) -> Iterator[Path]:
    """Provide a folder for the run: in the user's own state folder, where nobody else can write."""
    state = state_folder(environment)
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=f"run-{os.getpid()}-", dir=state) as made:
        yield Path(made)


def run_behind_gateway(client: Client, program: Sequence[str], given: Situation, said: Wanted) -> Outcome:
    """Run the client behind a gateway until it ends."""
    launch_of(client, given)  # problems are reported before anything starts
    environment = with_own_config(given.environment)
    already = own_gateway(client, given)
    if already and said == Wanted():
        environment[GATEWAY] = already
    wanted = wanted_for(client, given, said).check(environment)
    with running_gateway(wanted, environment) as gateway, _folder(environment) as folder:
        known = replace(given, gateway=gateway.address, folder=folder)
        if client.listed and said.upstream:
            known = replace(known, models=models_of(f"{gateway.address}/v1", given))
        launch = launch_of(client, known)
        launch.write(folder)
        before = figures_now(gateway.address)
        code = run_client([*program, *launch.arguments], environment_of_run(given.environment, launch))
        launch.collect(folder)
        after = figures_now(gateway.address)
        alone = gateway.started and gateway.lease is not None and gateway.lease.uses == 1
    came = after.since(before) if before is not None and after is not None else None
    died = before is not None and after is None
    return Outcome(code=code, came=came, shared=not alone, gateway=gateway, died=died)


def models_of(server: str, given: Situation) -> tuple[str, ...]:
    """Return the models that a server lists, in its order."""
    key = given.environment.get("OPENAI_API_KEY", "").strip()
    body = answer_of(f"{server}/models", {"authorization": f"Bearer {key}"} if key else {})
    try:
        rows = json.loads(body or b"{}").get("data") or []
        return tuple(str(row["id"]) for row in rows)
    except (ValueError, AttributeError, KeyError, TypeError):
        return ()
