"""Choose the agent that speaks in a thread: with the model chosen there, and with tools if they are on."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from everlong.agent import (
    DEFAULT_CONFIG,
    NO_STANDING_CONTEXT,
    Agent,
    AgentConfig,
    Permissions,
    StandingContext,
    Tool,
    recall_tool,
    workspace_agent,
)
from everlong.compress import PRESETS
from everlong.core import JsonText, Message, Role, Thread
from everlong.engine import Call, Due, Engine, first_due
from everlong.errors import BudgetImpossible, Refused
from everlong.web.state.models import ChosenModel, Models
from everlong.web.state.settings import THRESHOLDS, AppSettings, Choices, choices_of, own_settings, with_choices
from everlong.windows import Window
from everlong.wire import format_named

__all__ = ["Agents", "ThreadAgent"]

NEW = ""  # the name of a thread that is not there yet
FALLBACK = "en"
OPENAI, NEWER_LENGTH = "openai", "max_completion_tokens"
LOCAL_REPLY = 220  # tokens; a model on this machine writes some twenty a second and does not stop by itself
#: Instructions in the person's language, if nobody set any: for a conversation without tools, and for the model on this
#: machine.
PLAIN: Mapping[str, str] = {
    "en": "You are a helpful assistant. Answer in the language in which you are asked.",
    "zh": "你是一位乐于助人的助手。对方用什么语言提问，就用什么语言回答。",
}
BRIEF: Mapping[str, str] = {
    "en": "You are a helpful assistant. Answer in a few sentences.",
    "zh": "你是一位乐于助人的助手。请用几句话回答。",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadAgent:
    """The agent of a thread with all it needs: its call, its model, the choices of the person, and the window."""

    agent: Agent
    call: Call
    chosen: ChosenModel
    choices: Choices
    window: Window


class Agents:
    """The agents of all threads, made when they are needed. The app sets `settings` when they change."""

    def __init__(
        self, engine: Engine, models: Models, config: AgentConfig, permissions: Permissions, *, tools: bool = True
    ) -> None:
        self._may_have_tools = tools
        self.settings = AppSettings()
        self.mcp_tools: Sequence[Tool] = ()
        self._engine = engine
        self._models = models
        self._config = config
        self._permissions = permissions

    async def for_thread(self, thread: str) -> ThreadAgent:
        """Return the agent of a thread, its stored settings adapted to the model. Raises Refused without a model."""
        stored = await asyncio.to_thread(self._engine.threads.thread, thread)
        choices = choices_of(stored)
        chosen = self._models.chosen(choices.model or await asyncio.to_thread(self._models.default))
        served = await self._models.served(chosen)
        window = await asyncio.to_thread(self._models.window, chosen.source, chosen.name, self.settings)
        await asyncio.to_thread(self._store_settings, thread, known=window.known)
        usual = not choices.options.system and self._config.system == DEFAULT_CONFIG.system
        instructed = usual and await asyncio.to_thread(self.begins_with_system, stored)
        agent = self._agent(chosen, choices, instructed=instructed)
        client = chosen.client
        call = replace(
            await agent.call(thread),
            fmt=client.fmt,
            endpoint=client.endpoint,
            provider=client.provider,
            served=served,
        )
        return ThreadAgent(agent=agent, call=call, chosen=chosen, choices=choices, window=window)

    async def thresholds(self, model: str) -> Mapping[str, Sequence[Due]]:
        """Return when each preset compacts in a new thread with a model, for every percent.

        A preset that does not use the threshold has none. Empty if the window is unknown, or the model cannot be used.
        """
        try:
            chosen = self._models.chosen(model)
            call = await self._agent(chosen, Choices()).call(NEW)
        except Refused:
            return {}
        return await asyncio.to_thread(self._thresholds, chosen, call)

    def _thresholds(self, chosen: ChosenModel, call: Call) -> Mapping[str, Sequence[Due]]:
        window = self._models.window(chosen.source, chosen.name, self.settings)
        if not window.known:
            return {}
        engine = self._engine.blocking.context
        base = replace(engine.settings, window=window.context)
        found: dict[str, list[Due]] = {}
        for name, preset in PRESETS.items():
            at = [replace(base, preset=name, threshold=percent / 100) for percent in THRESHOLDS]
            try:
                dues = [
                    first_due(engine.threads, each, call, registry=engine.registry)
                    for each in at
                    if not preset.untouched
                ]
            except BudgetImpossible:
                return {}
            found[name] = [due for due in dues if due is not None]
        return found

    def _store_settings(self, thread: str, *, known: bool) -> None:
        """Store the thread's own settings, only if they differ: a change moves the thread to the top of the list."""
        threads = self._engine.threads
        stored = threads.thread(thread)
        settings, choices = own_settings(stored, self.settings, known=known)
        if settings != stored.settings or choices != choices_of(stored):
            threads.change(thread, settings=settings, metadata=with_choices(stored.metadata, choices))

    def begins_with_system(self, thread: Thread) -> bool:
        """Whether the thread holds system text of its own: the server's, an import's, or one of an earlier version."""
        first = next(iter(self._engine.threads.read(thread.id, 0, 1)), None) if thread.length else None
        return first is not None and isinstance(first.entry, Message) and first.entry.role is Role.SYSTEM

    def _agent(self, chosen: ChosenModel, choices: Choices, *, instructed: bool = False) -> Agent:
        """Return an agent with the options of a thread. `instructed`: the thread begins with system text.

        Instructions that a person may change are sent with each request and stored in no thread. Instructions that the
        server was started with are stored at the beginning of a thread, unless the person set others before it began.
        """
        if chosen.source.witness:  # it would only quote the instructions
            tools, plain = (recall_tool(self._engine),), replace(self._config, model=chosen.name, system="")
            return Agent(self._engine, chosen.client, tools, plain, NO_STANDING_CONTEXT, self._permissions)
        options, local = choices.options, chosen.source.local
        wanted = self.settings.tools if options.tools is None else options.tools
        with_tools = wanted and self._may_have_tools and not local
        usual = self._config.system == DEFAULT_CONFIG.system
        config = replace(
            self._config,
            model=chosen.name,
            temperature=self._config.temperature if options.temperature is None else options.temperature,
            max_tokens=options.max_tokens or self._config.max_tokens or (LOCAL_REPLY if local else None),
        )
        config = replace(config, extra=_extra(chosen, config.max_tokens, options.top_p))
        instructions = options.system
        if not instructions and usual and not instructed:
            language = choices.language or self.settings.language or FALLBACK
            instructions = DEFAULT_CONFIG.system if with_tools else (BRIEF if local else PLAIN)[language]
        if with_tools:
            return workspace_agent(
                self._engine,
                chosen.client,
                config,
                more=self.mcp_tools,
                permissions=self._permissions,
                instructions=instructions,
            )
        standing = StandingContext(instructions=instructions)
        config = replace(config, system="" if instructions else config.system)
        return Agent(self._engine, chosen.client, (), config, standing, self._permissions)


def _extra(chosen: ChosenModel, max_tokens: int | None, top_p: float | None) -> JsonText:
    """Return the fields of the body that only some formats and providers have."""
    api = format_named(chosen.client.fmt).api
    fields = {} if top_p is None else api.drawn_from(top_p)
    if max_tokens is not None and chosen.source.endpoint.provider == OPENAI and NEWER_LENGTH in api.lengths:
        fields[NEWER_LENGTH] = max_tokens  # its reasoning models need this field, and its others accept it
    return json.dumps(fields) if fields else ""
