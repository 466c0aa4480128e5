"""The window of a scripted Ollama: which window a request gets, and how a longer prompt is cut silently.

Like the real one, it drops the beginning until the rest fits, but keeps system text and the last message. An answer
that grows past the end pushes the beginning out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from aiohttp import web

from everlong.core import History, Json, JsonObject, Message, Role
from everlong.llm.scripted.script import Answer, ReceivedRequest, Refusal, Step, message_of
from everlong.tokens import Counter

__all__ = ["ScriptedOllama"]

TOO_LONG = '{"error":"the input length exceeds the context length"}'


@dataclass(slots=True)
class ScriptedOllama:
    """Behaves like Ollama: a request gets the window it asks for, or the model file's, or `default`, up to `most`.

    With `tells` it shows the windows of loaded models, and with `refuses` it supports `truncate: false`; older versions
    do neither. `truncated` and `shifted` list the requests that lost their beginning before and during the answer.
    `loads` counts how often a model was loaded, including reloads for another window.
    """

    default: int = 4_096
    most: int = 131_072
    file: int | None = None
    tells: bool = True
    refuses: bool = True
    loaded: dict[str, int] = field(default_factory=dict)
    loads: int = 0
    truncated: list[int] = field(default_factory=list)
    shifted: list[int] = field(default_factory=list)
    #: Bodies of single prompts, which are answered with the prompt.
    prompts: list[JsonObject] = field(default_factory=list)

    def window(self, model: str, asked: Json = None) -> int:
        """Return the window that a request for the model gets. The model is loaded with it."""
        wanted = asked if isinstance(asked, int) and asked > 0 else self.file or self.default
        given = min(wanted, self.most)
        if self.loaded.get(model) != given:
            self.loads += 1
            self.loaded[model] = given
        return given

    def received(self, asked: ReceivedRequest, body: JsonObject, counter: Counter) -> ReceivedRequest | Refusal:
        """Return what the model sees of a request."""
        given = self.window(asked.model, _option(body, "num_ctx"))
        if asked.tokens <= given:
            return asked
        if self.refuses and body.get("truncate") is False:
            return Refusal(400, TOO_LONG)
        self.truncated.append(asked.number)
        kept = _without_beginning(asked.messages, given - counter.tools(asked.tools), counter)
        tokens = counter.messages(kept) + counter.tools(asked.tools)
        return replace(asked, messages=tuple(kept), tokens=min(tokens, given))

    def answered(self, asked: ReceivedRequest, step: Step, counter: Counter) -> Step:
        """Return the answer, cut to the requested length."""
        if not isinstance(step, Answer):
            return step
        said, most = counter.message(message_of(step, asked.number)), asked.max_tokens
        if most is not None and 0 < most < said:
            step = replace(step, text=step.text[: len(step.text) * most // said], stop="length")
            said = most
        if asked.tokens + said > self.loaded.get(asked.model, self.default):
            self.shifted.append(asked.number)
        return step

    def routes(self, models: Sequence[str]) -> list[web.RouteDef]:
        """Return the other paths, besides those for conversations."""

        async def show(_: web.Request) -> web.Response:
            return web.json_response(self.shown())

        async def running(_: web.Request) -> web.Response:
            return web.json_response(self.running())

        async def tags(_: web.Request) -> web.Response:
            return web.json_response({"models": [{"name": name, "model": name} for name in models]})

        async def version(_: web.Request) -> web.Response:
            return web.json_response({"version": "0.0.0"})

        async def generate(request: web.Request) -> web.Response:
            body = await request.json()
            self.window(body["model"], _option(body, "num_ctx"))
            prompt = body.get("prompt", "")
            self.prompts += [body] if prompt else []
            done = {
                "model": body["model"],
                "response": prompt,
                "done": True,
                "done_reason": "stop" if prompt else "load",
            }
            return web.json_response(done)

        return [
            web.post("/api/show", show),
            web.get("/api/ps", running),
            web.get("/api/tags", tags),
            web.get("/api/version", version),
            web.post("/api/generate", generate),
        ]

    def shown(self) -> JsonObject:
        """Return the answer of /api/show for every model."""
        parameters = f"num_ctx                        {self.file}" if self.file else ""
        return {"parameters": parameters, "model_info": {"scripted.context_length": self.most}, "details": {}}

    def running(self) -> JsonObject:
        """Return the answer of /api/ps."""
        rows: list[Json] = []
        for name, given in self.loaded.items():
            tagged = name if ":" in name else f"{name}:latest"
            rows.append({"name": tagged, "model": tagged} | ({"context_length": given} if self.tells else {}))
        return {"models": rows}


def _option(body: JsonObject, name: str) -> Json:
    options = body.get("options")
    return options.get(name) if isinstance(options, dict) else None


def _without_beginning(messages: History, room: int, counter: Counter) -> Sequence[Message]:
    last = len(messages) - 1
    for start in range(last + 1):
        system = [message for message in messages[:start] if message.role is Role.SYSTEM]
        kept = [*system, *messages[start:]]
        if counter.messages(tuple(kept)) <= room or start == last:
            return kept
    return messages
