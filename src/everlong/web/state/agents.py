"""Choose the agent that speaks in a thread: with the model chosen there, and with tools if they are on."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from everlong.agent import (
    DEFAULT_CONFIG,
    NO_STANDING_CONTEXT,
    Agent,
    AgentConfig,
    Permissions,
    Tool,
    workspace_agent,
)
from everlong.compress import PRESETS
from everlong.engine import Call, Engine, due_at
from everlong.errors import BudgetImpossible, Refused
from everlong.web.state.models import ChosenModel, Models
from everlong.web.state.settings import THRESHOLDS, AppSettings, Choices, choices_of, own_settings, with_choices
from everlong.windows import Window

__all__ = ["Agents", "ThreadAgent"]

NEW = ""  # the name of a thread that is not there yet
LOCAL_REPLY = 220  # tokens; a model on this machine writes some twenty a second and does not stop by itself
LOCAL_SYSTEM = "You are a helpful assistant. Answer in a few sentences."


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

    def __init__(self, engine: Engine, models: Models, config: AgentConfig, permissions: Permissions) -> None:
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
        agent = self._agent(chosen)
        client = chosen.client
        call = replace(
            await agent.call(thread),
            fmt=client.fmt,
            endpoint=client.endpoint,
            provider=client.provider,
            served=served,
        )
        return ThreadAgent(agent=agent, call=call, chosen=chosen, choices=choices, window=window)

    async def thresholds(self, model: str) -> Mapping[str, Sequence[int]]:
        """Return where each preset starts to compact in a new thread with a model, in tokens, for every percent.

        Empty if the window is unknown, or the model cannot be used.
        """
        try:
            chosen = self._models.chosen(model)
            call = await self._agent(chosen).call(NEW)
        except Refused:
            return {}
        return await asyncio.to_thread(self._thresholds, chosen, call)

    def _thresholds(self, chosen: ChosenModel, call: Call) -> Mapping[str, Sequence[int]]:
        window = self._models.window(chosen.source, chosen.name, self.settings)
        if not window.known:
            return {}
        engine = self._engine.blocking.context
        base = replace(engine.settings, window=window.context)
        at = {
            name: [replace(base, preset=name, threshold=percent / 100) for percent in THRESHOLDS]
            for name, preset in PRESETS.items()
            if not preset.untouched
        }
        try:
            return {
                name: [due_at(engine.threads, each, call, registry=engine.registry) for each in settings]
                for name, settings in at.items()
            }
        except BudgetImpossible:
            return {}

    def _store_settings(self, thread: str, *, known: bool) -> None:
        """Store the thread's own settings, only if they differ: a change moves the thread to the top of the list."""
        threads = self._engine.threads
        stored = threads.thread(thread)
        settings, choices = own_settings(stored, self.settings, known=known)
        if settings != stored.settings or choices != choices_of(stored):
            threads.change(thread, settings=settings, metadata=with_choices(stored.metadata, choices))

    def _agent(self, chosen: ChosenModel) -> Agent:
        config = replace(self._config, model=chosen.name)
        if chosen.source.local:
            system = LOCAL_SYSTEM if config.system == DEFAULT_CONFIG.system else config.system
            config = replace(config, system=system, max_tokens=config.max_tokens or LOCAL_REPLY)
        if not self.settings.tools or chosen.source.local:
            return Agent(self._engine, chosen.client, (), config, NO_STANDING_CONTEXT, self._permissions)
        return workspace_agent(self._engine, chosen.client, config, more=self.mcp_tools, permissions=self._permissions)
