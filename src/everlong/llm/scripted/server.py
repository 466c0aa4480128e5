"""The scripted model over real HTTP: every wire format on one free port, in a separate thread.

    with ScriptedServer(reads_files(2), window=Window(16_000)) as server:
        …  # server.url is the base URL of an OpenAI client, server.address that of an Anthropic client;
        …  # server.requests is what was asked

Streams piece by piece, breaks connections, refuses, truncates: whatever the script says. Answers are held like
OpenAI's: a request may name an earlier answer or a conversation, and the script sees everything before it.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from threading import Event as Signal, Thread
from types import TracebackType
from typing import Self

from aiohttp import web

from everlong.core import Json, JsonObject
from everlong.errors import EverlongError
from everlong.llm.arrivals import ArrivalLimits
from everlong.llm.scripted.held import HeldAnswers, UnknownName
from everlong.llm.scripted.model import ScriptedModel, Window
from everlong.llm.scripted.ollama import ScriptedOllama
from everlong.llm.scripted.script import Answer, Broken, Raw, ReceivedRequest, Refusal, Script, Step, echo, reply_of
from everlong.llm.sites import DEFAULT_LIMITS, guarded_site
from everlong.wire import (
    ANTHROPIC,
    AWS_FRAMES,
    FORMATS,
    GEMINI,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    Api,
    Format,
    Framing,
    Request,
    format_named,
    sse_bytes,
)

__all__ = ["ScriptedServer"]

KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
LARGEST_BODY = 256 * 1024 * 1024
VERTEX = "/{version:v1|v1beta1}/projects/{project}/locations/{location}"
#: The paths of clouds and their formats. Streams of Gemini and Bedrock have other paths.
CLOUD_PATHS: tuple[tuple[str, Format], ...] = (
    ("/openai/deployments/{model}/chat/completions", OPENAI_CHAT),
    ("/openai/responses", OPENAI_RESPONSES),
    ("/openai/v1/chat/completions", OPENAI_CHAT),
    ("/openai/v1/responses", OPENAI_RESPONSES),
    ("/models/chat/completions", OPENAI_CHAT),
    ("/anthropic/v1/messages", ANTHROPIC),
    (VERTEX + "/endpoints/openapi/chat/completions", OPENAI_CHAT),
    (VERTEX + "/publishers/anthropic/models/{model:[^:/]+}:rawPredict", ANTHROPIC),
    (VERTEX + "/publishers/anthropic/models/{model:[^:/]+}:streamRawPredict", ANTHROPIC),
    (VERTEX + "/publishers/google/models/{model:[^:/]+}:generateContent", GEMINI),
    ("/model/{model}/invoke", ANTHROPIC),
)
GEMINI_STREAM = VERTEX + "/publishers/google/models/{model:[^:/]+}:streamGenerateContent"
BEDROCK_STREAM = "/model/{model}/invoke-with-response-stream"
#: Errors in a script are sent to the client, so that a test fails with the reason.
SCRIPT_ERRORS = (ArithmeticError, AssertionError, AttributeError, EverlongError, LookupError, TypeError, ValueError)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScriptedServer:
    """An HTTP server on this machine that answers from a script, in every format that we read. Use it with `with`.

    - `script`, `window`: as in ScriptedModel.
    - `models`: the models that it lists.
    - `ollama`: behave like an Ollama server with these settings.
    - `limits`: limits for slow or too many connections.

    `requests` lists the requests it received, in order; `cancelled` counts streams that the client closed early.
    """

    def __init__(
        self,
        script: Script = echo,
        *,
        window: Window | None = None,
        models: tuple[str, ...] = (),
        ollama: ScriptedOllama | None = None,
        limits: ArrivalLimits = DEFAULT_LIMITS,
    ) -> None:
        self.model = ScriptedModel(script, window or Window())
        self.models = models or ("scripted",)
        #: Gives each request its window if this is an Ollama server.
        self.ollama = ollama
        #: The key that every request needs; "" needs none.
        self.key = ""
        self.cancelled = 0
        #: The answers that it stores for clients, by format.
        self.held = {name: HeldAnswers(each) for name, each in FORMATS.items() if each.server_side and each.server.held}
        self.port = 0
        self._limits = limits
        self._ready = Signal()
        self._leave: Callable[[], object] = lambda: None
        self._thread = Thread()

    @property
    def requests(self) -> list[ReceivedRequest]:
        """The requests so far."""
        return self.model.requests

    @property
    def address(self) -> str:
        """The address it listens on: the base URL for Anthropic clients. Gemini's is this with /v1beta after it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base URL for OpenAI clients and for HttpModel. Anthropic's client takes `address`."""
        return f"{self.address}/v1"

    def __enter__(self) -> Self:
        self.port = 0
        self._ready.clear()
        self._thread = Thread(target=self._run, name="scripted-model", daemon=True)
        self._thread.start()
        self._ready.wait()
        if not self.port:
            self._thread.join()
            raise EverlongError("the scripted server could not start: this machine has no free port")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        async with guarded_site(self._application(), self._limits) as self.port:
            self._leave = lambda: loop.call_soon_threadsafe(stop.set)
            self._ready.set()
            await stop.wait()

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_BODY, middlewares=[self._guard] if self.key else [])
        for spoken in FORMATS.values():
            api = spoken.api
            app.router.add_post(_route(api, api.path), self._answers(spoken))
            if api.stream_path:
                app.router.add_post(_route(api, api.stream_path), self._answers(spoken, streamed=True))
            if api.count_path:
                app.router.add_post(_route(api, api.count_path), self._counts(spoken))
        app.router.add_post(VERTEX + "/publishers/anthropic/models/count-tokens:rawPredict", self._counts(ANTHROPIC))
        app.router.add_post(GEMINI_STREAM, self._answers(GEMINI, streamed=True))
        app.router.add_post(BEDROCK_STREAM, self._answers(ANTHROPIC, streamed=True, framing=AWS_FRAMES))
        for path, spoken in CLOUD_PATHS:
            app.router.add_post(path, self._answers(spoken))
        app.router.add_get("/v1beta/models", self._lists_as_google)
        for path in ("/v1/models", "/openai/models", "/openai/v1/models"):
            app.router.add_get(path, self._lists)
        for held in self.held.values():
            app.router.add_routes(held.routes())
        if self.ollama is not None:
            app.router.add_routes(self.ollama.routes(self.models))
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer only requests that have the key in the header of their format."""
        brought = (request.headers.get(name, "").removeprefix("Bearer ") for name in KEY_HEADERS)
        if not any(secrets.compare_digest(one.encode(), self.key.encode()) for one in brought):
            return _refused(401, "the key is missing or wrong")
        return await handler(request)

    async def _lists(self, _: web.Request) -> web.Response:
        window: JsonObject = {"max_model_len": self.model.window.tokens} if self.model.window.told else {}
        rows: list[Json] = [{"id": name, "object": "model", "owned_by": "everlong", **window} for name in self.models]
        return web.json_response({"object": "list", "data": rows})

    async def _lists_as_google(self, _: web.Request) -> web.Response:
        window: JsonObject = {"inputTokenLimit": self.model.window.tokens} if self.model.window.told else {}
        rows: list[Json] = [{"name": f"models/{name}", **window} for name in self.models]
        return web.json_response({"models": rows})

    def _counts(self, spoken: Format) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                document = spoken.read_body(json.loads(await request.read()))
            except (EverlongError, ValueError) as error:
                return _refused(400, f"the body cannot be read: {error}")
            counter = self.model.counter
            tokens = counter.messages(document.messages) + counter.tools(document.tools)
            return web.json_response(spoken.server.counted(tokens))

        return handle

    def _answers(self, spoken: Format, *, streamed: bool = False, framing: Framing | None = None) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.read()
            written = framing or spoken.api.stream_framing(request.query_string)
            try:
                asked = self._asked(spoken, request, body, streamed=streamed)
            except UnknownName as error:
                return _unknown(error)
            except (EverlongError, ValueError) as error:
                return _refused(400, f"the body cannot be read: {error}")
            try:
                step = self._step(asked)
            except SCRIPT_ERRORS as error:
                return _refused(500, f"the script failed: {type(error).__name__}: {error}")
            match step:
                case Refusal(status, text, headers):
                    kind = "application/json" if text.lstrip().startswith("{") else "text/plain"
                    return web.Response(status=status, text=text, content_type=kind, headers=dict(headers))
                case Broken(answer, pieces):
                    return await self._send_answer(request, asked, answer, written, pieces)
                case Raw() as raw:
                    return await _sent(request, raw)
                case Answer() as answer:
                    return await self._send_answer(request, asked, answer, written)

        return handle

    def _step(self, asked: ReceivedRequest) -> Step:
        """Return the step for a request: first the window decides, then the script."""
        if self.ollama is None:
            return self.model.step(asked)
        counter = self.model.counter
        seen = self.ollama.received(asked, json.loads(asked.body), counter)
        return seen if isinstance(seen, Refusal) else self.ollama.answered(seen, self.model.step(seen), counter)

    def _asked(self, spoken: Format, request: web.Request, body: bytes, *, streamed: bool) -> ReceivedRequest:
        raw = json.loads(body)
        if not isinstance(raw, dict):
            raise ValueError("not an object")
        if spoken.name in self.held:
            raw = self.held[spoken.name].resolved(raw)
        # Cache marks are not content: a prefix is the same even if they have moved.
        document = spoken.read_body(raw if spoken.marks is None else spoken.marks.remove(raw))
        temperature = raw.get("temperature")
        asked = self.model.asked(
            Request(
                model=document.model or request.match_info.get("model", ""),
                messages=document.messages,
                tools=document.tools,
                max_tokens=spoken.api.length(raw),
                temperature=float(temperature) if isinstance(temperature, int | float) else None,
            )
        )
        headers = {name.lower(): value for name, value in request.headers.items()}
        stream = streamed or bool(raw.get(spoken.api.stream, spoken.api.streams_unasked))
        asked = replace(asked, body=body, headers=headers, fmt=spoken.name, stream=stream)
        self.requests[-1] = asked
        return asked

    async def _send_answer(
        self, request: web.Request, asked: ReceivedRequest, answer: Answer, framing: Framing, pieces: int | None = None
    ) -> web.StreamResponse:
        """Send the answer, streamed or whole; with `pieces` the connection breaks after this many events."""
        writer = format_named(asked.fmt).writer
        if asked.fmt in self.held and pieces is None:
            self.held[asked.fmt].keep(json.loads(asked.body), writer.whole(reply_of(asked, answer)))
        try:
            await asyncio.sleep(answer.before)
            if not asked.stream:
                if pieces is not None and request.transport is not None:
                    request.transport.abort()
                return web.json_response(writer.whole(reply_of(asked, answer)))
            encoder, kind = framing.encoder(), framing.content_type.decode()
            response = web.StreamResponse(headers={"content-type": kind, "cache-control": "no-cache"})
            await response.prepare(request)
            for number, (name, data) in enumerate(writer.events(reply_of(asked, answer))):
                if pieces is not None and number >= pieces:
                    if request.transport is not None:
                        request.transport.abort()
                    return response
                text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
                await response.write(encoder.feed(sse_bytes(name, text)))
                await asyncio.sleep(answer.between)
            await response.write_eof(encoder.close())
        except (asyncio.CancelledError, ConnectionError):
            self.cancelled += 1
            raise
        return response


def _route(api: Api, path: str) -> str:
    return api.base + path.replace("{model}", "{model:[^:]+}")


def _refused(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)


def _unknown(error: UnknownName) -> web.Response:
    code = "previous_response_not_found" if "response" in error.field_name else "conversation_not_found"
    shown = {"message": str(error), "type": "invalid_request_error", "param": error.field_name, "code": code}
    return web.json_response({"error": shown}, status=404)


async def _sent(request: web.Request, raw: Raw) -> web.StreamResponse:
    """Send bytes as they are until the client stops reading."""
    response = web.StreamResponse(headers={"content-type": raw.content_type})
    await response.prepare(request)
    for _ in range(raw.times):
        await response.write(raw.chunk)
    await response.write_eof()
    return response
