"""The agent that speaks in a thread: by the model chosen there, with tools if they are on. Asks no model itself."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from everlong.agent import (
    DEFAULT_CONFIG,
    NOTHING,
    Agent,
    AgentConfig,
    Approve,
    Spawning,
    Standing,
    Todos,
    Tool,
    spawn_tools,
    standard_tools,
    workspace_standing,
)
from everlong.engine import Call, Engine
from everlong.web.state.models import ChosenModel, Models
from everlong.web.state.settings import AppSettings, Choices, choices_of, own_settings, with_choices
from everlong.windows import Window

__all__ = ["Agents", "ThreadAgent"]

LOCAL_REPLY = 220  # tokens; a model on this machine writes some twenty a second and does not stop by itself
LOCAL_SYSTEM = "You are a helpful assistant. Answer in a few sentences."


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadAgent:
    """All that a thread needs to speak: who, with which call, and what is known of the window."""

    agent: Agent
    call: Call
    chosen: ChosenModel
    choices: Choices
    window: Window


class Agents:
    """Agents by model, made when they are needed. `settings` are the app's, set anew when they change."""

    def __init__(self, engine: Engine, models: Models, config: AgentConfig, approve: Approve) -> None:
        self.settings = AppSettings()
        self.more: Sequence[Tool] = ()
        self._engine = engine
        self._models = models
        self._config = config
        self._approve = approve
        self._todos = Todos(engine.threads)

    async def for_thread(self, thread: str) -> ThreadAgent:
        """Who speaks in the thread, its settings brought in line with what is known of the model. Raises Refused."""
        kept = await asyncio.to_thread(self._engine.threads.thread, thread)
        choices = choices_of(kept)
        chosen = self._models.chosen(choices.model or await asyncio.to_thread(self._models.default))
        served = await self._models.served(chosen)
        window = await asyncio.to_thread(self._models.window, chosen.source, chosen.name, self.settings)
        await asyncio.to_thread(self._keep, thread, known=window.known)
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

    def _keep(self, thread: str, *, known: bool) -> None:
        """The thread's own settings; written only where they differ, for a change moves a thread to the top."""
        threads = self._engine.threads
        kept = threads.thread(thread)
        settings, choices = own_settings(kept, self.settings, known=known)
        metadata = with_choices(kept.metadata, choices)
        if settings != kept.settings or (choices != choices_of(kept)):
            threads.change(thread, settings=settings, metadata=metadata)

    def _agent(self, chosen: ChosenModel) -> Agent:
        config = replace(self._config, model=chosen.name)
        if chosen.source.local:
            system = LOCAL_SYSTEM if config.system == DEFAULT_CONFIG.system else config.system
            config = replace(config, system=system, max_tokens=config.max_tokens or LOCAL_REPLY)
        if not self.settings.tools or chosen.source.local:
            return Agent(self._engine, chosen.client, (), config, NOTHING, self._approve)
        own = (*standard_tools(engine=self._engine), *self.more)
        stands = workspace_standing(config.workspace, todo=self._todos.source)
        below = Spawning(
            engine=self._engine, model=chosen.client, tools=own, config=config, standing=Standing(stands.stable)
        )
        tools = (*own, self._todos.tool, *spawn_tools(below))
        return Agent(self._engine, chosen.client, tools, config, stands, self._approve)
