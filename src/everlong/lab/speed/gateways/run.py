"""Run the gateways' benchmark: start all of them once, measure them in turn, read their memory at the end."""

from compileall import compile_dir
from contextlib import ExitStack
from dataclasses import dataclass

from everlong.lab.environments import HERE, PACKAGE, SERVER, SERVER_POSTGRES, Environment
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.gateways.parties import (
    DIRECT,
    EVERLONG,
    EVERLONG_ANTHROPIC,
    EVERLONG_POSTGRES,
    EVERLONG_SQLITE,
    EVERLONG_WORKERS,
    HOP,
    PARTIES,
    Party,
    RunningGateway,
    run_gateway,
)
from everlong.lab.speed.gateways.processes import resident_megabytes
from everlong.lab.speed.gateways.tables import PACES, Footprint, added_table, crowd_table, footprint_table, rate_table
from everlong.lab.speed.tables import Table

__all__ = ["SIZES", "run", "run_with"]

LARGEST_RESULT = 1_000  # tokens: steps as an agent makes them
FIRST_SEED = 100
CLIENT = "everlong.lab.speed.gateways.client"
#: Gateways that differ only in their processes and their store; also measured with a new connection per request.
STORED = (EVERLONG_SQLITE, EVERLONG_WORKERS, EVERLONG_POSTGRES)


@dataclass(frozen=True, slots=True)
class Size:
    """Bodies of about `tokens`, and how many conversations and requests of each kind.

    A conversation is `built` a little larger, so that its last `steps` requests are around `tokens`.
    """

    tokens: int
    built: int
    growing: int
    new: int
    steps: int
    clients: int
    seconds: float
    rounds: int


SIZES = (
    Size(tokens=20_000, built=23_000, growing=8, new=32, steps=8, clients=16, seconds=1.5, rounds=2),
    Size(tokens=200_000, built=206_000, growing=4, new=16, steps=10, clients=16, seconds=3, rounds=1),
)


@dataclass(frozen=True, slots=True)
class Crowd:
    """This many conversations of about `tokens` each."""

    tokens: int
    conversations: int


CROWD, QUICK_CROWD = Crowd(100_000, 150), Crowd(4_000, 3)
QUICK_SIZES = (Size(tokens=4_000, built=5_000, growing=2, new=2, steps=2, clients=2, seconds=0.2, rounds=1),)


def run(bench: Bench) -> list[Table]:
    """Measure every gateway that is available here; return nothing if the upstream cannot be started."""
    return run_with(bench, PARTIES)


def run_with(bench: Bench, parties: tuple[Party, ...]) -> list[Table]:
    """Measure these gateways."""
    compile_dir(PACKAGE, quiet=2)  # installed gateways start with their bytecode, and so does ours
    with ExitStack() as stack:
        upstream = stack.enter_context(run_gateway(bench, DIRECT, _tools(bench)))
        if upstream is None:
            return []
        gateways = [upstream]
        for party in parties:
            if party.needs_postgres and not bench.postgres:
                bench.report(f"left out, {party.title}: name a database with --postgres")
                continue
            place = _place(bench, party)
            if place is None:
                continue
            bench.report(f"gateways, starting: {party.title}")
            gateway = stack.enter_context(run_gateway(bench, party, place, upstream.port))
            if gateway is not None:
                gateways.append(gateway)
        return _tables(bench, gateways)


def _tools(bench: Bench) -> Environment:
    """Return where upstream, hop and client run: with the gateway's fast loop, if it may be installed."""
    return SERVER if bench.peers and bench.environments.installed(SERVER) else HERE


def _place(bench: Bench, party: Party) -> Environment | None:
    if party.environment == HERE:
        return _tools(bench)
    if party.environment in (SERVER, SERVER_POSTGRES) and not bench.peers:
        return HERE
    return bench.place(party.environment)


def _tables(bench: Bench, gateways: list[RunningGateway]) -> list[Table]:
    targets = [
        {"name": one.party.title, "port": one.port, "process": one.process, "fmt": one.party.fmt} for one in gateways
    ]
    tables: list[Table] = []
    for size in QUICK_SIZES if bench.quick else SIZES:
        files = _conversations(bench, size)
        bench.report(f"gateways, {size.tokens:,} tokens, one request at a time")
        growing, new = files[: size.growing], files[size.growing :]
        job = {"question": "latencies", "targets": targets, "steps": size.steps}
        timings = bench.perform(_tools(bench), CLIENT, **job, growing=growing, new=new)
        if timings is None:
            return []
        tables.append(added_table(size.tokens, timings))
        bench.report(f"gateways, {size.tokens:,} tokens, {size.clients} clients at once")
        job |= {"question": "throughput", "seconds": size.seconds, "rounds": size.rounds, "paces": list(PACES)}
        sums = bench.perform(_tools(bench), CLIENT, **job, conversations=new[: size.clients])
        if sums is not None:
            tables.append(rate_table(size.tokens, size.clients, sums))
        stored = {DIRECT.title, *(party.title for party in STORED)}
        some = [target for target in targets if target["name"] in stored]
        if len(some) > 1:
            bench.report(f"gateways, {size.tokens:,} tokens, a new connection for each request")
            job |= {"targets": some, "fresh": True}
            sums = bench.perform(_tools(bench), CLIENT, **job, conversations=new[: size.clients])
            if sums is not None:
                tables.append(rate_table(size.tokens, size.clients, sums, fresh=True))
    tables += _crowds(bench, targets)
    footprints = {one.party.title: _footprint(bench, one) for one in gateways[1:] if one.party != HOP}
    return [*tables, footprint_table(footprints)] if footprints else tables


def _crowds(bench: Bench, targets: list[dict[str, object]]) -> list[Table]:
    """Measure the memory of many conversations in everlong; other gateways hold none."""
    crowds = {}
    for target in targets:
        if target["name"] not in (EVERLONG.title, EVERLONG_ANTHROPIC.title):
            continue
        bench.report(f"gateways, many conversations: {target['name']}")
        crowd = QUICK_CROWD if bench.quick else CROWD
        file = str(bench.stored(crowd.tokens, FIRST_SEED, largest=LARGEST_RESULT))
        job = {"question": "crowd", "target": target, "conversation": file, "conversations": crowd.conversations}
        taken = bench.perform(_tools(bench), CLIENT, **job)
        if taken is not None:
            crowds[str(target["name"])] = taken
    return [crowd_table(QUICK_CROWD.tokens if bench.quick else CROWD.tokens, crowds)] if crowds else []


def _conversations(bench: Bench, size: Size) -> list[str]:
    """Return files of conversations, each with different words."""
    seeds = range(FIRST_SEED, FIRST_SEED + size.growing + size.new)
    return [str(bench.stored(size.built, seed, largest=LARGEST_RESULT)) for seed in seeds]


def _footprint(bench: Bench, one: RunningGateway) -> Footprint:
    installed = None if one.place == HERE else bench.environments.megabytes(one.place)
    if installed is not None and one.place == SERVER:
        files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        installed += sum(path.stat().st_size for path in files) / 1e6
    return Footprint(one.started_in, one.resident, resident_megabytes(one.process), installed)
