"""`everlong lab capacity`: replicas, memory and database for a rate of requests, and the first bottleneck."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.lab.options import DATA, JSON
from everlong.cli.terminal.files import write_page
from everlong.cli.terminal.options import TokenCount
from everlong.cli.terminal.streams import print_json
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option

if TYPE_CHECKING:
    from everlong.lab import CapacityPlan, Costs, Lengths, Table, Waits

__all__ = ["capacity_command"]

RECORDED, MEASURED = "recorded", "measured"
STORES = ("sqlite", "postgres")
CONVERSATIONS = ("coding", "service", "repair")


class Planned(NamedTuple):
    """The plan for one rate, and how long requests wait: by formula, simulated in one queue, and spread at random."""

    plan: "CapacityPlan"
    paper: "Waits"
    line: "Waits"
    spread: "Waits"


def _rates(_: click.Context, __: click.Parameter, value: str) -> tuple[float, ...]:
    """Read rates. Example: "10,1000" -> (10.0, 1000.0)"""
    try:
        rates = tuple(sorted({float(piece) for piece in value.split(",") if piece.strip()}))
    except ValueError:
        raise click.BadParameter("give numbers separated by commas, such as 10,1000") from None
    if not rates or rates[0] <= 0 or rates[-1] > 1e7:
        raise click.BadParameter("give requests per second, above 0 and at most 10,000,000")
    return rates


@click.command(
    "capacity",
    cls=ExampleCommand,
    examples=(
        "everlong lab capacity",
        "everlong lab capacity --rates 50,500 --retention-days 7",
        "everlong lab capacity --costs measured --save costs.json",
    ),
)
@click.option(
    "--rates",
    default="10,1000,100000",
    callback=_rates,
    metavar="N,N",
    help="Requests per second to plan for (default: 10,1000,100000).",
)
@click.option(
    "--window",
    type=TokenCount(min=4_000),
    default=128_000,
    metavar="N",
    help="The models' context window in tokens (default: 128000).",
)
@click.option("--store", type=click.Choice(STORES), default="postgres", help="The store (default: postgres).")
@click.option(
    "--retention-days",
    type=click.FloatRange(min=0),
    default=30.0,
    metavar="N",
    help="Days for which conversations are stored (default: 30).",
)
@click.option(
    "--conversations",
    type=click.Choice(CONVERSATIONS),
    default="coding",
    help="The kind of conversations, which decides their length (default: coding).",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=4,
    metavar="N",
    help="Server processes of a replica (default: 4).",
)
@click.option(
    "--memory",
    type=click.FloatRange(min=0.5),
    default=8.0,
    metavar="GB",
    help="Memory of a replica in gigabytes (default: 8).",
)
@click.option(
    "--busy",
    type=click.FloatRange(min=0.05, max=0.95),
    default=0.6,
    metavar="N",
    help="The share of the time that a process may be busy, from 0.05 to 0.95 (default: 0.6).",
)
@click.option(
    "--costs",
    "source",
    default=RECORDED,
    metavar="SOURCE",
    help="What a request costs: recorded figures, measured on this machine (takes a minute), or a FILE (default: "
    "recorded).",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the costs to this file, for --costs.",
)
@click.option(
    "--store-url", default="", metavar="URL", help="With --costs measured: the store to use (default: a SQLite file)."
)
@DATA
@click.option("--seed", type=int, default=1, metavar="N", help="The seed of the simulation (default: 1).")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PATH",
    help="Also write the tables as one HTML page.",
)
@JSON
@language_option
def capacity_command(  # noqa: PLR0913 - one parameter an option
    rates: tuple[float, ...],
    window: int,
    store: str,
    retention_days: float,
    conversations: str,
    workers: int,
    memory: float,
    busy: float,
    source: str,
    save: Path | None,
    store_url: str,
    data: str | None,
    seed: int,
    html: Path | None,
    as_json: bool,
    language: Language,
) -> None:
    """Plan replicas, CPU, memory and database for a request rate, and find the first bottleneck.

    The plan comes from the cost of one request, the length of real conversations, and the times at which requests
    arrive. Then the load is simulated to find out how long requests wait. The same seed gives the same figures.
    """
    from everlong.lab import (  # noqa: PLC0415 - only a run needs all of this
        LENGTHS,
        Arrivals,
        Machine,
        counted_lengths,
        data_folder,
        paper_waits,
        plan_for,
        play_plan,
        write_costs,
    )

    costs = _costs(source, store, store_url)
    if save is not None:
        write_costs(costs, save)
    lengths = LENGTHS[conversations] if data is None else counted_lengths(conversations, data_folder(data))
    machine = Machine(workers=workers, utilisation=busy, memory_gigabytes=memory)
    plans = []
    for rate in rates:
        plan = plan_for(Arrivals(rate), costs, lengths, window=window, retention_days=retention_days, machine=machine)
        plans.append(Planned(plan, paper_waits(plan), *play_plan(plan, costs, lengths, seed)))
    if as_json:
        print_json(_as_json(plans, costs, lengths))
        return
    say = Words(language, "capacity")
    title = say(
        "needs", conversations=conversations, window=f"{window:,}", days=f"{retention_days:g}", store=costs.store
    )
    tables = [_needs(plans, title, seed, say), _shares(plans, costs, say), _costs_table(costs, plans[0].plan, say)]
    for table in tables:
        click.echo(str(table))
    if html is not None:
        _write(html, tables, costs.taken, say)


def _costs(source: str, store: str, url: str) -> "Costs":
    from everlong.lab import (  # noqa: PLC0415
        Bench,
        Environments,
        folder_from,
        measured_costs,
        read_costs,
        recorded_costs,
    )

    if source == RECORDED:
        return recorded_costs(store)
    if source == MEASURED:
        where = Environments(folder_from(os.environ), lambda line: click.echo(line, err=True))
        return measured_costs(Bench(where, peers=False), url)
    return read_costs(Path(source))


def _needs(plans: Sequence[Planned], title: str, seed: int, say: Words) -> "Table":
    from everlong.lab import Table  # noqa: PLC0415

    keys = (
        "rate",
        "burst",
        "cpu",
        "cores",
        "replicas",
        "night",
        "memory",
        "database",
        "commits",
        "log",
        "wait_paper",
        "wait",
        "wait_random",
    )
    rows = []
    for plan, paper, line, spread in plans:
        demands = {demand.name: demand.needed for demand in plan.demands}
        per_replica = -(-plan.workers // plan.replicas)
        rows.append(
            (
                _figure(plan.arrivals.rate),
                _figure(plan.arrivals.peak),
                _figure(plan.service.total * 1e3),
                _figure(plan.cores),
                f"{plan.replicas:,} × {per_replica}",
                f"{plan.replicas_at_night:,}",
                _figure(plan.memory_bytes / 1e9),
                _figure(plan.database_bytes / 1e9),
                _figure(demands["commits"]),
                _figure(demands["log"] / 1e6),
                f"{_figure(paper.p50 * 1e3)} / {_figure(paper.p99 * 1e3)}",
                f"{_figure(line.p50 * 1e3)} / {_figure(line.p99 * 1e3)}",
                _figure(spread.p99 * 1e3),
            )
        )
    return Table(title, tuple(map(say, keys)), tuple(rows), (say("waits_note", seed=str(seed)),))


def _shares(plans: Sequence[Planned], costs: "Costs", say: Words) -> "Table":
    from everlong.lab import Table  # noqa: PLC0415

    names = [demand.name for demand in plans[0].plan.demands]
    head = (
        say("rate"),
        *(say(f"demand_{name}") for name in names),
        say("first"),
        say("first_shared"),
        say("partitions"),
    )
    rows = tuple(
        (
            _figure(plan.arrivals.rate),
            *(f"{_figure(100 * demand.used)} %" for demand in plan.demands),
            say(f"demand_{plan.first.name}"),
            say(f"demand_{plan.first_shared.name}"),
            f"{plan.partitions:,}",
        )
        for plan, *_ in plans
    )
    notes = [say("shares_note")]
    if costs.store == "sqlite" and any(plan.replicas > 1 for plan, *_ in plans):
        notes.append(say("sqlite_note"))
    return Table(say("shares"), head, rows, tuple(notes))


def _costs_table(costs: "Costs", plan: "CapacityPlan", say: Words) -> "Table":
    from everlong.lab import COST_SIZES, Table  # noqa: PLC0415

    head = tuple(map(say, ("tokens", "growing", "new", "compaction", "body")))
    figures = zip(COST_SIZES, costs.growing, costs.new, costs.compaction, costs.body, strict=True)
    rows = tuple((f"{tokens:,}", *map(_figure, cells), _figure(body / 1e3)) for tokens, *cells, body in figures)
    service = plan.service
    beside = service.compaction + service.summary
    every = _figure(1 / service.compactions) if service.compactions else "∞"
    notes = (
        say(
            "costs_note",
            commits=_figure(costs.commits),
            log=_figure(costs.log_bytes),
            token=_figure(costs.bytes_per_token),
            compacted=_figure(costs.bytes_per_compacted_token),
            idle=_figure(costs.idle_megabytes),
            held=_figure(costs.conversation_kilobytes),
        ),
        say("mean_note", request=_figure(service.total * 1e3), compaction=_figure(beside * 1e3), every=every),
    )
    return Table(say("costs", taken=costs.taken, store=costs.store), head, rows, notes)


def _figure(value: float) -> str:
    from everlong.lab import figure  # noqa: PLC0415

    return figure(value)


def _write(path: Path, tables: "Sequence[Table]", taken: str, say: Words) -> None:
    from everlong.lab import speed_page  # noqa: PLC0415

    write_page(speed_page(tables, taken, about="capacity", language=say.language.code), str(path))
    click.echo(say("page", path=str(path)), err=True)


def _as_json(plans: Sequence[Planned], costs: "Costs", lengths: "Lengths") -> dict[str, object]:
    return {
        "costs": asdict(costs),
        "lengths": asdict(lengths),
        "plans": [
            {
                "rate": plan.arrivals.rate,
                "cpu_ms": plan.service.total * 1e3,
                "cores": plan.cores,
                "replicas": plan.replicas,
                "replicas_at_night": plan.replicas_at_night,
                "workers": plan.workers,
                "memory_bytes": plan.memory_bytes,
                "database_bytes": plan.database_bytes,
                "used": {demand.name: demand.used for demand in plan.demands},
                "needed": {demand.name: demand.needed for demand in plan.demands},
                "first": plan.first.name,
                "first_shared": plan.first_shared.name,
                "partitions": plan.partitions,
                "waits": {"paper": asdict(paper), "line": asdict(line), "random": asdict(spread)},
            }
            for plan, paper, line, spread in plans
        ],
    }
