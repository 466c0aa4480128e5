"""Which of several addresses of an upstream a request goes to, and where it goes when that one fails.

All addresses of an upstream are the same provider and have the same models: the operator says so, and nothing else is
ever tried. A conversation stays with one address, because the provider's prompt cache is there: with the first in order
or, with weights, with the one that a hash of its beginning picks, so that every replica picks the same one. It moves
only while that address is failing, and only before the first byte of an answer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from everlong.core import Json
from everlong.errors import ProviderError
from everlong.gateway.request import ModelRequest, decoded
from everlong.gateway.upstreams.circuits import Circuit, Circuits, CircuitState
from everlong.gateway.upstreams.routing import Upstream

__all__ = ["FAILING", "LONG_WAIT", "NoAnswer", "Tries", "conversation_key", "in_preference"]

#: Statuses after which another address is asked. 529 is Anthropic's status for an overloaded server.
FAILING = frozenset({500, 502, 503, 504, 529})
TOO_MANY = 429
#: If an address with a rate limit asks to wait longer than this many seconds, another is asked. Moving costs the prompt
#: cache, and a client that waits a moment keeps it.
LONG_WAIT = 10.0
SYSTEM = frozenset({"system", "developer"})
TEXTS = frozenset({"text", "content", "parts"})
UNIT = 2.0**64


class NoAnswer(ProviderError):
    """An upstream gave no answer. `reached` says whether a connection was possible.

    `elsewhere` says whether another address may be asked: not after a silence, in which the model may have worked,
    because that is charged.
    """

    def __init__(self, message: str, *, status: int, reached: bool, elsewhere: bool) -> None:
        super().__init__(message, status=status)
        self.reached, self.elsewhere = reached, elsewhere


def conversation_key(request: ModelRequest, scope: str, name: str = "") -> str:
    """Return what stays the same in all requests of a conversation: its name, or the texts of its first message.

    The form of the message, cache marks and the system text may change between requests, so they are not part of it.
    """
    if name:
        return f"{scope}/{name}"
    for raw in request.messages:
        message = decoded(raw)
        if isinstance(message, dict) and message.get("role") not in SYSTEM:
            texts = _texts_of(message)
            return f"{scope}/{sha256(chr(0).join(texts).encode('utf-8', 'surrogatepass')).hexdigest()}"
    return scope


def _texts_of(value: Json) -> list[str]:
    """All texts of a message, however it is written."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for member in value for text in _texts_of(member)]
    if isinstance(value, dict):
        return [text for name in TEXTS if name in value for text in _texts_of(value[name])]
    return []


def in_preference(upstream: Upstream, key: str) -> list[Upstream]:
    """Return the addresses of an upstream, the best for a conversation first: in order, or by weight.

    With weights, each address gets a number from a hash of the conversation's key and its own address, and the highest
    comes first (rendezvous hashing): if an address is removed, only its own conversations move.
    """
    sites = list(upstream.sites or (upstream,))
    if not key or not upstream.weight:
        return sites
    return sorted(sites, key=lambda site: _drawn(site, key), reverse=True)


def _drawn(site: Upstream, key: str) -> float:
    digest = sha256(f"{site.endpoint.name}\0{key}".encode("utf-8", "surrogatepass")).digest()
    share = (int.from_bytes(digest[:8], "big") + 0.5) / UNIT
    return -site.weight / math.log(share)


@dataclass(slots=True)
class Tries:
    """The addresses that one request tries. `site` is the current or the last one.

    An exchange that sends several requests stays with the address that answered the first.
    """

    circuits: Circuits
    left: list[Upstream]
    site: Upstream
    #: Whether the upstream has more than one address.
    several: bool = False
    #: How many addresses were asked.
    tried: int = 0
    _circuit: Circuit | None = None
    #: Addresses that answered with an error. If another address answers, they are at fault; else the request may be.
    _suspects: list[tuple[Circuit, str]] = field(default_factory=list)

    @classmethod
    def among(cls, circuits: Circuits, sites: Sequence[Upstream]) -> "Tries":
        """Return the attempts at these addresses, the best first, starting at the first healthy one."""
        well = [site for site in sites if circuits.of(site).state is CircuitState.CLOSED]
        return cls(circuits, list(sites), (well or sites)[0], several=len(sites) > 1)

    def stay(self) -> None:
        """Do not try another address."""
        self.left = [site for site in self.left if site is self.site]

    def prefer(self, held_as: str) -> None:
        """Start with the address that stores an earlier answer, if it is among these and may be asked."""
        found = next((site for site in self.left if site.held_as == held_as), None)
        if found is not None and self.circuits.of(found).state is not CircuitState.OPEN:
            self.left.remove(found)
            self.left.insert(0, found)
            self.site = found

    def begin(self) -> bool:
        """Go to the next address; return whether it differs from the previous one.

        Raises ProviderError, without a request, if it is known that no address can be reached.
        """
        if self._circuit is not None:  # this address has answered before
            return False
        circuits = [(site, self.circuits.of(site)) for site in self.left]
        found = next(((site, each) for site, each in circuits if self.circuits.admit(each)), None)
        # An open circuit that answered, however badly, is better than none; an unreachable one is not.
        found = found or next(((site, each) for site, each in circuits if not each.unreachable), None)
        if found is None:
            wait = max(1, math.ceil(min(self.circuits.wait(each) for _, each in circuits)))
            raise ProviderError(
                f"{self.site.name} cannot be reached: {circuits[0][1].reason}; it is tried again in {wait} s",
                status=503,
                after=wait,
            )
        before, (self.site, self._circuit) = self.site, found
        self.left.remove(self.site)
        self.tried += 1
        return self.site is not before

    def answered(self, status: int, wait: float | None) -> bool:
        """Record an answer; return whether to give it to the client: False if another address should be asked."""
        circuit = self._now
        if status in FAILING:
            self._suspects.append((circuit, f"status {status}"))
            return not self._go_on()
        self.circuits.answered(circuit)
        for suspect, reason in self._suspects:
            self.circuits.failed(suspect, reason)
        self._suspects.clear()
        if status != TOO_MANY or wait is None or wait <= LONG_WAIT:
            return True
        # Addresses with the same key have the same limit.
        self.left = [site for site in self.left if site.endpoint.key != self.site.endpoint.key]
        return not self._go_on()

    def failed(self, error: NoAnswer) -> bool:
        """Record that there was no answer; return whether another address is asked."""
        self.circuits.failed(self._now, str(error), unreachable=not error.reached)
        return error.elsewhere and self._go_on()

    def abandon(self) -> None:
        """Record that there is no outcome, because the client disconnected or the request could not be written."""
        if self._circuit is not None:
            self.circuits.left(self._circuit)

    @property
    def _now(self) -> Circuit:
        assert self._circuit is not None
        return self._circuit

    def _go_on(self) -> bool:
        """Leave this address if another one may be asked; return whether there is one."""
        if any(self.circuits.would_admit(self.circuits.of(site)) for site in self.left):
            self._circuit = None
            return True
        # No address answered, so the request may be at fault: count it only against half-open circuits.
        for suspect, reason in self._suspects:
            if suspect.state is CircuitState.HALF_OPEN:
                self.circuits.failed(suspect, reason)
        self._suspects.clear()
        return False
