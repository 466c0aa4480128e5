"""Endpoints that only forward: lists of models, and everything else in a known API that is not a conversation.

Unmanaged requests are never silent: every answer says so, and why.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote

from everlong.core import Json, JsonObject
from everlong.errors import EverlongError, Refused
from everlong.gateway.clients import Client
from everlong.gateway.exchange.response import GONE, Headers, until_disconnect
from everlong.gateway.http.endpoints import Endpoint, HttpRequest, Scope, format_of, raw_path
from everlong.gateway.keys.limits import BYTES_PER_TOKEN
from everlong.gateway.operations.services import Services
from everlong.gateway.request import decoded, encoded, pieces_of_object
from everlong.gateway.surfaces import AZURE, BEDROCK, FORMATS, VERTEX, checked_path
from everlong.gateway.upstreams.connections import UpstreamRequest
from everlong.gateway.upstreams.routing import USUAL_BASE, Upstream
from everlong.wire import ANTHROPIC, OPENAI_CHAT, Format

__all__ = ["FAMILIES", "Family", "ModelListEndpoint", "PassThroughEndpoint"]

NOT_MANAGED = "not a conversation that the gateway knows"
#: Paths that name a model.
ONE_MODEL = re.compile(r"/models/(?P<model>.+)")
DEPLOYMENT = re.compile(r"/deployments/(?P<model>[^/]+)(?:/.*)?")
PUBLISHED = re.compile(r"/.*/models/(?P<model>[^/:]+)(?:[:/].*)?")
INVOKED = re.compile(r"/model/(?P<model>[^/]+)/.*")
LARGEST_LIST = 16 * 1024 * 1024  # bytes of a list of models
LONGEST_START = 1_024  # bytes at the beginning of a body
#: How paths of OpenAI and Anthropic begin, for clients whose base URL lacks the version.
UNVERSIONED = (
    "audio",
    "batches",
    "completions",
    "containers",
    "conversations",
    "embeddings",
    "evals",
    "files",
    "fine_tuning",
    "images",
    "messages",
    "models",
    "moderations",
    "organizations",
    "rerank",
    "responses",
    "score",
    "tokenize",
    "uploads",
    "vector_stores",
    "videos",
)
#: Those of them whose answers leave nothing behind, so that any address of an upstream may answer. Files, batches and
#: the like exist only at the address that made them.
HELD_NOWHERE = frozenset(
    {"audio", "completions", "embeddings", "images", "messages", "models", "moderations", "rerank", "score", "tokenize"}
)


@dataclass(frozen=True, slots=True)
class Family:
    """The paths of an API: their base at the gateway, and their base at an upstream."""

    pattern: re.Pattern[str]
    base: str
    #: The format whose upstreams have these paths; None if a header decides.
    format: Format | None = None
    #: The cloud whose paths they are; "" if any server may have them.
    cloud: str = ""
    #: How a path below the base names a model.
    model: re.Pattern[str] = ONE_MODEL

    @property
    def usual(self) -> bool:
        """Whether these are the paths of OpenAI and Anthropic."""
        return self.format is None

    def rest(self, path: str) -> str | None:
        """Return the part of a path after its base, still encoded; None if it is not in this family."""
        found = self.pattern.fullmatch(path)
        return None if found is None else found["rest"]

    def model_in(self, path: str, body: bytes) -> str:
        """Return the model that a path below the base, or a body, names; "" if neither does."""
        found = self.model.fullmatch(path)
        return unquote(found["model"]) if found else _model_in(body)


def _families() -> list[Family]:
    heads = "|".join(UNVERSIONED)
    usual = rf"(?:(?:/v1){{1,2}}(?=/.)|(?=/(?:{heads})(?:/|$)))(?P<rest>/.+)"
    others = [each for each in FORMATS.values() if each.api.base != USUAL_BASE]
    rows = [
        Family(re.compile(rf"(?:/v1)?{re.escape(base)}(?P<rest>/.+)"), base, each)
        for each in others
        for base in each.api.bases
    ]
    return [*rows, *_clouds(), Family(re.compile(usual), USUAL_BASE)]


def _clouds() -> Iterator[Family]:
    yield Family(re.compile(r"(?:/v1)?/openai/v1(?P<rest>/.+)"), "/openai/v1", OPENAI_CHAT)
    yield Family(re.compile(r"(?:/v1)?/anthropic/v1(?P<rest>/.+)"), "/anthropic/v1", ANTHROPIC)
    yield Family(re.compile(r"(?:/v1)?/openai(?P<rest>/.+)"), "/openai", OPENAI_CHAT, AZURE, DEPLOYMENT)
    yield Family(re.compile(r"(?:/v1)?/v1beta1(?P<rest>/.+)"), "/v1beta1", None, VERTEX, PUBLISHED)
    yield Family(re.compile(r"(?:/v1){0,2}(?P<rest>/(?:projects|publishers)/.+)"), "/v1", None, VERTEX, PUBLISHED)
    yield Family(re.compile(r"(?:/v1)?(?P<rest>/model/.+)"), "", ANTHROPIC, BEDROCK, INVOKED)


#: Families of formats with a separate base come first.
FAMILIES: Sequence[Family] = tuple(_families())


class PassThroughEndpoint(Endpoint):
    """Forwards the other paths of a family to the upstream of the model, or to the first upstream."""

    def __init__(self, services: Services, family: Family) -> None:
        super().__init__(services)
        self._family = family

    def format(self, scope: Scope) -> Format:
        """Return the family's format, or the one that a header names."""
        return self._family.format or format_of(scope["headers"])

    async def answer(self, request: HttpRequest) -> None:
        """Forward one request, and its answer back."""
        request.report.unmanaged = NOT_MANAGED
        path = checked_path(self._family.rest(raw_path(request.scope)) or "")
        body = await request.body(self.services.config)
        tokens = len(body) // BYTES_PER_TOKEN if _is_object(body) else 0  # a picture or a recording has no tokens
        async with self.admitted(request, tokens):
            upstream, body = self._route(path, body, request)
            base = self._family.base
            sent = UpstreamRequest(request.scope["method"], path, request.query, request.headers, body, base)
            anywhere = path.split("/")[1] in HELD_NOWHERE
            passing = self.pass_on(upstream, sent, request, anywhere=anywhere)
            if await until_disconnect(request.receive, passing) is GONE:
                self.note_gone(request)

    def _route(self, path: str, body: bytes, request: HttpRequest) -> tuple[Upstream, bytes]:
        """Return the upstream for the model in the path or the body, and the body with the upstream's name for it."""
        routes, fmt, cloud = self.services.routes, request.format.name, self._family.cloud
        model = self._family.model_in(path, body)
        upstream = routes.choose(model, fmt, cloud) if model else routes.default(fmt, cloud)
        name = routes.model_sent(upstream, model)
        if name != model and model == _model_in(body):
            body = encoded(cast(JsonObject, decoded(body)) | {"model": name})
        request.note_upstream(upstream, model)
        return upstream, body


class ModelListEndpoint(PassThroughEndpoint):
    """Lists the models of all upstreams; an upstream that does not answer is left out."""

    async def answer(self, request: HttpRequest) -> None:
        """Answer with the list; the list of a single upstream is forwarded unchanged."""
        request.report.unmanaged = NOT_MANAGED
        upstreams = [
            one for one in self.services.routes.upstreams if one.speaks(request.format.name, self._family.cloud)
        ]
        if len(upstreams) == 1:
            await super().answer(request)
            return
        async with self.admitted(request):
            lists = await asyncio.gather(*(self._rows(each, request.client, request.headers) for each in upstreams))
        rows: list[Json] = [row for listed in lists for row in listed]
        await request.send_json(200, encoded({"object": "list", "data": rows, "has_more": False}))

    async def _rows(self, upstream: Upstream, client: Client, headers: Headers) -> list[Json]:
        try:
            sent = UpstreamRequest("GET", "/models", "", headers)
            answer = await self.services.forwarding.send(upstream, client, sent)
            body = decoded(await answer.whole(LARGEST_LIST))
        except EverlongError:
            return []
        data = body.get("data") if isinstance(body, dict) else None
        return data if isinstance(data, list) else []


def _model_in(body: bytes) -> str:
    """Return the model that a JSON body names; "" if there is none. The rest, which may be long, is not read."""
    try:
        model = decoded(pieces_of_object(body).get("model", b"null")) if _is_object(body) else None
    except Refused:
        return ""
    return model if isinstance(model, str) else ""


def _is_object(body: bytes) -> bool:
    """Whether the body looks like a JSON object."""
    return body[:LONGEST_START].lstrip().startswith(b"{")
