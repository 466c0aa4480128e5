"""LlamaIndex: a memory that keeps the whole conversation in a store, and a model that sends as much of it as fits.

    memory = EverlongMemory.from_defaults("chat.db", session_id="ship")
    agent = FunctionAgent(llm=memory.wrap(llm), tools=[…, memory.recall_tool()])
    await agent.run("…", memory=memory)

An agent asks its memory only for the messages before the run, and adds the steps of the run itself. So the messages are
fitted in the wrapped model, which sees all of them, the tools and the provider's answer. Without a wrapped model the
memory fits what it knows.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from everlong.adapters.calls import asend, astream, send, stream, thread_of
from everlong.adapters.keeper import RECALL, RECALL_DESCRIPTION, Keeper, missing
from everlong.core import Message
from everlong.engine import Author, Engine, Settings
from everlong.errors import NoThread
from everlong.wire import Usage, library_named, read_usage

try:
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
    from llama_index.core.bridge.pydantic import BaseModel, Field, PrivateAttr, SerializeAsAny
    from llama_index.core.llms import LLM
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from llama_index.core.memory import BaseMemory
    from llama_index.core.tools import FunctionTool
except ImportError as error:
    raise missing("LlamaIndex 0.14 or newer", "llama-index-core>=0.14", __name__) from error

__all__ = ["EverlongMemory"]

LIBRARY = library_named("llama_index")
SYSTEM = (MessageRole.SYSTEM, MessageRole.DEVELOPER)
FIELDS = ("session_id", "model", "window", "pins")


class EverlongMemory(BaseMemory):
    """A memory of unlimited length, stored under its session id.

    `engine` is an Engine or a store's URL. `model` is needed only if no model is wrapped. The other arguments are those
    of `Keeper`.
    """

    store: str = "memory:"
    session_id: str = ""
    model: str = ""
    window: int | None = None
    pins: list[str] = Field(default_factory=list)

    _keeper: Keeper = PrivateAttr()
    _items: list[Any] | None = PrivateAttr(default=None)
    _wrapped: bool = PrivateAttr(default=False)
    _newest: str = PrivateAttr(default="")

    def __init__(  # noqa: PLR0913 - the keeper's keywords, and the adapter's own
        self,
        engine: Engine | str = "memory:",
        *,
        session_id: str = "",
        model: str = "",
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        authors: Sequence[Author] = (),
    ) -> None:
        super().__init__(
            store=engine if isinstance(engine, str) else "memory:",
            session_id=session_id or uuid4().hex,
            model=model,
            window=window,
            pins=list(pins),
        )
        self._keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=False, authors=authors)

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex writes into its files."""
        return "EverlongMemory"

    @classmethod
    def from_defaults(
        cls,
        engine: Engine | str = "memory:",
        *,
        chat_history: list[Any] | None = None,
        llm: LLM | None = None,
        **options: Any,
    ) -> "EverlongMemory":
        """Return a memory. `chat_history` replaces what the session contains, and `llm` gives the model's name."""
        if llm is not None:
            options.setdefault("model", llm.metadata.model_name)
        memory = cls(engine, **options)
        if chat_history is not None:
            memory.set(chat_history)
        return memory

    @classmethod
    def from_dict(cls, data: dict[str, Any], **options: Any) -> "EverlongMemory":
        """Return the memory that `to_dict` wrote: the same session of the same store."""
        return cls(data.get("store", "memory:"), **{name: data[name] for name in FIELDS if name in data}, **options)

    def wrap(self, llm: LLM) -> FunctionCallingLLM:
        """Return a model that fits its messages with this memory. From now on `get` returns all messages."""
        self._wrapped = True
        return _WrappedLLM(llm, self)

    def recall_tool(self) -> FunctionTool:
        """Return a tool with which an agent can fetch what left the window."""
        self._keeper.recall = True  # from now on, what is left out names the tool

        def recall(what: str, start: int = 0) -> str:
            return self._keeper.recalled(self._newest or self.session_id, what, start)

        async def arecall(what: str, start: int = 0) -> str:
            return await self._keeper.arecalled(self._newest or self.session_id, what, start)

        return FunctionTool.from_defaults(recall, async_fn=arecall, name=RECALL, description=RECALL_DESCRIPTION)

    # --- what LlamaIndex asks a memory -----------------------------------------------------------

    def get(self, *_: Any, **__: Any) -> list[Any]:
        """Return the messages for the next call: all of them if a model is wrapped, otherwise those that fit."""
        items = self.get_all()
        if self._wrapped or not items:
            return items
        prepared = self._keeper.prepare(self.session_id, items, model=self.model)
        self._keeper.answered(prepared, None)
        return prepared.messages

    def get_all(self) -> list[Any]:
        """Return all messages of the session."""
        return list(self._held())

    def put(self, message: Any) -> None:
        """Add a message."""
        self.put_messages([message])

    def put_messages(self, messages: Sequence[Any]) -> None:
        """Add messages."""
        self._held().extend(messages)
        self._keep(messages)

    def set(self, messages: Sequence[Any]) -> None:
        """Replace all messages."""
        self.reset()
        self.put_messages(messages)

    def reset(self) -> None:
        """Remove the messages of the session."""
        self._items = []
        self._forget()

    def thread_for(self, messages: Sequence[Any]) -> str:
        """Return the thread of a call: the session's if it begins like the memory, otherwise a separate one.

        LlamaIndex also uses the same model for other things, such as structured answers.
        """
        first = next((message for message in messages if message.role not in SYSTEM), None)
        begins = next((message for message in self._held() if message.role not in SYSTEM), None)
        alike = first is not None and first == begins
        self._newest = self.session_id if alike else thread_of(self.session_id, messages)
        return self._newest

    # --- the store -------------------------------------------------------------------------------

    def _held(self) -> list[Any]:
        if self._items is None:
            threads = self._keeper.engine.threads
            try:
                said = [row.entry for row in threads.read(self._kept) if isinstance(row.entry, Message)]
            except NoThread:
                said = []
            self._items = LIBRARY.write(said)
        return self._items

    @property
    def _kept(self) -> str:
        """The thread of the memory itself; requests to models follow it in the thread of the session."""
        return f"{self.session_id}/memory"

    def _keep(self, messages: Sequence[Any]) -> None:
        said = [message for unit in LIBRARY.read(messages) for message in unit.messages]
        self._keeper.engine.blocking.append(self._kept, said)

    def _forget(self) -> None:
        with suppress(NoThread):
            self._keeper.engine.threads.remove(self._kept)


class _WrappedLLM(FunctionCallingLLM):
    """A model that sends what its memory fits. Everything else is the wrapped model's own."""

    llm: SerializeAsAny[LLM]
    _memory: EverlongMemory = PrivateAttr()

    def __init__(self, llm: LLM, memory: EverlongMemory) -> None:
        super().__init__(llm=llm, callback_manager=llm.callback_manager)
        self._memory = memory

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex shows."""
        return "EverlongLLM"

    @property
    def metadata(self) -> LLMMetadata:
        """The model's own metadata."""
        return self.llm.metadata

    def _call(self, messages: Sequence[Any], tools: Sequence[Any] = ()) -> dict[str, Any]:
        """Return the arguments for the preparation."""
        return {
            "thread": self._memory.thread_for(messages),
            "items": list(messages),
            "model": self.metadata.model_name,
            "tools": [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools],
            "max_tokens": getattr(self.llm, "max_tokens", None),
        }

    def chat(self, messages: Sequence[Any], **options: Any) -> ChatResponse:
        """Return the model's answer to as many of the messages as fit."""
        keeper = self._memory._keeper
        return send(
            keeper, keeper.prepare(**self._call(messages)), lambda now: self.llm.chat(now.messages, **options), _usage
        )

    def stream_chat(self, messages: Sequence[Any], **options: Any) -> Iterator[ChatResponse]:
        """Yield the model's answer as it grows."""
        keeper = self._memory._keeper
        prepared = keeper.prepare(**self._call(messages))
        return stream(keeper, prepared, lambda now: self.llm.stream_chat(now.messages, **options), _usage)

    async def achat(self, messages: Sequence[Any], **options: Any) -> ChatResponse:
        """Return what `chat` returns, with an event loop."""
        keeper = self._memory._keeper
        prepared = await keeper.aprepare(**self._call(messages))
        return await asend(keeper, prepared, lambda now: self.llm.achat(now.messages, **options), _usage)

    async def astream_chat(self, messages: Sequence[Any], **options: Any) -> AsyncIterator[ChatResponse]:
        """Yield what `stream_chat` yields, with an event loop."""
        keeper = self._memory._keeper
        prepared = await keeper.aprepare(**self._call(messages))
        return astream(keeper, prepared, lambda now: self.llm.astream_chat(now.messages, **options), _usage)

    def chat_with_tools(
        self, tools: Sequence[Any], user_msg: Any = None, chat_history: list[Any] | None = None, **options: Any
    ) -> ChatResponse:
        """Return the model's answer, which may call tools."""
        keeper = self._memory._keeper
        prepared = keeper.prepare(**self._call(_all(chat_history, user_msg), tools))
        return send(
            keeper, prepared, lambda now: self.llm.chat_with_tools(tools, chat_history=now.messages, **options), _usage
        )

    def stream_chat_with_tools(
        self, tools: Sequence[Any], user_msg: Any = None, chat_history: list[Any] | None = None, **options: Any
    ) -> Iterator[ChatResponse]:
        """Yield the model's answer, which may call tools, as it grows."""
        keeper = self._memory._keeper
        prepared = keeper.prepare(**self._call(_all(chat_history, user_msg), tools))
        return stream(
            keeper,
            prepared,
            lambda now: self.llm.stream_chat_with_tools(tools, chat_history=now.messages, **options),
            _usage,
        )

    async def achat_with_tools(
        self, tools: Sequence[Any], user_msg: Any = None, chat_history: list[Any] | None = None, **options: Any
    ) -> ChatResponse:
        """Return what `chat_with_tools` returns, with an event loop."""
        keeper = self._memory._keeper
        prepared = await keeper.aprepare(**self._call(_all(chat_history, user_msg), tools))
        return await asend(
            keeper, prepared, lambda now: self.llm.achat_with_tools(tools, chat_history=now.messages, **options), _usage
        )

    async def astream_chat_with_tools(
        self, tools: Sequence[Any], user_msg: Any = None, chat_history: list[Any] | None = None, **options: Any
    ) -> AsyncIterator[ChatResponse]:
        """Yield what `stream_chat_with_tools` yields, with an event loop."""
        keeper = self._memory._keeper
        prepared = await keeper.aprepare(**self._call(_all(chat_history, user_msg), tools))
        return astream(
            keeper,
            prepared,
            lambda now: self.llm.astream_chat_with_tools(tools, chat_history=now.messages, **options),
            _usage,
        )

    # --- the model's own -------------------------------------------------------------------------

    def get_tool_calls_from_response(self, response: ChatResponse, **options: Any) -> Any:
        """Return the calls in an answer."""
        return self.llm.get_tool_calls_from_response(response, **options)

    def complete(self, prompt: str, **options: Any) -> Any:
        """Return the model's completion; a single prompt is sent unchanged."""
        return self.llm.complete(prompt, **options)

    def stream_complete(self, prompt: str, **options: Any) -> Any:
        """Yield the model's completion."""
        return self.llm.stream_complete(prompt, **options)

    async def acomplete(self, prompt: str, **options: Any) -> Any:
        """Return what `complete` returns, with an event loop."""
        return await self.llm.acomplete(prompt, **options)

    async def astream_complete(self, prompt: str, **options: Any) -> Any:
        """Yield what `stream_complete` yields, with an event loop."""
        return await self.llm.astream_complete(prompt, **options)

    def _prepare_chat_with_tools(self, *args: Any, **options: Any) -> dict[str, Any]:
        return dict(self.llm._prepare_chat_with_tools(*args, **options))


def _all(history: Sequence[Any] | None, said: Any) -> list[Any]:
    """Return the messages of a call; the user's new message may be given separately, also as text."""
    new = [] if said is None else [ChatMessage(role="user", content=said) if isinstance(said, str) else said]
    return [*(history or ()), *new]


def _usage(answer: ChatResponse) -> Usage | None:
    """Return the usage of an answer, if it includes the provider's own answer."""
    raw = answer.raw
    return read_usage(raw.model_dump(mode="json") if isinstance(raw, BaseModel) else raw)
