"""smolagents: a model that wraps another model, so that agents go past its context window.

    agent = CodeAgent(tools=[...], model=EverlongModel(OpenAIModel("gpt-4o"), "chat.db"))

smolagents has no id for a run, so a conversation is recognised by its system text and its first task. Agents build
their messages from their memory before each step, so a compaction changes what is sent and never what the agent
remembers.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from everlong.adapters.calls import send, stream, thread_of
from everlong.adapters.keeper import RECALL, RECALL_DESCRIPTION, Keeper, missing
from everlong.engine import Author, Engine, Prepared, Settings
from everlong.wire import Usage

try:
    from smolagents import Model, Tool
    from smolagents.models import ChatMessage, get_tool_json_schema
except ImportError as error:
    raise missing("smolagents 1.26 or newer", "smolagents>=1.26", __name__) from error

__all__ = ["EverlongModel"]


class EverlongModel(Model):
    """A smolagents model that sends what fits and recovers from refusals.

    `engine` is an Engine or a store's URL, and `thread` a name for this object's conversations in the store. The other
    arguments are those of `Keeper`.
    """

    def __init__(  # noqa: PLR0913 - the keeper's keywords, and the adapter's own
        self,
        model: Model,
        engine: Engine | str = "memory:",
        *,
        thread: str = "",
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        authors: Sequence[Author] = (),
    ) -> None:
        super().__init__(
            flatten_messages_as_text=model.flatten_messages_as_text,
            tool_name_key=model.tool_name_key,
            tool_arguments_key=model.tool_arguments_key,
            model_id=model.model_id,
        )
        self.model = model
        self.keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=False, authors=authors)
        self._thread = thread or uuid4().hex
        self._newest = ""
        if hasattr(model, "generate_stream"):  # agents check for this method to see whether a model can stream
            self.generate_stream = self._stream

    def generate(self, messages: list[Any], *args: Any, **options: Any) -> Any:
        """Return the model's answer to as many of the messages as fit."""
        prepared = self._prepared(messages, options)
        return send(self.keeper, prepared, lambda now: self.model.generate(now.messages, *args, **options), _usage)

    def _stream(self, messages: list[Any], *args: Any, **options: Any) -> Iterator[Any]:
        prepared = self._prepared(messages, options)
        yield from stream(
            self.keeper, prepared, lambda now: self.model.generate_stream(now.messages, *args, **options), _usage
        )

    def _prepared(self, messages: list[Any], options: dict[str, Any]) -> Prepared:
        items = [ChatMessage.from_dict(dict(item)) if isinstance(item, dict) else item for item in messages]
        tools = [get_tool_json_schema(tool) for tool in options.get("tools_to_call_from") or ()]
        self._newest = thread_of(self._thread, items)
        return self.keeper.prepare(
            self._newest,
            items,
            model=self.model_id or "",
            tools=tools,
            max_tokens=options.get("max_tokens") or self.model.kwargs.get("max_tokens"),
        )

    def recall_tool(self) -> Tool:
        """Return a tool with which the agent can fetch what left the window."""
        self.keeper.recall = True  # from now on, what is left out names the tool
        return _Recall(self)

    def recalled(self, what: str, start: int = 0) -> str:
        """Return what the most recently sent conversation contains about this."""
        return self.keeper.recalled(self._newest, what, start)

    def to_dict(self) -> dict[str, Any]:
        """Return the description of the wrapped model."""
        return dict(self.model.to_dict())


def _usage(answer: Any) -> Usage | None:
    used = answer.token_usage
    return None if used is None else Usage(prompt=used.input_tokens, output=used.output_tokens)


class _Recall(Tool):
    """The recall tool. smolagents reads a tool's description from its class."""

    name = RECALL
    description = RECALL_DESCRIPTION
    inputs = {  # noqa: RUF012 - smolagents reads it from the class
        "what": {"type": "string", "description": "a reference, or a few words"},
        "start": {"type": "integer", "description": "the first character to show", "nullable": True},
    }
    output_type = "string"

    def __init__(self, model: EverlongModel) -> None:
        super().__init__()
        self._model = model

    def forward(self, what: str, start: int = 0) -> str:
        """Return the text that was found."""
        return self._model.recalled(what, start or 0)
