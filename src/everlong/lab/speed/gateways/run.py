"""Run the gateways' benchmark: start all of them once, measure them in turn, read their memory at the end."""

from contextlib import ExitStack
from dataclasses import dataclass

from everlong.lab.environments import HERE, PACKAGE, SERVER, Environment
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.gateways.parties import DIRECT, HOP, PARTIES, Party, RunningGateway, run_gateway
from everlong.lab.speed.gateways.processes import resident_megabytes
from everlong.lab.speed.gateways.tables import PACES, Footprint, added_table, footprint_table, rate_table
from everlong.lab.speed.tables import Table

__all__ = ["SIZES", "run", "run_with"]

LARGEST_RESULT = 1_000  # tokens: steps as an agent makes them
FIRST_SEED = 100
CLIENT = "everlong.lab.speed.gateways.client"


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
QUICK_SIZES = (Size(tokens=4_000, built=5_000, growing=2, new=2, steps=2, clients=2, seconds=0.2, rounds=1),)


def run(bench: Bench) -> list[Table]:
    """Measure every gateway that is available here; return nothing if the upstream cannot be started."""
    return run_with(bench, PARTIES)


def run_with(bench: Bench, parties: tuple[Party, ...]) -> list[Table]:
    """Measure these gateways."""
    with ExitStack() as stack:
        upstream = stack.enter_context(run_gateway(bench, DIRECT, _tools(bench)))
        if upstream is None:
            return []
        gateways = [upstream]
        for party in parties:
            place = _place(bench, party)
            if place is None:
                continue
            bench.report(f"gateways, starting: {party.title}")
            gateway = stack.enter_context(run_gateway(bench, party, place, upstream.port))
            if gateway is not None:
                gateways.append(gateway)
        return _tables(bench, gateways)


def _tools(bench: Bench) -> Environment:
    """Return where upstream, hop and client run: with the gateway's fast loop, if that may be installed."""
    return SERVER if bench.peers and bench.environments.installed(SERVER) else HERE


def _place(bench: Bench, party: Party) -> Environment | None:
    if party.environment == HERE:
        return _tools(bench)
    if party.environment == SERVER and not bench.peers:
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
    footprints = {one.party.title: _footprint(bench, one) for one in gateways[1:] if one.party != HOP}
    return [*tables, footprint_table(footprints)] if footprints else tables


def _conversations(bench: Bench, size: Size) -> list[str]:
    """Return files of conversations, each with words of its own."""
    seeds = range(FIRST_SEED, FIRST_SEED + size.growing + size.new)
    return [str(bench.stored(size.built, seed, largest=LARGEST_RESULT)) for seed in seeds]


def _footprint(bench: Bench, one: RunningGateway) -> Footprint:
    installed = None if one.place == HERE else bench.environments.megabytes(one.place)
    if installed is not None and one.place == SERVER:
        files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        installed += sum(path.stat().st_size for path in files) / 1e6
    return Footprint(one.started_in, one.resident, resident_megabytes(one.process), installed)
