"""Google's Agent Development Kit: a plugin that keeps sessions going past the context window, and a summarizer.

    app = App(name="desk", root_agent=agent, plugins=[EverlongPlugin("desk.db")])

Before each model call the plugin fits the contents of the request; the session keeps every event. Each agent of a
session has its own thread, because each agent sees the session differently.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from everlong.adapters.keeper import RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS, Keeper, missing
from everlong.adapters.sdk_errors import sdk_errors
from everlong.core import Message, is_framed, user_text
from everlong.engine import Engine, Prepared, Settings
from everlong.summarize import Summary, as_message, facts_of, spoken, summary_by_rules, written
from everlong.tokens import Counter
from everlong.wire import GEMINI, Usage, library_named

try:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions, EventCompaction
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools import BaseTool, ToolContext
    from google.genai.types import Content, FunctionDeclaration, GenerateContentResponseUsageMetadata, Part
except ImportError as error:
    raise missing("Google ADK 2.13 or newer", "google-adk>=2.13", __name__) from error

__all__ = ["EverlongPlugin", "EverlongSummarizer"]

SYSTEM = "system"
KEPT = 256  # summaries in memory


class EverlongPlugin(BasePlugin):
    """A plugin that fits every model request of an app, recovers from refusals and offers the tool `recall`.

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
        name: str = "everlong",
    ) -> None:
        super().__init__(name=name)
        self.keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=recall)
        self._recall = _RecallTool(self.keeper) if recall else None
        #: Requests that were sent and are not answered yet, by thread.
        self._sent: dict[str, tuple[Prepared, LlmRequest]] = {}

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Fit the contents of a request. A conversation that Google's servers store is left alone."""
        if llm_request.previous_interaction_id:
            return
        if self._recall is not None and RECALL not in llm_request.tools_dict:
            llm_request.append_tools([self._recall])
        thread = thread_of(callback_context)
        prepared = await self.keeper.aprepare(
            thread,
            [*_system_of(llm_request), *llm_request.contents],
            model=llm_request.model or "",
            tools=[tool.model_dump(mode="json", exclude_none=True, by_alias=True) for tool in _tools_of(llm_request)],
            max_tokens=llm_request.config.max_output_tokens,
            fmt=GEMINI.name,
        )
        _send(llm_request, prepared)
        self._sent[thread] = prepared, llm_request

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """Ask again with a smaller request if the model refused one as too long. The answer comes in one piece."""
        thread = thread_of(callback_context)
        prepared, _ = self._sent.pop(thread, (None, None))
        refusal = error
        while prepared is not None:
            prepared = await self.keeper.arefused(prepared, refusal)
            if prepared is None:
                break
            _send(llm_request, prepared)
            try:
                response = await _ask(callback_context, llm_request)
            except (type(error), *sdk_errors()) as again:
                refusal = again
                continue
            self._sent[thread] = prepared, llm_request
            return response
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Learn from the reported usage, and ask again if the server silently cut the request."""
        if llm_response.partial:
            return None
        response = None
        thread = thread_of(callback_context)
        prepared, request = self._sent.pop(thread, (None, None))
        while prepared is not None and request is not None:
            usage = (response or llm_response).usage_metadata
            prepared = await self.keeper.aanswered(prepared, _usage_of(usage))
            if prepared is not None:
                _send(request, prepared)
                response = await _ask(callback_context, request)
        return response


class _RecallTool(BaseTool):
    """The tool with which a model reads what left its window."""

    def __init__(self, keeper: Keeper) -> None:
        super().__init__(name=RECALL, description=RECALL_DESCRIPTION)
        self._keeper = keeper

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=RECALL_PARAMETERS
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> str:
        """Return the text for the model."""
        what, start = str(args.get("what", "")), args.get("start")
        return await self._keeper.arecalled(
            thread_of(tool_context), what, int(start) if isinstance(start, int | float) else 0
        )


def thread_of(context: CallbackContext) -> str:
    """Return the thread of an agent's history. Example: desk/ann/7d1f/clerk

    A session id is unique only per user and app.
    """
    session = context.session
    names = [session.app_name, session.user_id, session.id, context.agent_name]
    names += [each for each in (context.branch, context.isolation_scope) if each]
    return "/".join(quote(each, safe="") for each in names)


# --- requests and responses --------------------------------------------------------------------


def _system_of(request: LlmRequest) -> list[Content]:
    """The system text as a content before the others, so that it is counted."""
    said = request.config.system_instruction
    if not said:
        return []
    if isinstance(said, str):
        return [Content(role=SYSTEM, parts=[Part(text=said)])]
    return [said.model_copy(update={"role": SYSTEM})] if isinstance(said, Content) else []


def _tools_of(request: LlmRequest) -> list[Any]:
    """The declared tools; functions that the SDK calls itself are declared later."""
    return [tool for tool in request.config.tools or () if hasattr(tool, "model_dump")]


def _send(request: LlmRequest, prepared: Prepared) -> None:
    """Put what fits into a request."""
    contents = prepared.messages
    head = next((at for at, content in enumerate(contents) if content.role != SYSTEM), len(contents))
    said = "\n\n".join(part.text for content in contents[:head] for part in content.parts or () if part.text)
    if said and isinstance(request.config.system_instruction, str | None):
        request.config.system_instruction = said
    request.contents = contents[head:]


async def _ask(context: CallbackContext, request: LlmRequest) -> LlmResponse | None:
    """Call the model of the agent once more."""
    invocation = context.get_invocation_context()
    invocation.increment_llm_call_count()
    llm = await invocation.agent.canonical_model_async(context)
    last = None
    async for response in llm.generate_content_async(request, stream=False):
        last = response
    return last


def _usage_of(usage: GenerateContentResponseUsageMetadata | None) -> Usage | None:
    if usage is None or not usage.prompt_token_count:
        return None
    thoughts = usage.thoughts_token_count or 0
    return Usage(
        prompt=usage.prompt_token_count + (usage.tool_use_prompt_token_count or 0),
        cached=usage.cached_content_token_count or 0,
        output=(usage.candidates_token_count or 0) + thoughts,
        reasoning=thoughts,
    )


# --- summaries of events -----------------------------------------------------------------------


class EverlongSummarizer(BaseEventsSummarizer):
    """Writes a summary of events by rules, without a model call.

    It contains the users' requests in their own words, files, figures, failures and open tasks. Use it with
    `EventsCompactionConfig(summarizer=…)` if the session itself has to stay short.
    """

    def __init__(self, *, tokens: int = 2_000) -> None:
        self.tokens = tokens
        self._counter = Counter()
        #: By their text, so that the next summary continues from it.
        self._summaries: OrderedDict[str, Summary] = OrderedDict()

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        """Return the event that replaces these events; None if they are empty."""
        contents = [event.content for event in events if event.content and event.content.parts]
        if not contents:
            return None
        messages = [message for unit in library_named("google_genai").read(contents) for message in unit.messages]
        content = Content(role="model", parts=[Part(text=self._written(messages))])
        compaction = EventCompaction(
            start_timestamp=events[0].timestamp, end_timestamp=events[-1].timestamp, compacted_content=content
        )
        return Event(author="user", invocation_id=Event.new_id(), actions=EventActions(compaction=compaction))

    def _written(self, messages: list[Message]) -> str:
        before = messages[0].text
        previous = self._summaries.get(before)
        language = spoken(map(user_text, messages))
        facts = facts_of(messages, previous.facts) if previous is not None else facts_of(messages)
        summary = summary_by_rules(facts, language)
        text = as_message(written(summary, counter=self._counter, limit=self.tokens), language).text
        if previous is None and is_framed(before):  # a summary from an earlier process
            text = f"{before}\n\n{text}"
        self._summaries[text] = summary
        if len(self._summaries) > KEPT:
            self._summaries.popitem(last=False)
        return text
