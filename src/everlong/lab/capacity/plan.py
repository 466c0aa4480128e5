"""The plan: what a rate of requests needs, computed from the cost of a request, the sizes and the arrivals.

Each demand on the database is compared with the limit of one database; the largest ratio is the first bottleneck, and
says into how many partitions the owners must be split.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from everlong.lab.capacity.arrivals import DAY, Arrivals
from everlong.lab.capacity.costs import Costs
from everlong.lab.capacity.lengths import Lengths
from everlong.lab.capacity.queues import servers_for

__all__ = ["CapacityPlan", "Demand", "Machine", "plan_for", "service_of"]

STEPS = 200  # sizes that represent a distribution
RENEWAL = 0.4  # of the movable part must be new before the next compaction: law 6
THRESHOLD = 0.8  # of the window
GIGABYTE = 1e9
OF_REPLICAS = frozenset({"replica", "memory"})  # demands that more replicas can meet


@dataclass(frozen=True, slots=True)
class Machine:
    """A replica: its workers (one per core), the share of time that they may be busy, and connections per worker."""

    workers: int = 4
    utilisation: float = 0.6
    connections: int = 10
    memory_gigabytes: float = 8.0
    #: Seconds of one job; a worker does one job at a time, and most of the time it waits for a model.
    job_seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Service:
    """What a request needs on average, in a mix of conversations."""

    #: CPU seconds per request: for the request itself, compactions, summaries.
    request: float
    compaction: float
    summary: float
    #: Compactions per request; each brings a summary job.
    compactions: float
    #: New conversations per request; bytes of a body.
    begun: float
    body: float
    #: New tokens per request; the share of requests in conversations that have passed their threshold.
    growth: float
    over: float

    @property
    def total(self) -> float:
        """CPU seconds of a request with everything that it causes."""
        return self.request + self.compaction + self.summary


@dataclass(frozen=True, slots=True)
class Demand:
    """A demand, and the limit of one unit. A `used` above 1 is too much."""

    name: str
    needed: float
    limit: float

    @property
    def used(self) -> float:
        """The share of the limit that is needed."""
        return self.needed / self.limit


#: The limits of one database or one queue. Conservative figures for a machine with 16 cores and good disks.
LIMITS: Mapping[str, float] = {
    "commits": 40_000.0,  # short transactions per second, most of which only read
    "log": 150e6,  # bytes per second into the write-ahead log
    "connections": 5_000.0,  # through a pooler; 500 without
    "notices": 5_000.0,  # NOTIFY per second: each locks the whole database when it commits
    "jobs": 220.0,  # per second, done by three workers (procrastinate, measured)
    "size": 4e12,  # bytes that can be restored within hours
}
#: The same for SQLite: one writer, one machine.
SQLITE_LIMITS: Mapping[str, float] = {**LIMITS, "commits": 4_000.0, "log": 60e6, "size": 2e11}


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """What a rate needs: replicas with their workers, and the database."""

    arrivals: Arrivals
    service: Service
    machine: Machine
    workers: int
    replicas: int
    memory_bytes: float
    database_bytes: float
    demands: tuple[Demand, ...]
    #: Replicas that are enough at night, if the others are removed.
    replicas_at_night: int

    @property
    def cores(self) -> float:
        """Cores that are busy in a burst."""
        return self.arrivals.peak * self.service.total

    @property
    def first(self) -> Demand:
        """The first bottleneck on one machine as the rate grows."""
        return max(self.demands, key=lambda demand: demand.used)

    @property
    def first_shared(self) -> Demand:
        """The first bottleneck if there are enough replicas: something in the database that they share."""
        return max((demand for demand in self.demands if demand.name not in OF_REPLICAS), key=lambda one: one.used)

    @property
    def partitions(self) -> int:
        """The number of databases over which the owners must be spread, by the hash of their name."""
        return max(1, math.ceil(self.first_shared.used))


def service_of(costs: Costs, lengths: Lengths, window: int) -> Service:
    """Return what a request of these conversations needs on average; each size represents its share."""
    sizes = [lengths.size_at((step + 0.5) / STEPS) for step in range(STEPS)]
    begun = 1 / lengths.mean_requests
    request = sum(
        (1 - begun) * costs.at(costs.growing, size) + begun * costs.at(costs.new, size) for size in sizes
    ) / len(sizes)
    threshold = THRESHOLD * window
    over = sum(size > threshold for size in sizes) / len(sizes)
    compactions = min(1.0, over * lengths.mean_growth / (RENEWAL * threshold))
    return Service(
        request=request / 1e3,
        compaction=compactions * costs.at(costs.compaction, threshold) / 1e3,
        summary=compactions * costs.at(costs.summary, threshold) / 1e3,
        compactions=compactions,
        begun=begun,
        body=sum(costs.at(costs.body, size) for size in sizes) / len(sizes),
        growth=lengths.mean_growth,
        over=over,
    )


def plan_for(
    arrivals: Arrivals, costs: Costs, lengths: Lengths, *, window: int, retention_days: float, machine: Machine
) -> CapacityPlan:
    """Return what the rate needs. More load never needs less, and twice the cost is twice the CPU."""
    service = service_of(costs, lengths, window)
    by_cpu, held, replicas = _replicas(arrivals, service, costs, machine)
    workers = replicas * machine.workers if replicas > 1 else by_cpu
    per_token = service.over * costs.bytes_per_compacted_token + (1 - service.over) * costs.bytes_per_token
    kept = arrivals.mean * DAY * retention_days * service.growth * per_token
    limits = SQLITE_LIMITS if costs.store == "sqlite" else LIMITS
    demands = (
        Demand("replica", by_cpu, float(machine.workers)),
        Demand("memory", held + workers * costs.idle_megabytes * 1e6, machine.memory_gigabytes * GIGABYTE),
        Demand("commits", arrivals.peak * costs.commits, limits["commits"]),
        Demand("log", arrivals.peak * (costs.log_bytes + service.growth * per_token), limits["log"]),
        Demand("connections", float(workers * machine.connections), limits["connections"]),
        Demand("notices", arrivals.peak * service.compactions, limits["notices"]),
        Demand("jobs", arrivals.peak * service.compactions, limits["jobs"]),
        Demand("size", kept, limits["size"]),
    )
    memory = held + workers * costs.idle_megabytes * 1e6
    at_night = _replicas(arrivals.quiet, service, costs, machine)[2]
    return CapacityPlan(arrivals, service, machine, workers, replicas, memory, kept, demands, at_night)


def _replicas(arrivals: Arrivals, service: Service, costs: Costs, machine: Machine) -> tuple[int, float, int]:
    """Return the workers for the CPU, the bytes held for requests and conversations, and the replicas for both."""
    by_cpu = servers_for(arrivals.peak * service.total, machine.utilisation)
    held = arrivals.in_flight * service.body + arrivals.active * costs.conversation_kilobytes * 1e3
    room = machine.memory_gigabytes * GIGABYTE - machine.workers * costs.idle_megabytes * 1e6
    by_memory = math.ceil(held / max(room, 1.0))
    return by_cpu, held, max(1, math.ceil(by_cpu / machine.workers), by_memory)
