"""The formulas of a queue with many servers: Erlang's for arrivals at random and service times of one kind (M/M/c)."""

import math

__all__ = ["delay_probability", "mean_wait", "servers_for", "wait_quantile"]


def delay_probability(load: float, servers: int) -> float:
    """Return the share of requests that wait (Erlang C); `load` is arrivals per second times seconds of service.

    A queue whose load is at least the number of servers grows forever: 1. Example: (0.5, 1) -> 0.5
    """
    if load >= servers:
        return 1.0
    blocked = 1.0  # Erlang B by recursion: without factorials, so it works for thousands of servers
    for busy in range(1, servers + 1):
        blocked = load * blocked / (busy + load * blocked)
    return blocked / (1 - load / servers * (1 - blocked))


def mean_wait(load: float, servers: int, service: float) -> float:
    """Return the mean seconds that a request waits; infinite if the queue grows forever."""
    if load >= servers:
        return math.inf
    return delay_probability(load, servers) * service / (servers - load)


def wait_quantile(load: float, servers: int, service: float, share: float) -> float:
    """Return the seconds that this share of the requests waits at most. Example: share 0.99 -> the 99th percentile"""
    if load >= servers:
        return math.inf
    waiting = delay_probability(load, servers)
    if 1 - share >= waiting:
        return 0.0
    return math.log(waiting / (1 - share)) * service / (servers - load)


def servers_for(load: float, utilisation: float) -> int:
    """Return the smallest number of servers, at least one, that are busy for at most this share of the time."""
    return max(1, math.ceil(load / utilisation - 1e-9))
