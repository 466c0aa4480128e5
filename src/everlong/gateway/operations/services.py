"""Everything that a request needs and that outlives it: made once for a process, closed with it."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic

from everlong.core import JsonObject, JsonText, Message
from everlong.engine import Author, Engine, Observer, Prepared, Summaries, counter_for
from everlong.errors import InputError, Refused
from everlong.gateway.clients import Client, Clients
from everlong.gateway.config import GatewayConfig
from everlong.gateway.conversations.canonical import Restore
from everlong.gateway.conversations.conversations import Conversation, Conversations
from everlong.gateway.conversations.opaque import Find, opaque_parts, restored, restored_items
from everlong.gateway.conversations.persistence import Notes, StateStore
from everlong.gateway.conversations.threads import MemoryFirstThreads
from everlong.gateway.operations.limits import Limiter
from everlong.gateway.operations.metrics import Metrics
from everlong.gateway.operations.reports import Recent
from everlong.gateway.recall.tool import rendered
from everlong.gateway.upstreams.connections import UpstreamConnections
from everlong.gateway.upstreams.models import UpstreamModels
from everlong.gateway.upstreams.routing import Routes
from everlong.store import default_store, open_store
from everlong.windows import Registry

__all__ = ["Services", "services_for"]

OPAQUE = "opaque"
#: Models that refuse a call of theirs without the thoughts before it; others would only read them again.
WANTS_THOUGHTS = re.compile(r"deepseek|kimi|moonshot", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class Services:
    """The gateway's parts."""

    config: GatewayConfig
    routes: Routes
    clients: Clients
    limiter: Limiter
    forwarding: UpstreamConnections
    engine: Engine
    summaries: Summaries
    kept: StateStore
    conversations: Conversations
    models: UpstreamModels
    recent: Recent
    metrics: Metrics
    #: Told when the server is about to end, before it waits for what is under way.
    ending: list[Callable[[], None]] = field(default_factory=list)
    #: What upstreams sent beside calls and clients may drop, by the client's scope, the model and the call.
    opaque: Notes = field(default_factory=Notes)

    def finding(self, scope: str, model: str) -> Find:
        """Finds what was remembered for a client of that scope of a model's calls; another model could not read it."""

        def find(call: str) -> JsonText | None:
            place = (scope, f"{model}/{call}")
            if place not in self.opaque:
                self.opaque.keep(place, self.kept.note(OPAQUE, *place))
            return self.opaque.get(place)

        return find

    def keep_notes(self, scope: str, model: str, notes: Mapping[str, JsonText]) -> None:
        """Remember what the client did not see of a model's answer, or may drop of it."""
        for call, text in notes.items():
            place = (scope, f"{model}/{call}")
            self.opaque.keep(place, text)
            self.kept.keep_note(OPAQUE, *place, text)

    def restoring(self, fmt: str, scope: str, model: str) -> Restore:
        """Puts back what a client of that scope dropped from its messages."""

        find = self.finding(scope, model)

        def restore(values: list[JsonObject]) -> list[JsonObject]:
            if fmt == "openai-responses":
                return [value for value in restored_items([*values], find) if isinstance(value, dict)]
            return [restored(fmt, value, find) for value in values]

        return restore

    def keep_opaque(self, fmt: str, scope: str, model: str, message: Message) -> None:
        """Remember what an upstream sent beside its calls."""
        if not message.calls:
            return
        members = rendered(fmt, message)
        if fmt == "openai-chat" and not WANTS_THOUGHTS.search(model):
            members = [{name: value for name, value in one.items() if name != "reasoning_content"} for one in members]
        said = members if fmt == "openai-responses" else members[0]
        self.keep_notes(scope, model, opaque_parts(fmt, said))

    def set_mode(self, conversation: Conversation, mode: str) -> None:
        """The mode that the request asks for, on its thread."""
        settings = "{}" if mode == self.config.mode else json.dumps({"mode": mode})
        if conversation.settings != settings:
            self.engine.threads.change(conversation.thread, settings=settings)
            conversation.settings = settings

    def original_tokens(self, conversation: Conversation, prepared: Prepared) -> int:
        """What the client's own messages would have taken, as the provider reckons."""
        if not prepared.edits and not prepared.cuts:
            return prepared.tokens
        counter = counter_for(prepared.call.model)
        known = conversation.counted.get(prepared.call.model, (0, counter.messages(conversation.opening)))
        new = conversation.said[known[0] :]
        total = known[1] + sum(counter.message(message) for unit in new for message in unit)
        conversation.counted[prepared.call.model] = (len(conversation.said), total)
        return prepared.tokens + max(0, total - prepared.counted)

    async def close(self) -> None:
        """End what is under way in the background, write what is left, let go of everything."""
        with suppress(TimeoutError):  # what is not written by then is written anew when it is wanted
            async with asyncio.timeout(self.config.grace):
                await self.summaries.drain()
        for conversation in self.conversations.all():
            self.conversations.keep_marks(conversation)
        await self.models.close()
        await self.forwarding.close()
        self.kept.close()


def services_for(
    config: GatewayConfig,
    routes: Routes,
    environment: Mapping[str, str],
    *,
    registry: Registry | None = None,
    observers: tuple[Observer, ...] = (),
    ticks: Callable[[], float] = monotonic,
) -> Services:
    """The parts for a configuration. The store is opened here; a bad one is told before anyone listens."""
    url = config.store or default_store(environment, sys.platform)
    near = not url.lower().startswith("postgres")
    kept = StateStore(open_store(url), keep=config.keep, retention=timedelta(days=config.retention_days), near=near)
    metrics = Metrics()
    threads = MemoryFirstThreads(kept, ticks)
    engine = Engine(threads, settings=config.settings(), registry=registry, observers=(metrics.observe, *observers))
    models = UpstreamModels()
    return Services(
        config=config,
        routes=routes,
        clients=Clients(config.keys, pass_through=not config.keys),
        limiter=Limiter(ticks),
        forwarding=UpstreamConnections(connect=config.connect_timeout, silence=config.silence_timeout),
        engine=engine,
        summaries=Summaries(engine, _authors(config, routes, models), own_model=not config.summary_model),
        kept=kept,
        conversations=Conversations(engine, kept, room=int(config.memory), began=metrics.began),
        models=models,
        recent=Recent(kept),
        metrics=metrics,
    )


def _authors(config: GatewayConfig, routes: Routes, models: UpstreamModels) -> list[Author]:
    """Who writes summaries where a model is named for it: an upstream of ours, with its own key."""
    if not config.summary_model:
        return []
    for fmt in ("openai-chat", "anthropic", "openai-responses"):
        try:
            upstream = routes.choose(config.summary_model, fmt)
        except Refused:
            continue
        model = models.of(upstream, Client(scope=""), fmt)
        return [Author(model=model, name=routes.model_sent(upstream, config.summary_model))]
    raise InputError(f"no upstream answers for the summary model {config.summary_model!r}")
