"""The models that can be chosen, named SOURCE/NAME, with their windows and the clients that reach them.

Asks the sources for their lists; models that are not for conversation, such as embeddings, are left out.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

import aiohttp

from everlong.core import Json, JsonObject
from everlong.engine import Call, Model, Threads, learned_window
from everlong.errors import InputError, Refused
from everlong.llm import PACKED, USUAL_MODELS, Endpoint, HttpModel, read_whole
from everlong.web.fields import invalid
from everlong.web.state.reach import Reach
from everlong.web.state.settings import FACTS, AppSettings
from everlong.web.state.sources import Source, Sources, with_version
from everlong.windows import Registry, Window, row_window, window
from everlong.wire import format_named

__all__ = ["ChosenModel", "ListedModel", "Models", "list_models", "tested", "window_source"]

FRESH = 600.0  # seconds that a list of models is used
RETRY = 30.0  # seconds until a source without a list is asked again
PATIENCE = 5.0  # seconds that a page waits for lists
MOST_WINDOWS = 20  # models of a server whose windows are asked for
CHOSEN_LAST = "model"  # the fact with the models chosen last, the newest first
FAVOURITES = "favourites"  # the fact with the models that a person marked
MOST_RECENT, MOST_FAVOURITES = 6, 100
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
UNREACHED = frozenset({"slow", "not_listening"})  # the kinds after which no other path of the server is tried
UNLISTED = "unlisted"  # the kind of a refusal that reveals nothing
NOT_A_LIST = "its response is not a list of models"
NO_LIST = "the address returned no list of models; check the address and the key"
#: Why a known provider gave no list, by its status: the kind for the page, and a line.
REASONS = {
    401: ("key", "it rejects the key"),
    403: ("key", "it rejects the key"),
    404: ("path", "it has no list of models at that address"),
    429: ("rate", "too many requests"),
}


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

    def __init__(
        self, sources: Sources, threads: Threads, registry: Registry | None, given_window: int | None = None
    ) -> None:
        self.sources = sources
        #: The window that the server was started with, for every model that nobody set one for.
        self.given_window = given_window
        self._threads = threads
        self._registry = registry
        self._clients: dict[str, tuple[Endpoint, HttpModel]] = {}
        #: Clients of sources that were changed: an answer may still come through them.
        self._replaced: list[HttpModel] = []
        self._listed: dict[str, tuple[float, tuple[ListedModel, ...]]] = {}
        self._refreshing: dict[str, asyncio.Task[None]] = {}
        self._served: dict[str, int | None] = {}

    async def close(self) -> None:
        """Close all connections."""
        for task in self._refreshing.values():
            task.cancel()
        clients = [*self._replaced, *(client for _, client in self._clients.values())]
        self._clients, self._replaced = {}, []
        for client in clients:
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
            if known is not None:
                self._replaced.append(known[1])
            known = self._clients[source.name] = (source.endpoint, self._client(source))
        return ChosenModel(id=model, name=name, source=source, client=known[1])

    def _client(self, source: Source) -> HttpModel:
        """Return the client of a source. Raises Refused for an added source that may not be used from here."""
        reach = self.sources.reach_of(source)
        if reach is None:
            return HttpModel(source.endpoint)
        if not reach.allows_url(source.endpoint.url):
            raise Refused(f"the provider {source.name!r} cannot be used from here", status=409, kind="no_model")
        return HttpModel(source.endpoint, resolver=reach.resolver())

    def default(self) -> str:
        """Return the model for a new thread: the one chosen last, else the usual one of the first source, else "".

        The witness is taken only if there is no other model.
        """
        last = next(filter(None, map(self.present, self.recent())), "")
        if last:
            return last
        for source in sorted(self.sources.all, key=lambda source: source.witness):
            usual = USUAL_MODELS.get(source.endpoint.provider)
            names = self._names(source)
            first = usual if usual and (usual in names or not names) else next(iter(names), None)
            if first is not None:
                return f"{source.name}/{first}"
        return ""

    def present(self, model: str) -> str:
        """Return the model if its source is there, else ""."""
        return model if self.sources.named(model.partition("/")[0]) is not None else ""

    def remember(self, model: str) -> None:
        """Make a model the default of new threads, and the first of those used lately.

        The witness never becomes the default: other sources may be added later.
        """
        source = self.sources.named(model.partition("/")[0])
        if source is not None and source.witness:
            return
        others = [other for other in self.recent() if other != model]
        self._keep(CHOSEN_LAST, [model, *others][:MOST_RECENT])

    def recent(self) -> list[str]:
        """Return the models that were chosen last, the newest first."""
        return self._kept(CHOSEN_LAST)

    def favourites(self) -> list[str]:
        """Return the models that a person marked, in the order of the marks."""
        return self._kept(FAVOURITES)

    def mark(self, model: str, *, on: bool) -> list[str]:
        """Mark a model as a favourite, or remove the mark; return all that are marked. Raises Refused."""
        others = [other for other in self.favourites() if other != model]
        if on and len(others) >= MOST_FAVOURITES:
            raise invalid(f"there can be at most {MOST_FAVOURITES} favourites; remove one first")
        marked = [*others, model] if on else others
        self._keep(FAVOURITES, marked)
        return marked

    def _kept(self, fact: str) -> list[str]:
        """Return a stored list of models; a single name counts as a list."""
        try:
            stored = json.loads(self._threads.fact(FACTS, fact) or "[]")
        except (ValueError, RecursionError):
            return []
        names = [stored] if isinstance(stored, str) else stored
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def _keep(self, fact: str, models: list[str]) -> None:
        self._threads.keep_fact(FACTS, fact, json.dumps(models, ensure_ascii=False))

    def beside(self, client: Model, name: str) -> tuple[str, ...]:
        """Return the models that write summaries and titles for a model: the fast one of its source, then itself.

        A conversation is never sent to another source automatically. A slow model on this machine only answers.
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
        if not source.endpoint.provider:  # for known providers, the registry has the windows
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
            override=own if (own := settings.window(f"{source.name}/{name}")) is not None else self.given_window,
            learned=learned_window(self._threads, Call(model=name, endpoint=endpoint.name)),
            served=None if endpoint.provider else self._served.get(f"{source.name}/{name}") or reported,
            default=settings.engine.assumed_window,
            registry=self._registry,
        )

    def shown(self, settings: AppSettings) -> list[JsonObject]:
        """Return all models as the page reads them. Reads the store."""
        return [
            _model_json(source, name, self.window(source, name, settings), settings)
            for source in self.sources.all
            for name in self._names(source)
        ]


def window_source(window: Window, model: str, settings: AppSettings) -> str:
    """Return where a window comes from: "user" only if the person set it, "given" if the server was started with it."""
    return "given" if window.source == "user" and settings.window(model) is None else window.source


def _model_json(source: Source, name: str, window: Window, settings: AppSettings) -> JsonObject:
    return {
        "id": f"{source.name}/{name}",
        "name": name,
        "source": source.name,
        "window": window.context if window.known else None,
        "window_source": window_source(window, f"{source.name}/{name}", settings),
        "known": window.known,
        "output": window.output,
        "input_price": window.prices.input,
        "output_price": window.prices.output,
    }


async def tested(source: Source, reach: Reach | None) -> tuple[Source, tuple[ListedModel, ...]]:
    """Ask a source for its models; an address without a version is also tried with it. Raises Refused with one line.

    Return the source with the address that answered. Example: http://127.0.0.1:11434 -> http://127.0.0.1:11434/v1
    """
    try:
        return source, await _list_models(source.endpoint, reach)
    except Refused as refused:
        first = refused
    longer = with_version(source.endpoint)
    if longer is not None and first.kind not in UNREACHED:
        endpoint = replace(source.endpoint, url=longer)
        with suppress(Refused):  # report the error of the address that was typed
            return replace(source, endpoint=endpoint), await _list_models(endpoint, reach)
    raise _concealed(source.endpoint, first)


async def list_models(endpoint: Endpoint, reach: Reach | None) -> tuple[ListedModel, ...]:
    """Ask a source for its models, within its reach. Raises Refused with one line."""
    try:
        return await _list_models(endpoint, reach)
    except Refused as refused:
        raise _concealed(endpoint, refused) from None


def _concealed(endpoint: Endpoint, refused: Refused) -> Refused:
    """Return what may be shown of a refusal: only the answer of a known provider.

    For any other server the line is the same whether there is none, or it is something else, or may not be asked: a
    person who adds sources must not learn what listens in the network of this machine.
    """
    known = bool(endpoint.provider) and endpoint.url.startswith("https://")
    return refused if known else _not_added(UNLISTED, NO_LIST)


async def _list_models(endpoint: Endpoint, reach: Reach | None) -> tuple[ListedModel, ...]:
    if reach is not None and not reach.allows_url(endpoint.url):
        raise _not_added(UNLISTED, NO_LIST)
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
                raise _not_added(*REASONS.get(response.status, ("server", f"it answers with status {response.status}")))
            listed = json.loads(await read_whole(response, LARGEST_LIST))
    except TimeoutError:
        raise _not_added("slow", f"no answer within {LIST_SECONDS:g} s") from None
    except (aiohttp.ClientError, OSError) as error:
        raise _not_added("not_listening", f"it cannot be reached: {_first_line(error)}") from None
    except (ValueError, RecursionError):
        raise _not_added("web_page", NOT_A_LIST) from None
    return _models_in(listed)


def _models_in(listed: Json) -> tuple[ListedModel, ...]:
    rows: Json = listed
    if isinstance(listed, dict):
        rows = listed.get("data", listed.get("models"))
    if not isinstance(rows, list):
        raise _not_added("web_page", NOT_A_LIST)
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


def _not_added(kind: str, reason: str) -> Refused:
    return Refused(f"the provider was not added: {reason}", status=422, kind=kind)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:LONGEST_LINE]
