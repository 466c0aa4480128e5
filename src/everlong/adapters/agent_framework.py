"""Microsoft's Agent Framework: a context provider that keeps sessions going past the context window.

    agent = Agent(client, instructions="…", tools=[…], context_providers=[EverlongProvider("desk.db")])

The provider adds a chat middleware, which fits the messages of each model call, and the tool `recall`. The history of
the session stays complete. `EverlongCompaction` does the same as a compaction strategy, but without a session and
without recovering from refusals.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from copy import copy
from hashlib import sha256
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from everlong.adapters.keeper import RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS, Keeper, missing
from everlong.adapters.sdk_errors import sdk_errors
from everlong.engine import Engine, Prepared, Settings
from everlong.wire import OPENAI_CHAT, Usage

try:
    from agent_framework import (
        EXCLUDE_REASON_KEY,
        EXCLUDED_KEY,
        AgentSession,
        ChatContext,
        ChatMiddleware,
        ChatResponse,
        ContextProvider,
        FunctionTool,
        Message,
        ResponseStream,
        SessionContext,
        included_messages,
    )
    from agent_framework.exceptions import ChatClientException
except ImportError as error:
    raise missing("Agent Framework 1.23 or newer", "agent-framework-core>=1.23", __name__) from error

__all__ = ["EverlongCompaction", "EverlongMiddleware", "EverlongProvider"]

NAME = "everlong"
SYSTEM = ("system", "developer")
#: The framework's name for an agent without a name.
UNNAMED = "UnnamedAgent"
#: The roles of messages that a run produces, and the property with which the framework marks stored messages.
ANSWERS = ("assistant", "tool")
KEPT_BY = "_attribution"
#: The property of messages that a strategy added.
ADDED = "_everlong"


class EverlongProvider(ContextProvider):
    """A context provider that fits every model request, recovers from refusals and offers the tool `recall`.

    `engine` is an Engine, or the URL of a store such as "desk.db". The other arguments are those of `Keeper`.
    """

    def __init__(
        self,
        engine: Engine | str = "memory:",
        *,
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        recall: bool = True,
        source_id: str = "everlong",
    ) -> None:
        super().__init__(source_id)
        self.keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=recall)
        self._recall = recall

    async def before_run(
        self,
        *,
        agent: Any,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],  # noqa: ARG002 - nothing is kept there
    ) -> None:
        """Add the middleware and the tool to a run."""
        author = getattr(agent, "name", None) or UNNAMED
        context.extend_middleware(self.source_id, EverlongMiddleware(self.keeper, author=author))
        if self._recall:
            context.extend_tools(self.source_id, [self._recall_tool(session.session_id)])

    def _recall_tool(self, thread: str) -> FunctionTool:
        async def recall(what: str, start: int = 0) -> str:
            return await self.keeper.arecalled(thread, what, start)

        return FunctionTool(name=RECALL, description=RECALL_DESCRIPTION, input_model=RECALL_PARAMETERS, func=recall)


class EverlongMiddleware(ChatMiddleware):
    """A chat middleware that fits every model request and recovers from refusals. It offers no tool.

    The thread is that of the session. Without sessions, a conversation is recognised by its first message object.
    `author` is the agent's name, which is left out of its own answers.
    """

    def __init__(
        self,
        engine: Keeper | Engine | str = "memory:",
        *,
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        author: str = UNNAMED,
    ) -> None:
        if not isinstance(engine, Keeper):
            engine = Keeper(engine, settings=settings, window=window, pins=pins, recall=False)
        self.keeper = engine
        self._author = author
        self._threads: WeakKeyDictionary[Message, str] = WeakKeyDictionary()

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Send the messages that fit, and fewer if the model refuses them as too long."""
        options = dict(context.options or {})
        if options.get("conversation_id") or not context.messages:
            await call_next()  # the provider stores the conversation, and only new messages are sent
            return
        prepared: Prepared | None = await self.keeper.aprepare(
            self._thread_of(context),
            [*_instructions(options), *map(self._as_later, context.messages)],
            model=str(options.get("model") or getattr(context.client, "model", "") or ""),
            tools=_schemas(options.get("tools")),
            max_tokens=options.get("max_tokens"),
            fmt=OPENAI_CHAT.name,
        )
        while prepared is not None:
            _send(context, options, prepared.messages)
            try:
                await call_next()
                if isinstance(context.result, ResponseStream):
                    context.result = await self._begun(prepared, context.result)
                    return
            except (ChatClientException, *sdk_errors()) as error:
                prepared = await self.keeper.arefused(prepared, error)
                if prepared is None:
                    raise
                continue
            # Another request follows if the server silently cut the last one.
            prepared = await self.keeper.aanswered(prepared, _usage_of(context.result))

    def _as_later(self, message: Message) -> Message:
        """Return a message of the model or of its tools in the form that it has in all later runs.

        By then the framework has added the agent's name and where the message was stored, and clients send it in
        another form. The name is left out, because it is not known in time.
        """
        if message.role not in ANSWERS or message.author_name not in (None, self._author):
            return message
        later = copy(message)
        later.author_name = None
        later.additional_properties = {KEPT_BY: {"source_id": NAME}, **message.additional_properties}
        return later

    def _thread_of(self, context: ChatContext) -> str:
        if context.session is not None:
            return str(context.session.session_id)
        return self._threads.setdefault(context.messages[0], f"run-{uuid4().hex}")

    async def _begun(self, prepared: Prepared, stream: Any) -> Any:
        """Return a stream that has begun; before its first piece, a refusal can be recovered."""
        pieces = aiter(stream)
        first = [piece async for piece in _first(pieces)]

        async def passed_on() -> AsyncIterator[Any]:
            over = False
            try:
                for piece in first:
                    yield piece
                async for piece in pieces:
                    yield piece
                over = True
            finally:
                if not over:
                    self.keeper.failed(prepared)
            await self.keeper.aanswered(prepared, _usage_of(await stream.get_final_response()))

        return ResponseStream(passed_on(), finalizer=lambda _: stream.get_final_response())


async def _first(pieces: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for piece in pieces:
        yield piece
        return


class EverlongCompaction:
    """A compaction strategy: removes from a list of messages what does not fit, and adds what replaces it.

    `model` and `window` say which context window applies. A conversation is recognised by its first message, or by
    `thread`.
    """

    def __init__(
        self,
        engine: Engine | str = "memory:",
        *,
        model: str = "",
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        thread: str = "",
    ) -> None:
        self.keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=False)
        self._model, self._thread = model, thread

    async def __call__(self, messages: list[Message]) -> bool:
        """Change the list in place; return whether the messages to send have changed."""
        given = [message for message in messages if not message.additional_properties.get(ADDED)]
        if not given:
            return False
        before = included_messages(messages)
        thread = self._thread or _digest(given)
        prepared = await self.keeper.aprepare(thread, given, model=self._model, fmt=OPENAI_CHAT.name)
        messages[:] = _marked(given, prepared.messages)
        return [id(message) for message in before] != [id(message) for message in included_messages(messages)]


def _digest(messages: Sequence[Message]) -> str:
    first = next((message for message in messages if message.role not in SYSTEM), messages[0])
    return f"said-{sha256(first.text.encode()).hexdigest()[:32]}"


def _marked(given: Sequence[Message], sent: Sequence[Message]) -> list[Message]:
    """Return all given messages, those that are not sent marked as excluded, with the messages that replace them."""
    kept = {id(message) for message in sent}
    waiting = list(given)
    known = {id(message) for message in given}
    for message in given:
        message.additional_properties[EXCLUDED_KEY] = id(message) not in kept
        message.additional_properties[EXCLUDE_REASON_KEY] = NAME
    out: list[Message] = []
    for message in sent:
        if id(message) not in known:
            message.additional_properties[ADDED] = True
            out.append(message)
            continue
        while waiting and waiting[0] is not message:
            out.append(waiting.pop(0))
        out += waiting[:1]
        waiting = waiting[1:]
    return out + waiting


# --- requests and responses --------------------------------------------------------------------


def _instructions(options: dict[str, Any]) -> list[Message]:
    """The instructions as a message before the others, so that they are counted."""
    return [Message("system", [options["instructions"]])] if options.get("instructions") else []


def _send(context: ChatContext, options: dict[str, Any], messages: list[Message]) -> None:
    """Put the messages to send into a call. The client itself writes the instructions before them."""
    given = _instructions(options)
    if given and messages and messages[0].role == "system" and messages[0].text == given[0].text:
        context.messages, context.options = messages[1:], options
        return
    context.messages = messages
    context.options = {name: value for name, value in options.items() if name != "instructions"}


def _schemas(tools: Any) -> list[dict[str, Any]]:
    listed = tools if isinstance(tools, list | tuple) else [tools] if tools else []
    return [tool.to_json_schema_spec() if isinstance(tool, FunctionTool) else tool for tool in listed if _known(tool)]


def _known(tool: Any) -> bool:
    return isinstance(tool, FunctionTool | dict)


def _usage_of(response: ChatResponse | None) -> Usage | None:
    usage = response.usage_details if response is not None else None
    if not usage or not usage.get("input_token_count"):
        return None
    return Usage(
        prompt=usage.get("input_token_count") or 0,
        cached=usage.get("cache_read_input_token_count") or 0,
        cache_written=usage.get("cache_creation_input_token_count") or 0,
        output=usage.get("output_token_count") or 0,
        reasoning=usage.get("reasoning_output_token_count") or 0,
    )
