"""CrewAI: an LLM that wraps another LLM, so that agents go past its context window.

    agent = Agent(role=…, goal=…, backstory=…, llm=EverlongLLM("gpt-4o", "chat.db"), tools=[…])

CrewAI's hook before a call sees neither the tools nor the provider's answer, and changes the agent's own messages. A
custom LLM (`BaseLLM`) sees everything and changes nothing: the agent keeps every message, and CrewAI's own summaries
never run. A conversation is recognised by its system text and its task.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from everlong.adapters.calls import asend, send, thread_of
from everlong.adapters.keeper import RECALL, RECALL_DESCRIPTION, Keeper, missing
from everlong.engine import Author, Engine, Settings
from everlong.wire import Usage

try:
    from crewai import LLM, BaseLLM
    from crewai.llms.base_llm import call_stop_override, call_stream_override
    from crewai.tools import BaseTool, tool
    from pydantic import PrivateAttr
except ImportError as error:
    raise missing("CrewAI 1.15 or newer", "crewai>=1.15", __name__) from error

__all__ = ["EverlongLLM"]

#: The attributes that CrewAI reads from an LLM.
FIELDS = ("model", "provider", "temperature", "top_p", "max_tokens", "stream", "seed", "stop", "base_url", "is_litellm")
FILES = "files"  # attached by CrewAI itself just before a message is sent


class EverlongLLM(BaseLLM):
    """A CrewAI LLM that sends what fits and recovers from refusals.

    `llm` is an LLM or the name of a model, `engine` an Engine or a store's URL, and `thread` a name for this object's
    conversations in the store. The other arguments are those of `Keeper`.
    """

    llm_type: str = "everlong"
    _llm: Any = PrivateAttr()
    _keeper: Keeper = PrivateAttr()
    _thread: str = PrivateAttr()
    _newest: str = PrivateAttr(default="")

    def __init__(  # noqa: PLR0913 - the keeper's keywords, and the adapter's own
        self,
        llm: BaseLLM | str,
        engine: Engine | str = "memory:",
        *,
        thread: str = "",
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        authors: Sequence[Author] = (),
    ) -> None:
        inner = LLM(model=llm) if isinstance(llm, str) else llm
        super().__init__(**{name: getattr(inner, name) for name in FIELDS})
        self._llm = inner
        self._keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=False, authors=authors)
        self._thread = thread or uuid4().hex

    def call(self, messages: Any, tools: Any = None, *args: Any, **options: Any) -> Any:
        """Return the LLM's answer to as many of the messages as fit."""

        def model(items: Any) -> Any:
            with self._as_set():
                return self._llm.call(items, tools, *args, **options)

        if isinstance(messages, str):
            return model(messages)
        bare, whole = _without_files(messages)
        prepared = self._keeper.prepare(self._thread_of(bare), bare, **self._asked(tools))
        return send(self._keeper, prepared, lambda now: model(whole(now.messages)), self._usage_since())

    async def acall(self, messages: Any, tools: Any = None, *args: Any, **options: Any) -> Any:
        """Do what `call` does, in an event loop."""

        async def model(items: Any) -> Any:
            with self._as_set():
                return await self._llm.acall(items, tools, *args, **options)

        if isinstance(messages, str):
            return await model(messages)
        bare, whole = _without_files(messages)
        prepared = await self._keeper.aprepare(self._thread_of(bare), bare, **self._asked(tools))
        return await asend(self._keeper, prepared, lambda now: model(whole(now.messages)), self._usage_since())

    def _thread_of(self, messages: Sequence[Any]) -> str:
        self._newest = thread_of(self._thread, messages)
        return self._newest

    def _asked(self, tools: Any) -> dict[str, Any]:
        limit = int(self.max_tokens) if self.max_tokens else None
        return {"model": self.model, "tools": tools or (), "max_tokens": limit}

    @contextmanager
    def _as_set(self) -> Iterator[None]:
        """Pass on what CrewAI set for this call: stop words, and whether to stream."""
        with call_stop_override(self._llm, list(self.stop_sequences)):
            stream = self._effective_stream()
            if stream is None:
                yield
                return
            with call_stream_override(self._llm, stream):
                yield

    def _usage_since(self) -> Callable[[Any], Usage | None]:
        """Return a function that returns the usage of the call, if it was the only call of its LLM meanwhile."""
        before = self._llm.get_token_usage_summary()

        def usage(_: Any) -> Usage | None:
            now = self._llm.get_token_usage_summary()
            if now.successful_requests - before.successful_requests != 1:
                return None
            prompt = now.prompt_tokens - before.prompt_tokens
            cached = now.cached_prompt_tokens - before.cached_prompt_tokens
            return Usage(prompt=prompt, cached=cached, output=now.completion_tokens - before.completion_tokens)

        return usage

    def recall_tool(self) -> BaseTool:
        """Return a tool with which the agent can fetch what left the window."""
        self._keeper.recall = True  # from now on, what is left out names the tool

        def recall(what: str, start: int = 0) -> str:
            return self._keeper.recalled(self._newest, what, start)

        recall.__doc__ = RECALL_DESCRIPTION
        return tool(RECALL)(recall)

    # --- what CrewAI asks an LLM -----------------------------------------------------------------

    def is_context_window_overflowing_threshold(self, *_: Any, **__: Any) -> bool:
        """Return False: what is sent always fits."""
        return False

    def summarize_messages(self, *_: Any, **__: Any) -> None:
        """Do nothing: the messages stay complete."""

    def get_context_window_size(self) -> int:
        """Return the LLM's own value."""
        return int(self._llm.get_context_window_size())

    def get_input_tokens_count(self, *args: Any, **options: Any) -> int:
        """Return the LLM's own value."""
        return int(self._llm.get_input_tokens_count(*args, **options))

    def get_token_usage_summary(self) -> Any:
        """Return the LLM's own value."""
        return self._llm.get_token_usage_summary()

    def supports_function_calling(self) -> bool:
        """Return the LLM's own value."""
        return bool(getattr(self._llm, "supports_function_calling", bool)())

    def supports_stop_words(self) -> bool:
        """Return the LLM's own value."""
        return bool(self._llm.supports_stop_words())

    def supports_multimodal(self) -> bool:
        """Return the LLM's own value."""
        return bool(self._llm.supports_multimodal())

    def format_text_content(self, text: str) -> dict[str, Any]:
        """Return the LLM's own value."""
        return dict(self._llm.format_text_content(text))

    def get_file_uploader(self) -> Any:
        """Return the LLM's own value."""
        return self._llm.get_file_uploader()

    def to_config_dict(self) -> dict[str, Any]:
        """Return the configuration of the wrapped LLM."""
        return dict(self._llm.to_config_dict())


def _without_files(messages: Sequence[Any]) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    """Return the messages without the files that CrewAI attaches, and a function that puts them back."""
    bare = [{key: said[key] for key in said if key != FILES} if FILES in said else said for said in messages]
    whole = {id(copy): said for copy, said in zip(bare, messages, strict=True) if copy is not said}
    return bare, lambda items: [whole.get(id(item), item) for item in items]
