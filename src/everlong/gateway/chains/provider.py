"""Read what a provider stores: for a conversation that began elsewhere, or continued outside of the gateway.

This happens only if a request is refused as too long and its past was not seen here. Requests, bytes and items are
bounded.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from everlong.core import Json, JsonObject
from everlong.errors import EverlongError
from everlong.gateway.clients import Client
from everlong.gateway.request import MOST_MESSAGES, Piece, decoded
from everlong.gateway.upstreams.connections import UpstreamConnections, UpstreamRequest
from everlong.gateway.upstreams.headers import Headers
from everlong.gateway.upstreams.routing import USUAL_BASE, Upstream
from everlong.wire import Held

__all__ = ["Provider"]

log = logging.getLogger("everlong.gateway")

MOST_ASKED = 1_000  # requests to read one past
LARGEST_PAGE = 16 * 1024 * 1024  # bytes of one answer
LARGEST_PAST = 64 * 1024 * 1024  # bytes of all of them
PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,256}")  # names that may become part of a path
PAGE = "order=asc&limit=100"
MOST_ADDED = 20  # items that one request may add to a conversation


@dataclass(slots=True)
class Provider:
    """Reads what the upstream of one request stores, with the client's own key if the gateway has none."""

    forwarding: UpstreamConnections
    upstream: Upstream
    client: Client
    headers: Headers
    held: Held
    #: The base of the client's own request, and its query.
    base: str = USUAL_BASE
    query: str = ""
    _asked: int = 0
    _bytes: int = 0
    _seen: set[str] = field(default_factory=set)

    async def past_of_answer(self, name: str) -> list[JsonObject] | None:
        """Return everything up to an answer; None if the provider does not show all of it."""
        parts: list[list[Json]] = []
        later: set[str] = set()
        while name:
            if not PLAIN_NAME.fullmatch(name):
                return None
            answer = await self._get(self._path(self.held.answers, name))
            if answer is None or name in self._seen:
                return None
            self._seen.add(name)
            output = _list(answer.get(self.held.output))
            if later & _ids(output):  # the input of the later answer already contains all of this
                break
            inputs = await self._listed(self._path(self.held.answers, name) + self.held.inputs)
            if inputs is None:
                return None
            later = _ids(inputs)
            parts.append([*inputs, *output])
            previous = answer.get(self.held.previous)
            name = previous if isinstance(previous, str) else ""
        return self.held.resent([item for part in reversed(parts) for item in part])

    async def items_of_conversation(self, name: str) -> list[JsonObject] | None:
        """Return everything in a conversation; None if the provider does not show all of it."""
        path = self._path(self.held.conversations, name) + self.held.items
        items = await self._listed(path) if PLAIN_NAME.fullmatch(name) else None
        return None if items is None else self.held.resent(items)

    async def add(self, conversation: str, items: Sequence[Piece]) -> None:
        """Add items that were sent outside a stored conversation to it. A failure is logged."""
        path = self._path(self.held.conversations, conversation) + self.held.items
        for start in range(0, len(items), MOST_ADDED):
            body = b'{"items":[' + b",".join(bytes(item) for item in items[start : start + MOST_ADDED]) + b"]}"
            try:
                answer = await self.forwarding.send(self.upstream, self.client, self._request("POST", path, "", body))
                await answer.whole(LARGEST_PAGE)
            except EverlongError as error:
                log.warning("a stored conversation at %s could not be completed: %s", self.upstream.name, error)
                return
            if answer.status >= 400:
                log.warning(
                    "a stored conversation at %s could not be completed: status %d",
                    self.upstream.name,
                    answer.status,
                )
                return

    @staticmethod
    def _path(start: str, name: str) -> str:
        return f"{start}/{quote(name, safe='')}"

    def _request(self, method: str, path: str, query: str, body: bytes = b"") -> UpstreamRequest:
        return UpstreamRequest(method, path, "&".join(filter(None, (self.query, query))), self.headers, body, self.base)

    async def _listed(self, path: str) -> list[Json] | None:
        items: list[Json] = []
        query = PAGE
        while True:
            page = await self._get(path, query)
            data = None if page is None else page.get("data")
            if page is None or not isinstance(data, list) or len(items) + len(data) > MOST_MESSAGES:
                return None
            items += data
            last = page.get("last_id")
            if page.get("has_more") is not True:
                return items
            if not data or not isinstance(last, str):
                return None
            query = f"{PAGE}&after={quote(last, safe='')}"

    async def _get(self, path: str, query: str = "") -> JsonObject | None:
        self._asked += 1
        if self._asked > MOST_ASKED or self._bytes > LARGEST_PAST:
            return None
        try:
            answer = await self.forwarding.send(self.upstream, self.client, self._request("GET", path, query))
            body = await answer.whole(LARGEST_PAGE)
            self._bytes += len(body)
            value = decoded(body) if answer.status == 200 else None
        except EverlongError:
            return None
        return value if isinstance(value, dict) else None


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _ids(items: Sequence[Json]) -> set[str]:
    return {name for item in items if isinstance(item, dict) and isinstance(name := item.get("id"), str)}
