"""The scripted model in this process: windows, a prefix cache and a record of every request, without HTTP."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

from everlong.core import History, ToolCall
from everlong.engine import CallGrew, Failed, Finished, Reply, Request, Said, Thought
from everlong.errors import ProviderError
from everlong.llm.scripted.script import Answer, Broken, Raw, ReceivedRequest, Refusal, Script, Step, echo, message_of
from everlong.tokens import Counter
from everlong.wire import Usage, as_error, classify, text_pieces

__all__ = ["ScriptedModel", "Window"]

OVERFLOW = (
    '{"error":{"message":"This model\'s maximum context length is {window} tokens. However, your messages resulted '
    'in {tokens} tokens. Please reduce the length of the messages.","type":"invalid_request_error",'
    '"param":"messages","code":"context_length_exceeded"}}'
)


@dataclass(frozen=True, slots=True)
class Window:
    """The context window of a scripted model.

    - `tokens`: the size of the window.
    - `told`: whether the model reports its window when asked.
    - `truncates`: whether it silently cuts a longer prompt instead of refusing it.
    - `body`, `status`: the refusal; `{window}` and `{tokens}` are filled in.
    """

    tokens: int = 1 << 40
    told: bool = False
    truncates: bool = False
    body: str = OVERFLOW
    status: int = 400


@dataclass(slots=True)
class ScriptedModel:
    """A model that answers from a script, for tests. `requests` lists the requests it received, in order.

    - `script`: a function from a request to an Answer, a Refusal or another step; by default it echoes the user.
    - `window`: its context window; a longer request is refused as a provider would.
    - `name`: the model to use when a call names none.
    - `remembers`: how many of the newest requests to keep; None keeps all. `forgotten` counts the others.
    """

    script: Script = echo
    window: Window = field(default_factory=Window)
    fmt: str = "openai-chat"
    endpoint: str = "scripted"
    provider: str = ""
    name: str = "gpt-4o"
    requests: list[ReceivedRequest] = field(default_factory=list)
    remembers: int | None = None
    forgotten: int = 0
    counter: Counter = field(default_factory=lambda: Counter("gpt-4o"))

    async def served_window(self, model: str) -> int | None:  # noqa: ARG002 - one window for all
        """Return the window if the model reports it, otherwise None."""
        return self.window.tokens if self.window.told else None

    def asked(self, request: Request) -> ReceivedRequest:
        """Record a request and return it as the model sees it."""
        asked = ReceivedRequest(
            number=self.forgotten + len(self.requests),
            model=request.model,
            messages=request.messages,
            tools=request.tools,
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            tokens=self.counter.messages(request.messages) + self.counter.tools(request.tools),
            cached=self._cached(request.messages),
        )
        self.requests.append(asked)
        if self.remembers is not None and len(self.requests) > self.remembers:
            self.forgotten += len(self.requests) - self.remembers
            del self.requests[: -self.remembers]
        return asked

    def step(self, asked: ReceivedRequest) -> Step:
        """Return the step for a request: a refusal if the window is too small, otherwise what the script says."""
        window = self.window
        if asked.tokens + (asked.max_tokens or 0) > window.tokens:
            if not window.truncates:
                body = window.body.replace("{window}", str(window.tokens)).replace("{tokens}", str(asked.tokens))
                return Refusal(window.status, body)
            asked = replace(asked, tokens=min(asked.tokens, window.tokens))
        step = self.script(asked)
        if isinstance(step, Answer) and step.usage is None:
            return replace(step, usage=self._usage(asked, step))
        return step

    async def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        """Stream the pieces of the answer; the last is Finished or Failed."""
        asked = self.asked(request)
        match self.step(asked):
            case Refusal(status, body):
                yield Failed(as_error(classify(body, status=status)), begun=False)
            case Broken(answer, pieces):
                for number, piece in enumerate(_pieces(answer, asked.number)):
                    if number >= pieces:
                        break
                    yield piece
                yield Failed(ProviderError("the connection was lost"), begun=pieces > 0)
            case Raw(chunk=chunk):
                yield Failed(ProviderError(f"the reply is not an answer: {chunk[:80]!r}"), begun=False)
            case Answer() as answer:
                await asyncio.sleep(answer.before)
                for piece in _pieces(answer, asked.number):
                    yield piece
                    await asyncio.sleep(answer.between)
                stop = answer.stop or ("calls" if answer.calls else "stop")
                yield Finished(message_of(answer, asked.number), answer.usage if answer.reported else None, stop)

    def _usage(self, asked: ReceivedRequest, answer: Answer) -> Usage:
        said = self.counter.message(message_of(answer, asked.number))
        return Usage(prompt=asked.tokens, cached=min(asked.cached, asked.tokens), output=said)

    def _cached(self, messages: History) -> int:
        """Return the tokens of the longest prefix that an earlier request had too."""
        longest = 0
        for earlier in self.requests[-CACHED_REQUESTS:]:
            same = 0
            for one, other in zip(earlier.messages, messages, strict=False):
                if one != other:
                    break
                same += 1
            longest = max(longest, same)
        return self.counter.messages(messages[:longest])


CACHED_REQUESTS = 4  # whose prefixes are still known


def _pieces(answer: Answer, number: int) -> list[Reply]:
    pieces: list[Reply] = [Thought(answer.thinking)] if answer.thinking else []
    pieces += [Said(text) for text in text_pieces(answer.text)]
    calls = [part for part in message_of(answer, number).parts if isinstance(part, ToolCall)]
    return [*pieces, *(CallGrew(at, call.id, call.name, call.arguments) for at, call in enumerate(calls))]
