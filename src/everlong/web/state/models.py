"""The models that can be chosen, named SOURCE/NAME, with their windows and the clients that reach them.

Asks the sources for their lists; models that are not for conversation, such as embeddings, are left out.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic

import aiohttp

from everlong.core import Json, JsonObject
from everlong.engine import Call, Model, Threads, learned_window
from everlong.errors import InputError, Refused
from everlong.llm import PACKED, USUAL_MODELS, Endpoint, HttpModel, read_whole
from everlong.web.state.reach import Reach
from everlong.web.state.settings import FACTS, AppSettings
from everlong.web.state.sources import Source, Sources
from everlong.windows import Registry, Window, row_window, window
from everlong.wire import format_named

__all__ = ["ChosenModel", "ListedModel", "Models", "list_models"]

FRESH = 600.0  # seconds that a list of models is used
RETRY = 30.0  # seconds until a source without a list is asked again
PATIENCE = 5.0  # seconds that a page waits for lists
MOST_WINDOWS = 20  # models of a server whose windows are asked for
LAST_MODEL = "model"  # the fact with the model chosen last
#: A fast and cheap model of each provider, for titles and summaries.
FAST_MODELS: Mapping[str, str] = {
    "anthropic": "claude-haiku-4-5",
    "openai": "gpt-4o-mini",
    "google": "gemini-2.5-flash-lite",
    "openrouter": "openai/gpt-4o-mini",
    "alibaba": "qwen-turbo",
    "zhipuai": "glm-4.5-flash",
    "groq": "llama-3.1-8b-instant",
    "mistral": "mistral-small-latest",
}
LIST_SECONDS = 8.0
LARGEST_LIST = 8 * 1024 * 1024  # bytes
MOST_LISTED = 2_000
LONGEST_LINE = 200  # characters of a name, and of an error
NOT_FOR_CONVERSATION = re.compile(
    r"embed|whisper|\btts|dall-e|moderation|-image|audio|realtime|transcribe|rerank|\bsora|babbage|davinci|\bveo|imagen"
)
NO_LIST = "no list of models came from that address; check it, and the key"
REASONS = {401: "it rejects the key", 403: "it rejects the key", 404: "it has no list of models there"}


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model in the list of a source; `window` if the list says it."""

    name: str
    window: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenModel:
    """A model of a source, with the client that reaches it."""

    id: str
    name: str
    source: Source
    client: HttpModel


class Models:
    """All models of all sources. Belongs to one event loop."""

    def __init__(self, sources: Sources, threads: Threads, registry: Registry | None) -> None:
        self.sources = sources
        self._threads = threads
        self._registry = registry
        self._clients: dict[str, tuple[Endpoint, HttpModel]] = {}
        self._listed: dict[str, tuple[float, tuple[ListedModel, ...]]] = {}
        self._refreshing: dict[str, asyncio.Task[None]] = {}
        self._served: dict[str, int | None] = {}

    async def close(self) -> None:
        """Close all connections."""
        for task in self._refreshing.values():
            task.cancel()
        clients, self._clients = self._clients, {}
        for _, client in clients.values():
            await client.close()

    def chosen(self, model: str) -> ChosenModel:
        """Return the model SOURCE/NAME. Raises Refused if there is no such source."""
        source_name, _, name = model.partition("/")
        source = self.sources.named(source_name)
        if source is None or not name:
            reason = f"the model {model[:120]!r} is not available; choose another" if model else "no model is chosen"
            raise Refused(reason, status=409, kind="no_model")
        known = self._clients.get(source.name)
        if known is None or known[0] != source.endpoint:
            known = self._clients[source.name] = (source.endpoint, self._client(source))
        return ChosenModel(id=model, name=name, source=source, client=known[1])

    def _client(self, source: Source) -> HttpModel:
        """Return the client of a source. Raises Refused for an added one that may not be used, or no longer."""
        reach = self.sources.reach_of(source)
        if reach is None:
            return HttpModel(source.endpoint)
        if not reach.allows_url(source.endpoint.url):
            raise Refused(f"the source {source.name!r} may not be used from here", status=409, kind="no_model")
        return HttpModel(source.endpoint, resolver=reach.resolver())

    def default(self) -> str:
        """Return the model for a new thread: the one chosen last, else the usual one of the first source, else ""."""
        last = self._threads.fact(FACTS, LAST_MODEL)
        if last is not None and self.sources.named(last.strip('"').partition("/")[0]) is not None:
            return last.strip('"')
        for source in self.sources.all:
            usual = USUAL_MODELS.get(source.endpoint.provider)
            names = self._names(source)
            first = usual if usual and (usual in names or not names) else next(iter(names), None)
            if first is not None:
                return f"{source.name}/{first}"
        return ""

    def remember(self, model: str) -> None:
        """Make a model the default of new threads."""
        self._threads.keep_fact(FACTS, LAST_MODEL, f'"{model}"')

    def beside(self, client: Model, name: str) -> tuple[str, ...]:
        """Return who writes summaries and titles for a model: the fast one of its own source, then itself.

        A conversation reaches no other source by itself. A slow model on this machine does nothing but answer.
        """
        reached = (source for source, (_, known) in self._clients.items() if known is client)
        source = self.sources.named(next(reached, ""))
        if source is None:
            return (name,)
        if source.local:
            return ()
        usual = FAST_MODELS.get(source.endpoint.provider, "")
        fast = source.fast_model or (usual if usual in self._names(source) else "")
        return (fast, name) if fast else (name,)

    def forget(self, source: str) -> None:
        """Drop what is known of a source."""
        self._listed.pop(source, None)
        self._served = {model: tokens for model, tokens in self._served.items() if not model.startswith(f"{source}/")}

    def learn(self, source: str, listed: tuple[ListedModel, ...]) -> None:
        """Accept a fresh list of the models of a source."""
        self._listed[source] = (monotonic(), listed)

    def count(self, source: Source) -> int:
        """Return how many models of a source are known."""
        return len(self._names(source))

    async def refresh(self) -> None:
        """Ask all sources with an old list at once, and wait a little; slow ones answer later."""
        for source in self.sources.all:
            time, listed = self._listed.get(source.name, (float("-inf"), ()))
            age = monotonic() - time
            if age > (FRESH if listed or source.models else RETRY) and source.name not in self._refreshing:
                task = self._refreshing[source.name] = asyncio.create_task(self._refresh(source))
                task.add_done_callback(partial(self._refreshed, source.name))
        waiting = [task for name, task in self._refreshing.items() if name not in self._listed]
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE)

    def _refreshed(self, source: str, _: "asyncio.Task[None]") -> None:
        self._refreshing.pop(source, None)

    async def _refresh(self, source: Source) -> None:
        try:
            listed = () if source.models else await list_models(source.endpoint, self.sources.reach_of(source))
        except (InputError, Refused):  # an unknown format, or no list
            listed = self._listed.get(source.name, (0.0, ()))[1]
        if not source.endpoint.provider:  # only a server of one's own may say what window it serves
            names = source.models or tuple(model.name for model in listed)
            for name in names[:MOST_WINDOWS]:
                await self.served(self.chosen(f"{source.name}/{name}"))
        self.learn(source.name, listed)

    async def served(self, chosen: ChosenModel) -> int | None:
        """Return the window that the server itself reports."""
        self._served[chosen.id] = await chosen.client.served_window(chosen.name)
        return self._served[chosen.id]

    def _names(self, source: Source) -> tuple[str, ...]:
        return source.models or tuple(model.name for model in self._listed.get(source.name, (0.0, ()))[1])

    def window(self, source: Source, name: str, settings: AppSettings) -> Window:
        """Return the window of a model, as far as it is known without a request."""
        listed = self._listed.get(source.name, (0.0, ()))[1]
        reported = next((model.window for model in listed if model.name == name), None)
        endpoint = source.endpoint
        return window(
            name,
            provider=endpoint.provider,
            override=settings.window(f"{source.name}/{name}"),
            learned=learned_window(self._threads, Call(model=name, endpoint=endpoint.name)),
            served=None if endpoint.provider else self._served.get(f"{source.name}/{name}") or reported,
            default=settings.engine.rules.unknown_window,
            registry=self._registry,
        )

    def shown(self, settings: AppSettings) -> list[JsonObject]:
        """Return all models as the page reads them. Reads the store."""
        return [
            _model_json(source, name, self.window(source, name, settings))
            for source in self.sources.all
            for name in self._names(source)
        ]


def _model_json(source: Source, name: str, window: Window) -> JsonObject:
    return {
        "id": f"{source.name}/{name}",
        "name": name,
        "source": source.name,
        "window": window.context if window.known else None,
        "window_source": window.source,
        "known": window.known,
    }


async def list_models(endpoint: Endpoint, reach: Reach | None) -> tuple[ListedModel, ...]:
    """Ask a source for its models, within its reach. Raises Refused with one line.

    Only a known provider's answer is told. Of any other server the line is the same whether there is none, or it is
    something else, or may not be asked: who adds sources must not learn what listens in the network of this machine.
    """
    if reach is not None and not reach.allows_url(endpoint.url):
        raise _not_added(NO_LIST)
    known = bool(endpoint.provider) and endpoint.url.startswith("https://")
    try:
        return await _list_models(endpoint, reach)
    except Refused as refused:
        raise refused if known else _not_added(NO_LIST) from None


async def _list_models(endpoint: Endpoint, reach: Reach | None) -> tuple[ListedModel, ...]:
    timeout = aiohttp.ClientTimeout(total=LIST_SECONDS)
    api = format_named(endpoint.fmt).api
    headers = {**PACKED, **dict(endpoint.headers), **api.headers(endpoint.key)}
    resolver = None if reach is None else reach.resolver()
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(resolver=resolver)) as session,
            session.get(
                endpoint.name + api.models, headers=headers, allow_redirects=False, auto_decompress=False
            ) as response,
        ):
            if response.status != 200:
                raise _not_added(REASONS.get(response.status, f"it answers with status {response.status}"))
            listed = json.loads(await read_whole(response, LARGEST_LIST))
    except TimeoutError:
        raise _not_added(f"no answer within {LIST_SECONDS:g} s") from None
    except (aiohttp.ClientError, OSError) as error:
        raise _not_added(f"it cannot be reached: {_first_line(error)}") from None
    except (ValueError, RecursionError):
        raise _not_added("its answer is not a list of models") from None
    return _models_in(listed)


def _models_in(listed: Json) -> tuple[ListedModel, ...]:
    rows: Json = listed
    if isinstance(listed, dict):
        rows = listed.get("data", listed.get("models"))
    if not isinstance(rows, list):
        raise _not_added("its answer is not a list of models")
    models: dict[str, ListedModel] = {}
    for row in rows[:MOST_LISTED]:
        name = row.get("id", row.get("name")) if isinstance(row, dict) else None
        if not isinstance(name, str) or not name or len(name) > LONGEST_LINE or not isinstance(row, dict):
            continue
        name = name.removeprefix("models/")
        served = row_window(row)
        if not NOT_FOR_CONVERSATION.search(name.lower()):
            models[name] = ListedModel(name, served.context if served is not None and served.in_force else None)
    return tuple(models.values())


def _not_added(reason: str) -> Refused:
    return Refused(f"the source was not added: {reason}", status=422, kind="source")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:LONGEST_LINE]
