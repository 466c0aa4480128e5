"""The table of frameworks: the source of each, the driver that runs it, its modes and the window of its model.

Rows only. A framework runs with our adapter in every mode, and with its own compaction and with nothing in the first
one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from everlong.lab.adapters.errand import Errand
from everlong.lab.clients.script import Tasks
from everlong.lab.environments import CORE, Environment, NpmPackages

__all__ = ["ADAPTERS", "HOWS", "AdapterRow", "with_everlong"]

#: How a framework is run: with our adapter; with our adapter but without the window, so that it has to recover from a
#: refusal; with the framework's own compaction; with none.
HOWS = ("everlong", "untold", "own", "nothing")
#: Three times the window of programs with long system texts.
LONG = Errand(Tasks(count=6, files=8, lines=120))
TYPESCRIPT = "typescript@5.9.3"  # builds our npm package


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterRow:
    """One framework. `driver` is a module of `drivers`, or a file there that node runs.

    `modes` are a dialect (chat, responses, messages, contents), with "stream" if answers are streamed.
    """

    name: str
    title: str
    driver: str
    home: Environment | NpmPackages
    modes: tuple[str, ...]
    model: str = "scripted"
    #: Another model for a dialect, if the framework needs a name that it knows.
    models: Mapping[str, str] = field(default_factory=dict)
    #: The model's window in tokens, including the reply.
    window: int = 16_000
    errand: Errand = field(default_factory=Errand)
    #: The framework's own compaction; "" if it has none.
    own: str = ""
    #: Whether the framework lets an adapter recover from a refusal.
    recovers: bool = True
    #: Whether the adapter needs `everlong serve`, which is then started.
    served: bool = False

    def model_in(self, mode: str) -> str:
        """Return the model for a mode."""
        return self.models.get(mode.partition(" ")[0], self.model)

    def runs(self) -> list[tuple[str, str]]:
        """Return every mode with the way to run it."""
        wanted = {"everlong": True, "untold": self.recovers, "own": bool(self.own), "nothing": True}
        first = [(self.modes[0], how) for how in HOWS if wanted[how]]
        return [*first, *((mode, "everlong") for mode in self.modes[1:])]


def with_everlong(name: str, *packages: str) -> Environment:
    """Return an environment with a framework and everlong's own requirements. Example: "openai-agents>=0.24,<1" """
    return Environment(f"adapter-{name}", (*packages, *CORE.requires))


CLAUDE = {"messages": "claude-sonnet-4-5"}

ADAPTERS: dict[str, AdapterRow] = {
    row.name: row
    for row in (
        AdapterRow(
            name="langchain",
            title="LangChain",
            driver="langchain",
            home=with_everlong("langchain", "langchain>=1.4,<2", "langchain-openai>=1,<2", "langchain-anthropic>=1,<2"),
            modes=("chat", "chat stream", "responses", "responses stream", "messages", "messages stream"),
            models={"messages": "claude-sonnet-5"},
            own="SummarizationMiddleware",
        ),
        AdapterRow(
            name="pydantic-ai",
            title="pydantic-ai",
            driver="pydantic_ai",
            home=with_everlong(
                "pydantic-ai", "pydantic-ai-slim[openai,anthropic]>=2", "pydantic-ai-harness[anthropic]>=0.62,<1"
            ),
            modes=("chat", "chat stream", "responses", "responses stream", "messages", "messages stream"),
            models={"messages": "claude-sonnet-5"},
            own="TieredCompaction of pydantic-ai-harness",
        ),
        AdapterRow(
            name="openai-agents",
            title="OpenAI Agents SDK",
            driver="openai_agents",
            home=with_everlong("openai-agents", "openai-agents>=0.24,<1"),
            modes=("chat", "chat stream", "responses", "responses stream"),
            own="ToolOutputTrimmer",
        ),
        AdapterRow(
            name="google-adk",
            title="Google ADK",
            driver="google_adk",
            home=with_everlong("google-adk", "google-adk>=2.13,<3"),
            modes=("contents", "contents stream"),
            own="EventsCompactionConfig",
        ),
        AdapterRow(
            name="strands",
            title="Strands Agents",
            driver="strands",
            home=with_everlong("strands", "strands-agents[anthropic,openai]>=1.62,<2"),
            modes=("chat stream", "chat", "messages stream"),
            models=CLAUDE,
            own="SummarizingConversationManager",
        ),
        AdapterRow(
            name="agent-framework",
            title="Microsoft Agent Framework",
            driver="agent_framework",
            home=with_everlong("agent-framework", "agent-framework-core>=1.23,<2", "agent-framework-openai>=1.17,<2"),
            modes=("chat", "chat stream", "responses", "responses stream"),
            own="ContextWindowCompactionStrategy",
        ),
        AdapterRow(
            name="llama-index",
            title="LlamaIndex",
            driver="llama_index",
            home=with_everlong(
                "llama-index",
                "llama-index-core>=0.14",
                "llama-index-llms-openai>=0.8",
                "llama-index-llms-openai-like>=0.8",
                "llama-index-llms-anthropic",
                "anthropic<1",  # it cannot read the answers of newer versions
            ),
            modes=("chat", "chat stream", "responses", "messages", "messages stream"),
            models=CLAUDE,
            own="Memory with a token limit",
        ),
        AdapterRow(
            name="litellm",
            title="litellm (its proxy)",
            driver="litellm_proxy",
            home=with_everlong("litellm", "litellm[proxy]>=1.100,<2"),
            modes=("chat", "chat stream"),
        ),
        AdapterRow(
            name="crewai",
            title="CrewAI",
            driver="crewai",
            home=with_everlong("crewai", "crewai[anthropic]>=1.15"),
            modes=("chat", "chat stream", "messages"),
            model="gpt-4o",
            models=CLAUDE,
            own="respect_context_window",
            # Each task of a crew is a separate conversation.
            errand=Errand(Tasks(count=1, files=54, lines=50), single=True),
        ),
        AdapterRow(
            name="autogen",
            title="AutoGen",
            driver="autogen",
            # Newer versions of anthropic do not accept what it sends.
            home=with_everlong(
                "autogen", "autogen-agentchat>=0.7", "autogen-ext[anthropic,openai]>=0.7", "anthropic<1"
            ),
            modes=("chat", "chat stream", "messages", "messages stream"),
            own="BufferedChatCompletionContext",
        ),
        AdapterRow(
            name="smolagents",
            title="smolagents",
            driver="smolagents",
            home=with_everlong("smolagents", "smolagents[openai]>=1.26,<2"),
            modes=("chat", "chat stream"),
            own="a step callback that drops old observations",
        ),
        AdapterRow(
            name="haystack",
            title="Haystack",
            driver="haystack",
            home=with_everlong("haystack", "haystack-ai>=3,<4"),
            modes=("chat", "chat stream", "responses", "responses stream"),
            own="CompactionHook with SummarizationCompactor",
        ),
        AdapterRow(
            name="ai-sdk",
            title="Vercel AI SDK",
            driver="ai_sdk.mjs",
            home=NpmPackages(
                "npm-adapter-ai-sdk", ("ai@^7", "@ai-sdk/openai@^4", "@ai-sdk/anthropic@^4", "zod@^4", TYPESCRIPT)
            ),
            modes=("chat", "chat stream", "responses", "messages stream"),
            models={"messages": "claude-sonnet-4-5"},
            own="pruneMessages",
            recovers=False,
            served=True,
        ),
        AdapterRow(
            name="opencode",
            title="opencode",
            driver="opencode",
            home=NpmPackages("npm-adapter-opencode", ("opencode-ai@^1.18", TYPESCRIPT), program="opencode"),
            modes=("chat stream",),
            window=32_000,
            errand=LONG,
            own="compaction and pruning",
            recovers=False,
            served=True,
        ),
        AdapterRow(
            name="openclaw",
            title="OpenClaw",
            driver="openclaw",
            home=NpmPackages("npm-adapter-openclaw", ("openclaw@^2026.9", TYPESCRIPT), program="openclaw"),
            modes=("chat stream",),
            window=32_000,
            errand=Errand(Tasks(count=12, files=4, lines=120)),  # what one turn reads is not shortened
            own="its context engine",
            recovers=False,
            served=True,
        ),
    )
}
