"""Conversations packed into jobs, so that any process can write their summary.

With `keep = "edits"` the messages exist only in the client's requests, so the job carries them, compressed, until it is
done. Keys are never carried: a process uses the key that the operator gave it. If an upstream is called with the
client's own key, or nothing may be stored, the summary stays in the process that had the request.
"""

import asyncio
import json
import zlib
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlsplit

from everlong.core import History, Message, Point
from everlong.engine import Call, Carried, Model, Prepared, Taken
from everlong.errors import StoreError
from everlong.gateway.conversations.canonical import Unit
from everlong.gateway.conversations.conversation import Conversation, Transcript
from everlong.gateway.conversations.conversations import Conversations
from everlong.gateway.conversations.state_store import StateStore
from everlong.gateway.upstreams.connections import UpstreamModels
from everlong.gateway.upstreams.routing import Routes, Upstream
from everlong.jobs import NotHere
from everlong.llm import Endpoint, Way
from everlong.store import decode_entry, encode_entry, kind_of

__all__ = ["ConversationCarrier"]

QUICKEST = 1  # zlib's fastest level
#: The fields of a call that a job carries; the gateway never sets the others.
OF_CALLS = (
    "model",
    "fmt",
    "endpoint",
    "provider",
    "served",
    "asked",
    "max_tokens",
    "thinking",
    "temperature",
    "extra",
    "recall_tool",
    "breakpoints",
)


class ConversationCarrier:
    """Packs conversations for jobs and opens them again, here or in another process.

    With `own_author`, summaries have a separate author, so that no client's key is needed.
    """

    def __init__(
        self,
        conversations: Conversations,
        state_store: StateStore,
        routes: Routes,
        models: UpstreamModels,
        *,
        own_author: bool,
    ) -> None:
        self._conversations = conversations
        self._state_store = state_store
        self._routes = routes
        self._models = models
        self._own_author = own_author

    def pack(self, prepared: Prepared, model: Model) -> Carried | None:
        """Return the conversation of a request packed for a job; None if it must not leave this process."""
        conversation, at = self._conversations.held(prepared.thread), self._models.endpoint_of(model)
        if self._state_store.keep == "nothing" or conversation is None or at is None:
            return None
        site = next((one for one in _sites(self._routes) if _is_at(one, at.url) and one.endpoint.key == at.key), None)
        if site is None and self._own_author:
            site = next((one for one in _sites(self._routes) if _is_at(one, at.url)), None)
        if site is None:  # called with the client's own key
            return None
        with conversation.lock:
            data = {
                "scope": conversation.scope,
                "root": conversation.root,
                "head": conversation.head.hex(),
                "opening": _written(conversation.opening),
                "digests": [digest.hex() for digest in conversation.digests],
                "messages": [_written(said) for said in conversation.messages],
                "settings": conversation.settings,
                "covered": self._covered(conversation),
                "newest": conversation.newest,
            }
        data["call"] = {name: getattr(prepared.call, name) for name in OF_CALLS}
        data["tools"] = prepared.call.schemas
        data["upstream"] = [site.name, site.number]
        data["at"] = {"url": at.url, "fmt": at.fmt, "way": None if at.way is None else _way_data(at.way)}
        data["keyed"] = bool(at.key)
        key = "/".join((conversation.scope, *conversation.identity))
        return Carried(key, zlib.compress(json.dumps(data).encode(), QUICKEST))

    @asynccontextmanager
    async def open(self, key: str, load: bytes) -> AsyncIterator[Taken | None]:  # noqa: ARG002 - the load says it all
        """Open a conversation as a request would, with the marks that are in the store now."""
        data = await asyncio.to_thread(lambda: json.loads(zlib.decompress(load)))
        model = self._models.at(self._endpoint(data))
        conversation = await asyncio.to_thread(self._entered, data)
        self._conversations.leave(conversation)  # requests may continue it meanwhile, as during every summary
        try:
            if self._covered(conversation) > data["covered"]:
                yield None
            else:
                yield Taken(conversation.thread, Call(**data["call"], tools=data["tools"]), model)
        finally:
            await asyncio.to_thread(self._keep, conversation)

    def _entered(self, data: dict[str, Any]) -> Conversation:
        conversation = self._conversations.enter(data["scope"], _transcript(data))
        if conversation.settings != data["settings"]:
            self._conversations.set_up(conversation, data["settings"])
        return conversation

    def _keep(self, conversation: Conversation) -> None:
        """Store what was added. The job is done only when other processes can see it."""
        self._conversations.commit(conversation)
        if conversation.pending:
            raise StoreError("the store did not accept the summary")

    def _endpoint(self, data: dict[str, Any]) -> Endpoint:
        """Return the endpoint of the conversation's model. Raises NotHere if this process cannot call it."""
        (name, number), at = data["upstream"], data["at"]
        site = next((one for one in _sites(self._routes) if (one.name, one.number) == (name, number)), None)
        if site is None or not _is_at(site, at["url"]):
            raise NotHere(f"there is no upstream {name!r} at that address here")
        if data["keyed"] and not site.endpoint.key and not self._own_author:
            raise NotHere(f"the upstream {name!r} has no key here")
        way = None if at["way"] is None else _way(at["way"])
        return replace(site.endpoint, url=at["url"], fmt=at["fmt"], way=way)

    def _covered(self, conversation: Conversation) -> int:
        """Return how many units the newest compaction of a conversation covers."""
        points = self._conversations.points(conversation)
        standing = (row.entry for row, stands in reversed(points) if stands and isinstance(row.entry, Point))
        newest = next(standing, None)
        return 0 if newest is None else bisect_left(conversation.starts, newest.boundary)


def _transcript(data: dict[str, Any]) -> Transcript:
    said = [_read(lines) for lines in data["messages"]]
    digests = tuple(bytes.fromhex(digest) for digest in data["digests"])
    units = tuple(
        Unit(digest, messages, plain := json.dumps(lines).encode(), plain)
        for digest, messages, lines in zip(digests, said, data["messages"], strict=True)
    )
    head = _read(data["opening"])
    size = sum(len(line) for _, line in data["opening"])
    asked_after = data.get("newest", "")  # earlier versions did not carry it
    return Transcript(
        head, bytes.fromhex(data["head"]), (), units, digests, data["root"], size, asked_after=asked_after
    )


def _written(messages: History) -> list[tuple[int, str]]:
    return [(int(kind_of(message)), encode_entry(message)) for message in messages]


def _read(lines: Iterable[tuple[int, str]]) -> History:
    entries = (decode_entry(kind, line) for kind, line in lines)
    return tuple(entry for entry in entries if isinstance(entry, Message))


def _sites(routes: Routes) -> Iterable[Upstream]:
    for upstream in routes.upstreams:
        yield from upstream.sites or (upstream,)


def _is_at(site: Upstream, url: str) -> bool:
    """Return whether an address belongs to an upstream; its key is sent nowhere else."""
    places = (site.endpoint.url, *site.addresses.values())
    return urlsplit(url)[:2] in {urlsplit(place)[:2] for place in places}


def _way_data(way: Way) -> dict[str, Any]:
    return asdict(way) | {"without": sorted(way.without)}


def _way(data: dict[str, Any]) -> Way:
    fields = tuple((name, value) for name, value in data["fields"])
    return Way(**data | {"fields": fields, "without": frozenset(data["without"])})
