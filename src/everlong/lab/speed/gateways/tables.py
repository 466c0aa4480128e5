"""The tables of the gateways' benchmark: what each gateway adds to a direct request, and whether goals are met."""

from dataclasses import asdict, dataclass
from math import ceil
from statistics import median
from typing import Any

from everlong.lab.speed.gateways.client import KINDS
from everlong.lab.speed.gateways.parties import (
    DIRECT,
    EVERLONG,
    EVERLONG_POSTGRES,
    EVERLONG_SQLITE,
    EVERLONG_WORKERS,
)
from everlong.lab.speed.tables import Shown, Table, figure

__all__ = [
    "PACES",
    "Added",
    "Footprint",
    "Rate",
    "added",
    "added_table",
    "crowd_table",
    "footprint_table",
    "ninetieth",
    "rate",
    "rate_table",
]

#: The timings of one gateway: kind of request -> its figures.
Figures = dict[str, dict[str, Any]]
#: The kinds of answers.
TIMED = ("plain", "streamed")

MOST_ADDED = {20_000: 3.0, 200_000: 12.0}  # ms in the median, by tokens
LEAST_SHARE = {20_000: 0.60}  # of direct, by tokens
MOST_OF_ONE = 1.1  # CPU of a request with two workers, relative to one
MOST_MEGABYTES, MOST_SECONDS = 150, 2.0
MANY = 10_000  # conversations whose memory is computed
MOST_FOR_MANY, LARGE_CROWD = 400, 100_000  # MB for conversations of at least this many tokens

THINKING = 40  # ms; less than any model takes, but a gateway's own work still shows
#: Milliseconds that the upstream takes for an answer -> its name in the table.
PACES = {0: "flat out", THINKING: f"{THINKING} ms upstream"}

MAIN = KINDS[0]
COLUMNS = [(kind, how) for kind in KINDS for how in TIMED]
NAMES = {"plain": "plain", "streamed": "first chunk"}


@dataclass(frozen=True, slots=True)
class Added:
    """Milliseconds added compared with no gateway: the difference of the medians and of the ninetieth percentiles."""

    median: float
    ninetieth: float


def ninetieth(times: list[float]) -> float:
    """Return the ninetieth percentile. Example: 1, 2, …, 10 -> 9"""
    return sorted(times)[ceil(len(times) * 0.9) - 1]


def added(timings: Figures, direct: Figures) -> dict[tuple[str, str], Added]:
    """Return what a gateway adds for each kind, plain and streamed. Kinds that were never answered are missing."""
    return {
        (kind, how): Added(
            (median(times[how]) - median(direct[kind][how])) * 1e3,
            (ninetieth(times[how]) - ninetieth(direct[kind][how])) * 1e3,
        )
        for kind, times in timings.items()
        for how in TIMED
        if times[how] and direct[kind][how]
    }


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests per second, their share of going direct, and the gateway's CPU milliseconds per request."""

    each_second: float
    share: float
    cpu: float


def rate(sums: dict[str, Any], direct: dict[str, Any]) -> Rate:
    """Return the rate at which many clients got answers."""
    each_second = sums["answered"] / sums["seconds"]
    straight = direct["answered"] / direct["seconds"]
    cpu = sums["cpu"] / sums["answered"] * 1e3 if sums["answered"] else 0.0
    return Rate(each_second, each_second / straight if straight else 0.0, cpu)


@dataclass(frozen=True, slots=True)
class Footprint:
    """Seconds from start to first answer, MB held then and after the run, MB installed; None if unknown."""

    started_in: float
    resident_first: float | None
    resident: float | None
    installed: float | None


def added_table(tokens: int, timings: dict[str, Figures]) -> Table:
    """Return the table of what each gateway adds to one request at a time."""
    direct = timings[DIRECT.title]
    differences = {name: added(kinds, direct) for name, kinds in timings.items() if name != DIRECT.title}
    rows = [(DIRECT.title, *(_own(direct, column) for column in COLUMNS), "–")]
    for name, values in differences.items():
        cells = (
            f"{_signed(values[column].median)} ({_signed(values[column].ninetieth)})" if column in values else "–"
            for column in COLUMNS
        )
        rows.append((name, *cells, " / ".join(_cpu(timings[name][kind]) for kind in KINDS)))
    head = ("", *(f"{kind}, {NAMES[how]}" for kind, how in COLUMNS), f"CPU ms: {' / '.join(KINDS)}")
    notes = [
        "Wall ms, median (and 90th percentile): of going direct as they are, of the others what they add. Growing: a "
        "conversation that is one step longer each time. Same: one body again and again. New: never seen before. CPU: "
        "of the gateway's processes for one request, which holds on a busy machine as wall time does not. A growing "
        f"request has {_kilobytes(direct[MAIN]):,.0f} kB on average.",
        *_refused(timings),
        *_added_verdict(tokens, differences.get(EVERLONG.title)),
        *_postgres_note(timings, differences),
    ]
    medians = [0.0, *(max(0.0, values[MAIN, "plain"].median) if values else 0.0 for values in differences.values())]
    shown = Shown("growing, plain: added ms", tuple(medians), tuple(f"{figure(value)} ms" for value in medians))
    return Table(f"Through a gateway, {tokens:,} tokens", head, tuple(rows), tuple(notes), timings, shown)


def rate_table(
    tokens: int, clients: int, sums_by_pace: dict[str, dict[str, dict[str, Any]]], *, fresh: bool = False
) -> Table:
    """Return the table of requests per second at each pace of the upstream; `fresh` if each used a new connection."""
    rates = {
        int(pace): {name: rate(figures, sums[DIRECT.title]) for name, figures in sums.items()}
        for pace, sums in sums_by_pace.items()
    }
    rows = tuple(
        (name, *(cell for by_name in rates.values() for cell in _rate_cells(name, by_name[name])))
        for name in next(iter(rates.values()))
    )
    head = ("", *(f"{PACES[pace]}: {column}" for pace in rates for column in ("a second", "of direct", "CPU ms each")))
    notes = [
        "Plain answers, each client in a conversation of its own that grows with each request. Client, gateway and "
        "upstream share the cores of this machine, so that flat out even a hop that reads nothing costs a share. With "
        f"{THINKING} ms for each answer {clients} clients that go direct get at most {clients * 1000 // THINKING} a "
        "second.",
        *_refused(sums_by_pace),
        *_share_verdict(tokens, rates),
        *_workers_verdict(rates),
    ]
    shares = tuple(figures.share for figures in rates[THINKING].values())
    shown = Shown(f"{PACES[THINKING]}: share of direct", shares, tuple(map(_percent, shares)))
    title = f"{clients} clients at once, {tokens:,} tokens{', a new connection for each request' if fresh else ''}"
    return Table(title, head, rows, tuple(notes), sums_by_pace, shown)


def _rate_cells(name: str, rate: Rate) -> tuple[str, str, str]:
    return figure(rate.each_second), _percent(rate.share), figure(rate.cpu) if name != DIRECT.title else "–"


def _percent(share: float) -> str:
    return f"{figure(share * 100)} %"


def crowd_table(tokens: int, crowds: dict[str, dict[str, Any]]) -> Table:
    """Return the table of the memory of many conversations, computed from the measured ones."""
    estimates = {
        name: max(0.0, crowd["after"] - crowd["before"]) / crowd["conversations"] * MANY
        for name, crowd in crowds.items()
    }
    rows = tuple(
        (name, figure(megabytes), figure(crowds[name]["cpu"] / crowds[name]["conversations"] * 1e3))
        for name, megabytes in estimates.items()
    )
    shown = next(iter(crowds.values()))["conversations"]
    notes = [
        f"Memory by which the gateway grew while {shown} conversations came that it had never seen, times "
        f"{MANY // shown:,}; and the CPU time of each. As many came before, unmeasured."
    ]
    if (ours := estimates.get(EVERLONG.title)) is not None and tokens >= LARGE_CROWD:
        notes.append(f"Aim: less than {MOST_FOR_MANY} MB. everlong: {figure(ours)} MB, {_met(ours < MOST_FOR_MANY)}.")
    return Table(
        f"{MANY:,} conversations of {tokens:,} tokens",
        ("", "memory, MB", "CPU ms of a new one"),
        rows,
        tuple(notes),
        {name: {"megabytes": megabytes, **crowds[name]} for name, megabytes in estimates.items()},
    )


def footprint_table(footprints: dict[str, Footprint]) -> Table:
    """Return the table of what a gateway needs apart from requests: start, memory, disk."""
    rows = tuple(
        (
            name,
            figure(footprint.started_in),
            _known(footprint.resident_first),
            _known(footprint.resident),
            _known(footprint.installed),
        )
        for name, footprint in footprints.items()
    )
    notes = [
        "From the start of the process to its first answer; memory of all its processes then, and after everything "
        "above; MB of site-packages without pip and setuptools, for everlong with its source."
    ]
    if ours := footprints.get(EVERLONG.title):
        met = ours.started_in <= MOST_SECONDS and (ours.resident or 0.0) < MOST_MEGABYTES
        notes.append(
            f"Aim: the first answer within {MOST_SECONDS:g} s, less than {MOST_MEGABYTES} MB. everlong: "
            f"{figure(ours.started_in)} s, {_known(ours.resident)} MB, {_met(met)}."
        )
    data = {name: asdict(footprint) for name, footprint in footprints.items()}
    times = tuple(footprint.started_in for footprint in footprints.values())
    shown = Shown("first answer, s", times, tuple(f"{figure(time)} s" for time in times))
    return Table(
        "Start and memory",
        ("", "first answer, s", "memory then, MB", "after the run, MB", "installed, MB"),
        rows,
        tuple(notes),
        data,
        shown,
    )


def _own(direct: Figures, column: tuple[str, str]) -> str:
    times = direct[column[0]][column[1]]
    return f"{figure(median(times) * 1e3)} ({figure(ninetieth(times) * 1e3)})" if times else "–"


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '−'}{figure(abs(value))}"


def _cpu(times: dict[str, Any]) -> str:
    return figure(times["cpu"] / times["requests"] * 1e3) if times["requests"] else "–"


def _kilobytes(times: dict[str, Any]) -> float:
    sent, requests = int(times["sent"]), int(times["requests"])
    return sent / max(1, requests) / 1e3


def _known(megabytes: float | None) -> str:
    return "–" if megabytes is None else figure(megabytes)


def _met(met: bool) -> str:
    return "met" if met else "NOT met"


def _refused(figures: dict[str, Figures]) -> list[str]:
    """Return a line for each refusal, by gateway and kind of request, or by pace and gateway."""
    return [
        f"{outer}, {inner}: {times['refused']} refused: {times['said'][:200]}"
        for outer, groups in figures.items()
        for inner, times in groups.items()
        if times["refused"]
    ]


def _added_verdict(tokens: int, ours: Any) -> list[str]:
    if not ours or tokens not in MOST_ADDED:
        return []
    values = [ours[MAIN, how].median for how in TIMED if (MAIN, how) in ours]
    medians = ", ".join(f"{NAMES[how]} {figure(ours[MAIN, how].median)} ms" for how in TIMED if (MAIN, how) in ours)
    met = bool(values) and max(values) <= MOST_ADDED[tokens]
    return [f"Aim: at most {MOST_ADDED[tokens]:g} ms added in the median, growing. everlong: {medians}, {_met(met)}."]


def _share_verdict(tokens: int, rates: dict[int, dict[str, Rate]]) -> list[str]:
    if tokens not in LEAST_SHARE or EVERLONG.title not in rates[THINKING]:
        return []
    flat_out, share = rates[0][EVERLONG.title].share, rates[THINKING][EVERLONG.title].share
    return [
        f"Aim: at least {_percent(LEAST_SHARE[tokens])} of direct, {PACES[THINKING]}. everlong: {_percent(share)}, "
        f"{_met(share >= LEAST_SHARE[tokens])}; flat out {_percent(flat_out)}."
    ]


def _workers_verdict(rates: dict[int, dict[str, Rate]]) -> list[str]:
    """Say what a request costs with two workers compared with one, if not all CPU is used."""
    one, two = (rates[THINKING].get(party.title) for party in (EVERLONG_SQLITE, EVERLONG_WORKERS))
    if one is None or two is None or not one.cpu:
        return []
    ratio = two.cpu / one.cpu
    flat_out = [figure(rates[0][party.title].each_second) for party in (EVERLONG_WORKERS, EVERLONG_SQLITE)]
    return [
        f"Aim: with two workers a request costs at most {MOST_OF_ONE:g} × the CPU of one. everlong: {figure(ratio)} ×, "
        f"{_met(ratio <= MOST_OF_ONE)}; {figure(two.each_second)} a second beside {figure(one.each_second)}, flat out "
        f"{flat_out[0]} beside {flat_out[1]}."
    ]


def _postgres_note(timings: dict[str, Figures], differences: dict[str, Any]) -> list[str]:
    """Say what Postgres adds to SQLite for a growing conversation."""
    file, server = (differences.get(party.title) for party in (EVERLONG_SQLITE, EVERLONG_POSTGRES))
    if not file or not server or (MAIN, "plain") not in file or (MAIN, "plain") not in server:
        return []
    more = server[MAIN, "plain"].median - file[MAIN, "plain"].median
    cpu = [_cpu(timings[party.title][MAIN]) for party in (EVERLONG_POSTGRES, EVERLONG_SQLITE)]
    return [f"Postgres beside SQLite, growing: {_signed(more)} ms in the median; CPU {cpu[0]} ms beside {cpu[1]}."]
