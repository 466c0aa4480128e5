"""The models one can choose: SOURCE/NAME, with their windows, and the clients that reach them."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic

import aiohttp

from everlong.core import Json, JsonObject
from everlong.engine import Call, Threads, learned_window
from everlong.errors import Refused
from everlong.llm import Endpoint, HttpModel, read_whole
from everlong.web.state.settings import FACTS, AppSettings
from everlong.web.state.sources import Source, Sources
from everlong.windows import Registry, Window, row_window, window

__all__ = ["ChosenModel", "ListedModel", "Models", "list_models"]

LIST_SECONDS = 8.0
LARGEST_LIST = 8 * 1024 * 1024  # bytes
MOST_LISTED = 2_000
LONGEST_LINE = 200  # characters of a name, and of what a server says is wrong
NO_TALK = re.compile(
    r"embed|whisper|\btts|dall-e|moderation|-image|audio|realtime|transcribe|rerank|\bsora|babbage|davinci|\bveo|imagen"
)
#: Where each format has its list, and how it takes the key.
PATHS: Mapping[str, str] = {"anthropic": "/models?limit=1000", "gemini": "/models?pageSize=1000"}
REASONS = {401: "it does not take the key", 403: "it does not take the key", 404: "it lists no models there"}


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model of a source; `window` is what the list says it serves."""

    name: str
    window: int | None = None


async def list_models(endpoint: Endpoint) -> tuple[ListedModel, ...]:
    """The models that a source names. Raises Refused with one line that says what is wrong."""
    timeout = aiohttp.ClientTimeout(total=LIST_SECONDS)
    url = endpoint.name + PATHS.get(endpoint.fmt, "/models")
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, headers=_list_headers(endpoint), allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise _not_added(REASONS.get(response.status, f"it answers with status {response.status}"))
            listed = json.loads(await read_whole(response, LARGEST_LIST))
    except TimeoutError:
        raise _not_added(f"no answer within {LIST_SECONDS:g} s") from None
    except (aiohttp.ClientError, OSError) as error:
        raise _not_added(f"it cannot be reached: {_first_line(error)}") from None
    except (ValueError, RecursionError):
        raise _not_added("it answers with something that is no list of models") from None
    return _models_in(listed)


def _list_headers(endpoint: Endpoint) -> dict[str, str]:
    headers = dict(endpoint.headers)
    match endpoint.fmt:
        case "anthropic":
            headers["anthropic-version"] = "2023-06-01"
            if endpoint.key:
                headers["x-api-key"] = endpoint.key
        case "gemini" if endpoint.key:
            headers["x-goog-api-key"] = endpoint.key
        case _ if endpoint.key:
            headers["authorization"] = f"Bearer {endpoint.key}"
        case _:
            pass
    return headers


def _models_in(listed: Json) -> tuple[ListedModel, ...]:
    rows: Json = listed
    if isinstance(listed, dict):
        rows = listed.get("data", listed.get("models"))
    if not isinstance(rows, list):
        raise _not_added("it answers with something that is no list of models")
    found: dict[str, ListedModel] = {}
    for row in rows[:MOST_LISTED]:
        name = row.get("id", row.get("name")) if isinstance(row, dict) else None
        if not isinstance(name, str) or not name or len(name) > LONGEST_LINE or not isinstance(row, dict):
            continue
        name = name.removeprefix("models/")
        served = row_window(row)
        if not NO_TALK.search(name.lower()):
            found[name] = ListedModel(name, served.context if served is not None and served.in_force else None)
    return tuple(found.values())


def _not_added(reason: str) -> Refused:
    return Refused(f"the source was not added: {reason}", status=422, kind="source")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:LONGEST_LINE]


FRESH = 600.0  # seconds that a list of models counts
AGAIN = 30.0  # seconds until a source that gave none is asked again
PATIENCE = 5.0  # seconds that a page waits for lists
MOST_ASKED = 20  # models of a server that are asked about
LAST_MODEL = "model"  # the fact that keeps the model chosen last
#: A model of each provider that does for a conversation, where nobody chose one.
USUAL_MODELS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4o",
    "google": "gemini-2.5-flash",
    "openrouter": "openai/gpt-4o",
    "deepseek": "deepseek-chat",
    "moonshotai": "kimi-k2-0905-preview",
    "alibaba": "qwen-plus",
    "zhipuai": "glm-4.6",
    "groq": "llama-3.3-70b-versatile",
    "mistral": "mistral-large-latest",
    "xai": "grok-4",
}
#: A fast and cheap one of each, for titles and summaries.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenModel:
    """A model that can be asked."""

    id: str
    name: str
    source: Source
    client: HttpModel


class Models:
    """What there is to choose from. Belongs to one event loop."""

    def __init__(self, sources: Sources, threads: Threads, registry: Registry | None) -> None:
        self.sources = sources
        self._threads = threads
        self._registry = registry
        self._clients: dict[str, tuple[Endpoint, HttpModel]] = {}
        self._listed: dict[str, tuple[float, tuple[ListedModel, ...]]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._served: dict[str, int | None] = {}

    async def close(self) -> None:
        """Let go of all connections."""
        for task in self._asking.values():
            task.cancel()
        clients, self._clients = self._clients, {}
        for _, client in clients.values():
            await client.close()

    def chosen(self, model: str) -> ChosenModel:
        """The model of that id. Raises Refused if its source is not there."""
        source_name, _, name = model.partition("/")
        source = self.sources.named(source_name)
        if source is None or not name:
            reason = f"the model {model[:120]!r} is not there; choose another" if model else "no model is chosen"
            raise Refused(reason, status=409, kind="no_model")
        known = self._clients.get(source.name)
        if known is None or known[0] != source.endpoint:
            known = self._clients[source.name] = (source.endpoint, HttpModel(source.endpoint))
        return ChosenModel(id=model, name=name, source=source, client=known[1])

    def default(self) -> str:
        """The model for a new thread: the one chosen last, else the usual one of the first source; "" if none is."""
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
        """It was chosen: new threads begin with it."""
        self._threads.keep_fact(FACTS, LAST_MODEL, f'"{model}"')

    def fast(self, model: str) -> str:
        """The fast model beside this one, "" if its source has none that is known."""
        source = self.sources.named(model.partition("/")[0])
        name = None if source is None else FAST_MODELS.get(source.endpoint.provider)
        return f"{source.name}/{name}" if source is not None and name in self._names(source) else ""

    def forget(self, source: str) -> None:
        """What is known of a source no longer holds."""
        self._listed.pop(source, None)
        self._served = {model: tokens for model, tokens in self._served.items() if not model.startswith(f"{source}/")}

    def learn(self, source: str, listed: tuple[ListedModel, ...]) -> None:
        """These are its models, just asked."""
        self._listed[source] = (monotonic(), listed)

    def count(self, source: Source) -> int:
        """How many models of it are known."""
        return len(self._names(source))

    async def refresh(self) -> None:
        """Ask the sources whose lists are old, all at once; waits a little, the rest comes later."""
        for source in self.sources.all:
            asked, listed = self._listed.get(source.name, (float("-inf"), ()))
            age = monotonic() - asked
            if age > (FRESH if listed or source.models else AGAIN) and source.name not in self._asking:
                task = self._asking[source.name] = asyncio.create_task(self._ask(source))
                task.add_done_callback(partial(self._asked, source.name))
        waiting = [task for name, task in self._asking.items() if name not in self._listed]
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE)

    def _asked(self, source: str, _: "asyncio.Task[None]") -> None:
        self._asking.pop(source, None)

    async def _ask(self, source: Source) -> None:
        try:
            listed = () if source.models else await list_models(source.endpoint)
        except Refused:
            listed = self._listed.get(source.name, (0.0, ()))[1]
        if not source.endpoint.provider:  # a server of one's own may tell what it really serves
            names = source.models or tuple(one.name for one in listed)
            for name in names[:MOST_ASKED]:
                await self.served(self.chosen(f"{source.name}/{name}"))
        self.learn(source.name, listed)

    async def served(self, chosen: ChosenModel) -> int | None:
        """The window that the server itself tells; asked once."""
        self._served[chosen.id] = await chosen.client.served_window(chosen.name)
        return self._served[chosen.id]

    def _names(self, source: Source) -> tuple[str, ...]:
        return source.models or tuple(one.name for one in self._listed.get(source.name, (0.0, ()))[1])

    def window(self, source: Source, name: str, settings: AppSettings) -> Window:
        """The window of a model as far as it is known without asking anyone."""
        listed = self._listed.get(source.name, (0.0, ()))[1]
        told = next((one.window for one in listed if one.name == name), None)
        endpoint = source.endpoint
        return window(
            name,
            provider=endpoint.provider,
            override=settings.window(f"{source.name}/{name}"),
            learned=learned_window(self._threads, Call(model=name, endpoint=endpoint.name)),
            served=None if endpoint.provider else self._served.get(f"{source.name}/{name}") or told,
            registry=self._registry,
        )

    def shown(self, settings: AppSettings) -> list[JsonObject]:
        """All models, as the page reads them. Looks into the store."""
        return [
            _model_json(source, name, self.window(source, name, settings))
            for source in self.sources.all
            for name in self._names(source)
        ]


def _model_json(source: Source, name: str, known: Window) -> JsonObject:
    return {
        "id": f"{source.name}/{name}",
        "name": name,
        "source": source.name,
        "window": known.context if known.known else None,
        "window_source": known.source,
        "known": known.known,
    }
