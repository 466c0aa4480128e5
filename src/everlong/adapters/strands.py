"""Strands Agents: a conversation manager that keeps an agent going past the context window.

    agent = Agent(model, tools=[…], conversation_manager=EverlongConversationManager("desk.db"))

The manager wraps each model call and fits the messages of that call only. `agent.messages` stays complete, so sessions
keep every message and only the name of the thread has to be restored.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from uuid import uuid4

from everlong.adapters.keeper import RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS, Keeper, missing
from everlong.adapters.sdk_errors import sdk_errors
from everlong.engine import Engine, Prepared, Settings
from everlong.errors import InputError
from everlong.wire import ANTHROPIC, Usage, given_back, library_named

try:
    from strands import tool
    from strands.agent.conversation_manager import ConversationManager
    from strands.hooks import AgentInitializedEvent, HookRegistry
    from strands.middleware import InvokeModelContext, InvokeModelStage, ModelStopReason
    from strands.types.exceptions import ContextWindowOverflowException
except ImportError as error:
    raise missing("Strands Agents 1.62 or newer", "strands-agents>=1.62", __name__) from error

__all__ = ["EverlongConversationManager"]

SYSTEM = "system"
Message = dict[str, Any]


class EverlongConversationManager(ConversationManager):
    """Fits every model request of one agent, recovers from refusals and offers the tool `recall`.

    `engine` is an Engine, or the URL of a store such as "desk.db". `thread` names the conversation in it; without one,
    a session manager keeps a generated name. The other arguments are those of `Keeper`.
    """

    def __init__(
        self,
        engine: Engine | str = "memory:",
        *,
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        recall: bool = True,
        thread: str = "",
    ) -> None:
        super().__init__()
        self.keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=recall)
        self.thread = thread or f"strands-{uuid4().hex}"
        self._recall = recall
        self._attached = False
        #: Messages with which another manager replaced those it had removed.
        self._before: list[Message] = []

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Wait for the agent, which is not complete yet."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(AgentInitializedEvent, self._attach)

    def _attach(self, event: AgentInitializedEvent) -> None:
        if self._attached:
            raise InputError("a conversation manager serves only one agent: create another EverlongConversationManager")
        self._attached = True
        agent: Any = event.agent
        agent.add_middleware(InvokeModelStage, self._invoke)
        if self._recall and RECALL not in agent.tool_names:
            agent.tool_registry.process_tools([self._recall_tool()])

    def _recall_tool(self) -> Any:
        @tool(name=RECALL, description=RECALL_DESCRIPTION, inputSchema={"json": RECALL_PARAMETERS})
        async def recall(what: str, start: int = 0) -> str:
            return await self.keeper.arecalled(self.thread, what, start)

        return recall

    # --- the manager's part ----------------------------------------------------------------------

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Do nothing: the agent's messages stay complete."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:  # noqa: ARG002 - theirs
        """Raise the overflow again: recovery was already tried where it happened."""
        if e is not None:
            raise e

    def get_state(self) -> dict[str, Any]:
        """Return the state that a session keeps of this manager."""
        return {**super().get_state(), "thread": self.thread, "before": self._before}

    def restore_from_session(self, state: dict[str, Any]) -> list[Any] | None:
        """Continue where a session ended, even one that another manager compacted."""
        self.removed_message_count = state.get("removed_message_count", 0)
        if state.get("__name__") == type(self).__name__:
            self.thread, self._before = state["thread"], state["before"]
        elif state.get("summary_message"):
            self._before = [state["summary_message"]]
        return list(self._before) or None

    # --- model calls -----------------------------------------------------------------------------

    async def _invoke(
        self, context: InvokeModelContext, next_fn: Callable[[InvokeModelContext], AsyncIterator[Any]]
    ) -> AsyncIterator[Any]:
        """Send what fits; if it is refused because of its size, send less."""
        request = _Request(context)
        prepared: Prepared | None = await self.keeper.aprepare(
            self.thread,
            request.messages,
            model=request.model,
            tools=request.tools,
            max_tokens=request.max_tokens,
            fmt=ANTHROPIC.name,  # the form of Converse, with the strictest rules
        )
        while prepared is not None:
            usage: Usage | None = None
            try:
                async for event in next_fn(request.with_messages(prepared.messages)):
                    if isinstance(event, ModelStopReason):
                        usage = _usage_of(event.usage)
                    yield event
            except (ContextWindowOverflowException, *sdk_errors()) as error:
                prepared = await self.keeper.arefused(prepared, error)
                if prepared is None:
                    raise
                continue
            # Another request follows if the server silently cut the last one; of two answers, the later one counts.
            prepared = await self.keeper.aanswered(prepared, usage)


class _Request:
    """A model call of Strands: its messages, and the same call with other messages."""

    def __init__(self, context: InvokeModelContext) -> None:
        self._context = context
        self._library = library_named("strands")
        system = context.system_prompt
        blocks = [{"text": system}] if isinstance(system, str) else system or []
        head = [{"role": SYSTEM, "content": blocks}] if blocks else []
        self._units = self._library.read([*head, *context.messages])
        self.messages = [message for unit in self._units for message in unit.messages]
        settings: Any = context.model.get_config()
        values = settings if isinstance(settings, dict) else vars(settings)
        params = values.get("params") or {}
        self.model = str(values.get("model_id") or "")
        limits = (values.get("max_tokens"), params.get("max_completion_tokens"), params.get("max_tokens"))
        self.max_tokens = next((limit for limit in limits if isinstance(limit, int)), None)
        self.tools = [
            ANTHROPIC.tools.declare(spec["name"], spec["description"], spec["inputSchema"].get("json", {}))
            for spec in context.tool_specs
        ]

    def with_messages(self, sent: Sequence[Any]) -> InvokeModelContext:
        """Return the call with these messages."""
        items = given_back(self._library, self._units, sent)
        head = next((at for at, item in enumerate(items) if item["role"] != SYSTEM), len(items))
        blocks = [block for item in items[:head] for block in item["content"]]
        as_it_was = isinstance(self._context.system_prompt, str) and [{"text": self._context.system_prompt}] == blocks
        return self._context.replace(
            messages=items[head:], system_prompt=self._context.system_prompt if as_it_was else blocks or None
        )


def _usage_of(usage: Any) -> Usage | None:
    """Return the usage. Some providers include cached tokens in the input and others do not; the total has them all."""
    output = usage.get("outputTokens", 0)
    prompt = usage.get("totalTokens", 0) - output
    if prompt <= 0:
        return None
    cached, stored = usage.get("cacheReadInputTokens", 0), usage.get("cacheWriteInputTokens", 0)
    return Usage(prompt=prompt, cached=cached, cache_written=stored, output=output)
