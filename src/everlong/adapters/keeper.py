"""The code that all adapters share: one engine, and for each model call the messages that a framework should send.

The history stays with the framework. A thread of the engine follows it under the framework's own conversation id, so
that each request begins like the one before it until a compaction is due. Methods come in two versions: plain, and with
an `a` in front for event loops.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from everlong.core import expect, expect_list
from everlong.engine import (
    MOST_RECALLED,
    RECALL,
    Author,
    Call,
    Engine,
    Prepared,
    Settings,
    Summaries,
    ToolLike,
    expect_authors,
)
from everlong.errors import EverlongError, InputError, NotRecovered
from everlong.store import open_engine
from everlong.windows import window
from everlong.wire import FORMATS, OPENAI_CHAT, Usage

__all__ = ["RECALL", "RECALL_DESCRIPTION", "RECALL_PARAMETERS", "Keeper", "missing"]

RECALLED_SHARE = 0.8  # characters for each token of the window: about a fifth of the window
LEAST_RECALLED = 2_000  # characters
MOST_THREADS = 1_000  # threads whose windows are remembered
RECALL_DESCRIPTION: Final = (
    "Return what was left out of this conversation: the original of a reference, or what matches a few words."
)
RECALL_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "what": {"type": "string", "description": "a reference, such as 3f0c9a1b7d2e4856, or a few words"},
        "start": {
            "type": "integer",
            "description": "the first character to show, to read on in a long original",
            "default": 0,
        },
    },
    "required": ["what"],
    "additionalProperties": False,
}


class Keeper:
    """Keeps the conversations of a framework within the context windows of its models.

    - `engine`: an Engine, or the URL of a store. With the default, everything is in memory and lost when the program
      ends.
    - `settings`: the engine's settings, if `engine` is a URL.
    - `window`: the context window in tokens, for models that the registry does not know.
    - `pins`: texts that are part of every request.
    - `recall`: whether the model gets a tool to fetch what left the window, if the framework has tools.
    - `authors`: models that write summaries, if there is an event loop. With tools, summaries also need
      `Settings(summaries="on")`.
    """

    def __init__(
        self,
        engine: Engine | str = "memory:",
        *,
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        recall: bool = True,
        authors: Sequence[Author] = (),
    ) -> None:
        expect("engine", engine, (Engine, str), "an engine, or the URL of a store, such as 'chat.db'")
        expect_list("pins", pins, "a list of texts")
        expect_authors(authors)
        if isinstance(engine, Engine) and (settings is not None or window is not None):
            example = "…" if window is None else f"window={window!r}"
            raise InputError(
                "settings and window are the engine's own: pass them when you open it, "
                f"such as open_engine('chat.db', settings=Settings({example}))"
            )
        self.engine = engine if isinstance(engine, Engine) else _opened(engine, settings or Settings(), window)
        self.recall = recall
        self._pins = tuple(pins)
        self._pinned: set[str] = set()
        #: For each thread, how many characters of recalled text the model can read at once.
        self._readable: dict[str, int] = {}
        self._authors = tuple(authors)
        self.summaries = Summaries(self.engine, authors, own_model=False) if authors else None

    def prepare(  # noqa: PLR0913 - whose messages, for which model; all but those by name
        self,
        thread: str,
        items: Sequence[Any],
        *,
        model: str,
        tools: Sequence[ToolLike] = (),
        max_tokens: int | None = None,
        fmt: str = "",
        provider: str = "",
        endpoint: str = "",
        library: str = "",
    ) -> Prepared:
        """Return what to send now (`.messages`) for the complete history of a conversation.

        `fmt` is the wire format in which the framework calls the model, by default that of the model's provider.
        `library` names the kind of messages if they are plain dicts that do not show it.
        """
        self._pin(thread)
        call = Call(
            model=model,
            fmt=fmt or format_of(model, provider),
            tools=tools,
            max_tokens=max_tokens,
            provider=provider,
            endpoint=endpoint,
            recall_tool=RECALL if self.recall else "",
        )
        prepared = self.engine.blocking.prepare(thread, call, history=items, library=library)
        self._readable[thread] = int(prepared.budget.window * RECALLED_SHARE)
        while len(self._readable) > MOST_THREADS:
            del self._readable[next(iter(self._readable))]
        return prepared

    def refused(self, prepared: Prepared, error: BaseException) -> Prepared | None:
        """Return another request to send after the framework's call raised; None if its own error should be raised."""
        try:
            return self.engine.blocking.refused(prepared, error)
        except NotRecovered:
            raise
        except EverlongError:
            return None

    def answered(self, prepared: Prepared, usage: Usage | None) -> Prepared | None:
        """Record the answer of a call. Returns another request if the server silently cut the prompt."""
        return self.engine.blocking.answered(prepared, usage)

    def failed(self, prepared: Prepared, reason: str = "the answer broke off") -> None:
        """Record that the call failed."""
        self.engine.blocking.record_failure(prepared, reason)

    def recalled(self, thread: str, what: str, start: int = 0) -> str:
        """Return the text that a model reads when it calls the recall tool."""
        if not what.strip():
            return "what: give a reference or a few words"
        most = min(MOST_RECALLED, max(LEAST_RECALLED, self._readable.get(thread, MOST_RECALLED)))
        return self.engine.blocking.recall_text(thread, what, start=start, most=most)

    async def aprepare(self, thread: str, items: Sequence[Any], **call: Any) -> Prepared:
        """Do what `prepare` does, off the event loop."""
        return await asyncio.to_thread(self.prepare, thread, items, **call)

    async def arefused(self, prepared: Prepared, error: BaseException) -> Prepared | None:
        """Do what `refused` does, off the event loop."""
        return await asyncio.to_thread(self.refused, prepared, error)

    async def aanswered(self, prepared: Prepared, usage: Usage | None) -> Prepared | None:
        """Do what `answered` does, off the event loop, and start a summary if one is due."""
        again = await asyncio.to_thread(self.answered, prepared, usage)
        if self.summaries is not None and again is None:
            self.summaries.after_turn(prepared, self._authors[0].model)
        return again

    async def afailed(self, prepared: Prepared, reason: str) -> None:
        """Do what `failed` does, off the event loop."""
        await asyncio.to_thread(self.failed, prepared, reason)

    async def arecalled(self, thread: str, what: str, start: int = 0) -> str:
        """Do what `recalled` does, off the event loop."""
        return await asyncio.to_thread(self.recalled, thread, what, start)

    def _pin(self, thread: str) -> None:
        if not self._pins or thread in self._pinned:
            return
        self.engine.blocking.append(thread, [])  # a pin needs an existing thread
        for text in self._pins:
            self.engine.blocking.pin(thread, text=text)
        self._pinned.add(thread)


def format_of(model: str, provider: str = "") -> str:
    """Return the wire format of a model's provider; OpenAI's chat format if the model is unknown.

    Example: "claude-sonnet-4-5" -> "anthropic"
    """
    maker = provider or window(model).provider
    found = (form for form in FORMATS.values() if form.server_side is not None and form.server.maker == maker)
    return next((form.name for form in found if maker), OPENAI_CHAT.name)


def missing(framework: str, needs: str, module: str) -> ImportError:
    """Return the one-line error for a framework that is not installed, with the command that installs it.

    Example: missing("LangChain", "langchain>=1.4", __name__)
    """
    return ImportError(f'{module} needs {framework}: pip install "{needs}"')


def _opened(url: str, settings: Settings, window: int | None) -> Engine:
    return open_engine(url, settings=settings if window is None else replace(settings, window=window))
