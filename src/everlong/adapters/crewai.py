"""CrewAI: an LLM around the LLM, so that agents go past its window.

    agent = Agent(role=…, goal=…, backstory=…, llm=EverlongLLM("gpt-4o", "chat.db"), tools=[…])

CrewAI's hook before a call is told neither the tools nor what the provider answers, and edits the agent's own
messages. A custom LLM (`BaseLLM`) sees all of it and edits nothing: the agent keeps every message, and CrewAI's own
summaries are never due. A conversation is known by its beginning, the system text and the task.
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

#: What CrewAI reads from an LLM beside calling it.
FIELDS = ("model", "provider", "temperature", "top_p", "max_tokens", "stream", "seed", "stop", "base_url", "is_litellm")
FILES = "files"  # what CrewAI attaches to a message itself, before it is sent


class EverlongLLM(BaseLLM):
    """A CrewAI LLM that sends what fits, and recovers where the provider refuses.

    `llm` is an LLM or the name of a model; `engine` a store's URL or an engine; `thread` names the conversations of
    this object in it.
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
        """Return the LLM's answer to as much of the messages as fits."""

        def model(items: Any) -> Any:
            with self._as_set():
                return self._llm.call(items, tools, *args, **options)

        if isinstance(messages, str):
            return model(messages)
        bare, whole = _without_files(messages)
        prepared = self._keeper.prepare(self._thread_of(bare), bare, **self._asked(tools))
        return send(self._keeper, prepared, lambda now: model(whole(now.messages)), self._usage_since())

    async def acall(self, messages: Any, tools: Any = None, *args: Any, **options: Any) -> Any:
        """Return what `call` returns, with an event loop."""

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
        """Hand on what CrewAI set for this call: words to stop at, and whether to stream."""
        with call_stop_override(self._llm, list(self.stop_sequences)):
            stream = self._effective_stream()
            if stream is None:
                yield
                return
            with call_stream_override(self._llm, stream):
                yield

    def _usage_since(self) -> Callable[[Any], Usage | None]:
        """Return a function that tells what the call cost, if it was the only one of its LLM meanwhile."""
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
        """Return a tool with which the agent finds what is no longer shown."""
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
        """Do nothing: the messages stay whole."""

    def get_context_window_size(self) -> int:
        """Return what the LLM says."""
        return int(self._llm.get_context_window_size())

    def get_input_tokens_count(self, *args: Any, **options: Any) -> int:
        """Return what the LLM says."""
        return int(self._llm.get_input_tokens_count(*args, **options))

    def get_token_usage_summary(self) -> Any:
        """Return what the LLM counted."""
        return self._llm.get_token_usage_summary()

    def supports_function_calling(self) -> bool:
        """Return what the LLM says."""
        return bool(getattr(self._llm, "supports_function_calling", bool)())

    def supports_stop_words(self) -> bool:
        """Return what the LLM says."""
        return bool(self._llm.supports_stop_words())

    def supports_multimodal(self) -> bool:
        """Return what the LLM says."""
        return bool(self._llm.supports_multimodal())

    def format_text_content(self, text: str) -> dict[str, Any]:
        """Return what the LLM says."""
        return dict(self._llm.format_text_content(text))

    def get_file_uploader(self) -> Any:
        """Return what the LLM says."""
        return self._llm.get_file_uploader()

    def to_config_dict(self) -> dict[str, Any]:
        """Return what describes the LLM itself."""
        return dict(self._llm.to_config_dict())


def _without_files(messages: Sequence[Any]) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    """Return the messages without what CrewAI attaches when it sends them, and a function that puts it back."""
    bare = [{key: said[key] for key in said if key != FILES} if FILES in said else said for said in messages]
    whole = {id(copy): said for copy, said in zip(bare, messages, strict=True) if copy is not said}
    return bare, lambda items: [whole.get(id(item), item) for item in items]
