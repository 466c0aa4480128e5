"""Circuit breakers: the health of each address as this process knows it, and when a failing one is tried again.

A circuit is closed while its address answers. After some failures in a row it opens: for a pause no request goes there
if there is another address. Then one request tries it (half-open): an answer closes the circuit, a failure opens it for
twice as long. Each process learns for itself and shares nothing; a disagreement costs one failed attempt.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from time import monotonic

from everlong.gateway.upstreams.routing import Upstream

__all__ = ["Circuit", "CircuitState", "Circuits"]

log = logging.getLogger("everlong.gateway")

FIRST_PAUSE = 1.0  # seconds; a server that only restarts is soon found again


class CircuitState(IntEnum):
    """The state of an address; the numbers are those of the metric."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2

    @property
    def word(self) -> str:
        """For people. Example: "half-open" """
        return self.name.lower().replace("_", "-")


@dataclass(slots=True)
class Circuit:
    """The health of one address."""

    upstream: str
    address: str
    state: CircuitState = CircuitState.CLOSED
    #: Failures since the last answer, and the reason of the last one.
    failures: int = 0
    reason: str = ""
    #: Whether not even a connection was possible.
    unreachable: bool = False
    #: When it may be tried again, by the clock of the process, and the length of the pause in seconds.
    until: float = 0.0
    pause: float = 0.0


class Circuits:
    """The circuits of all addresses. `failures` in a row open one; `longest` is the longest pause in seconds.

    `note` is called with every circuit whose state has changed. For the event loop only.
    """

    def __init__(
        self,
        ticks: Callable[[], float] = monotonic,
        *,
        failures: int = 5,
        longest: float = 30.0,
        note: Callable[[Circuit], None] = lambda _: None,
    ) -> None:
        self._ticks = ticks
        self._most = failures
        self._longest = longest
        self._note = note
        self._known: dict[tuple[str, str], Circuit] = {}

    def of(self, site: Upstream) -> Circuit:
        """Return the circuit of an address."""
        key = (site.name, site.endpoint.name)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Circuit(site.name, site.place)
        return found

    def admit(self, circuit: Circuit) -> bool:
        """Return whether a request may go there now. The request that tries an open circuit must report its outcome."""
        if not self.would_admit(circuit):
            return False
        if circuit.state is CircuitState.OPEN:
            self._change(circuit, CircuitState.HALF_OPEN)
        return True

    def would_admit(self, circuit: Circuit) -> bool:
        """Return whether a request might go there now."""
        if circuit.state is CircuitState.OPEN:
            return self.wait(circuit) <= 0
        return circuit.state is CircuitState.CLOSED

    def wait(self, circuit: Circuit) -> float:
        """Return the seconds until an open circuit is tried again."""
        return circuit.until - self._ticks()

    def answered(self, circuit: Circuit) -> None:
        """Record an answer: the address is healthy."""
        circuit.failures, circuit.pause, circuit.unreachable, circuit.reason = 0, 0.0, False, ""
        self._change(circuit, CircuitState.CLOSED)

    def failed(self, circuit: Circuit, reason: str, *, unreachable: bool = False) -> None:
        """Record a failure of the address. `unreachable` means that no connection was possible."""
        circuit.failures += 1
        circuit.reason, circuit.unreachable = reason, unreachable
        if circuit.state is CircuitState.HALF_OPEN or (
            circuit.state is CircuitState.CLOSED and circuit.failures >= self._most
        ):
            circuit.pause = min(circuit.pause * 2 or FIRST_PAUSE, self._longest)
            circuit.until = self._ticks() + circuit.pause
            self._change(circuit, CircuitState.OPEN)

    def left(self, circuit: Circuit) -> None:
        """Record a request without an outcome, because its client disconnected: the next one may try."""
        if circuit.state is CircuitState.HALF_OPEN:
            circuit.until = self._ticks()
            self._change(circuit, CircuitState.OPEN)

    def _change(self, circuit: Circuit, state: CircuitState) -> None:
        before, circuit.state = circuit.state, state
        if before is state:
            return
        self._note(circuit)
        if state is CircuitState.OPEN and before is CircuitState.CLOSED:
            log.warning(
                "the circuit of %s at %s is open for %.0f s after %d failures in a row: %s",
                circuit.upstream,
                circuit.address,
                circuit.pause,
                circuit.failures,
                circuit.reason,
            )
        elif state is CircuitState.CLOSED:
            log.warning("the circuit of %s at %s is closed: it answers again", circuit.upstream, circuit.address)
