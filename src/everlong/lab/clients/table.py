"""The table of clients: the source of each, the driver that runs it, its modes, its tasks and its windows.

Rows only. A client with a large system text and many tools gets a window for these and a few files; the others get a
window for a few files. Coding agents work until their results are three times the window.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from everlong.lab.clients.edits import Edits
from everlong.lab.clients.script import Tasks, Work
from everlong.lab.environments import ENVIRONMENTS, Environment, NpmPackages

__all__ = ["CLIENTS", "ClientRow"]

OPENAI_MODES = ("chat", "chat stream", "responses", "responses stream")
ANTHROPIC_MODES = ("messages", "messages stream")
GEMINI_MODES = ("contents", "contents stream")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow:
    """One client. `driver` is a module of `drivers`, or a file there that node runs.

    `windows` are the model's windows in tokens, including the reply; each is a separate run.
    """

    name: str
    title: str
    driver: str
    home: Environment | NpmPackages
    modes: tuple[str, ...]
    model: str = "scripted"
    #: Another model for a dialect, if the client needs a name that it knows.
    models: Mapping[str, str] = field(default_factory=dict)
    windows: tuple[int, ...] = (16_000,)
    tasks: Work = field(default_factory=Tasks)
    #: Whether its server is an Ollama, which silently cuts long prompts.
    truncates: bool = False

    def model_in(self, mode: str) -> str:
        """Return the model for a mode."""
        return self.models.get(mode.partition(" ")[0], self.model)


#: Files of about 2,000 tokens: 48 of them are three times a window of 32,000.
LONG = Tasks(count=6, files=8, lines=120)
#: The same, as one piece of work in two parts.
STEADY = Tasks(count=2, files=12, lines=240)
#: Two pieces of work, each three times that window.
SEPARATE = Tasks(count=2, files=24, lines=240)
CLAUDE = {"messages": "claude-sonnet-4-5"}

CLIENTS: dict[str, ClientRow] = {
    row.name: row
    for row in (
        ClientRow(
            name="openai",
            title="OpenAI SDK (Python)",
            driver="sdks.openai_sdk",
            home=Environment("openai-sdk", ("openai>=2",)),
            modes=OPENAI_MODES,
        ),
        ClientRow(
            name="anthropic",
            title="Anthropic SDK (Python)",
            driver="sdks.anthropic_sdk",
            home=Environment("anthropic-sdk", ("anthropic>=0.80",)),
            modes=ANTHROPIC_MODES,
        ),
        ClientRow(
            name="ollama",
            title="ollama (Python)",
            driver="sdks.ollama_client",
            home=Environment("ollama-client", ("ollama>=0.5",)),
            modes=("chat", "chat stream"),
            model="llama3.2",
            windows=(16_384,),
            truncates=True,
            tasks=Tasks(count=9),
        ),
        ClientRow(
            name="langchain",
            title="LangChain",
            driver="frameworks.langchain_agent",
            home=Environment(
                "langchain-agents", ("langchain>=1.4,<2", "langchain-openai>=1", "langchain-anthropic>=1")
            ),
            modes=(*OPENAI_MODES, *ANTHROPIC_MODES),
        ),
        ClientRow(
            name="pydantic-ai",
            title="pydantic-ai",
            driver="frameworks.pydantic_ai_agent",
            home=Environment("pydantic-ai-agents", ("pydantic-ai-slim[anthropic,openai]>=2",)),
            modes=(*OPENAI_MODES, *ANTHROPIC_MODES),
        ),
        ClientRow(
            name="openai-agents",
            title="OpenAI Agents SDK",
            driver="frameworks.openai_agents",
            home=ENVIRONMENTS["openai-agents"],
            modes=OPENAI_MODES,
        ),
        ClientRow(
            name="litellm",
            title="litellm (as SDK)",
            driver="sdks.litellm_sdk",
            home=Environment("litellm-sdk", ("litellm>=1.100,<2", "mcp>=1")),
            modes=("chat", "chat stream", *ANTHROPIC_MODES),
        ),
        ClientRow(
            name="nanobot",
            title="nanobot",
            driver="programs.nanobot_agent",
            home=Environment("nanobot", ("nanobot-ai>=0.3",)),
            modes=("chat stream",),
            windows=(24_000,),
        ),
        ClientRow(
            name="ai-sdk",
            title="Vercel AI SDK",
            driver="sdks/ai_sdk.mjs",
            home=NpmPackages("npm-ai-sdk", ("ai", "@ai-sdk/openai", "@ai-sdk/anthropic", "zod")),
            modes=(*OPENAI_MODES, *ANTHROPIC_MODES),
        ),
        ClientRow(
            name="claude-code",
            title="Claude Code",
            driver="programs.claude_code",
            home=NpmPackages("npm-claude-code", ("@anthropic-ai/claude-code",), program="claude"),
            modes=("messages stream",),
            model="claude-sonnet-4-5",
            windows=(40_000,),
        ),
        ClientRow(
            name="codex",
            title="Codex",
            driver="programs.codex",
            home=NpmPackages("npm-codex", ("@openai/codex",), program="codex"),
            modes=("responses stream",),
            model="gpt-5",
            windows=(24_000,),
        ),
        ClientRow(
            name="qwen-code",
            title="Qwen Code",
            driver="programs.qwen_code",
            home=NpmPackages("npm-qwen-code", ("@qwen-code/qwen-code",), program="qwen"),
            modes=("chat stream", "responses stream", "messages stream"),
            model="qwen3-coder-plus",
            windows=(32_000,),
            tasks=LONG,
        ),
        ClientRow(
            name="openclaw",
            title="OpenClaw",
            driver="programs.openclaw_agent",
            home=NpmPackages("npm-openclaw", ("openclaw",), program="openclaw"),
            modes=("chat stream",),
            windows=(32_000,),
            tasks=LONG,
        ),
        ClientRow(
            name="opencode",
            title="opencode",
            driver="programs.opencode_agent",
            home=NpmPackages("npm-opencode", ("opencode-ai",), program="opencode"),
            modes=("chat stream",),
            windows=(32_000,),
            tasks=LONG,
        ),
        ClientRow(
            name="aider",
            title="aider",
            driver="programs.aider_chat",
            home=Environment("aider", ("aider-chat>=0.86",)),
            modes=("chat stream",),
            model="gpt-4o",
            windows=(32_000,),
            tasks=Edits(),
        ),
        ClientRow(
            name="smolagents",
            title="smolagents",
            driver="frameworks.smolagents_agent",
            home=Environment("smolagents", ("smolagents[openai]>=1.26,<2",)),
            modes=("chat", "chat stream"),
            windows=(32_000,),
            tasks=STEADY,
        ),
        ClientRow(
            name="pi",
            title="pi",
            driver="programs.pi_agent",
            # Version 1 depends on packages that were not in the registry when it was tried.
            home=NpmPackages("npm-pi", ("@earendil-works/pi-coding-agent@<1",), program="pi"),
            modes=("chat stream", "responses stream", "messages stream"),
            windows=(32_000,),
            tasks=LONG,
        ),
        ClientRow(
            name="llm",
            title="llm",
            driver="programs.llm_program",
            home=Environment("llm", ("llm>=0.36",)),
            modes=OPENAI_MODES,
        ),
        ClientRow(
            name="instructor",
            title="instructor",
            driver="sdks.instructor_steps",
            home=Environment("instructor", ("instructor[anthropic]>=1.17",)),
            modes=("chat", "messages"),
        ),
        ClientRow(
            name="dspy",
            title="DSPy",
            driver="frameworks.dspy_agent",
            home=Environment("dspy", ("dspy>=3.4",)),
            modes=("chat",),
            model="gpt-4o",
        ),
        ClientRow(
            name="llama-index",
            title="LlamaIndex",
            driver="frameworks.llama_index_agent",
            home=Environment(
                "llama-index",
                (
                    "llama-index-core>=0.14",
                    "llama-index-llms-openai>=0.8",
                    "llama-index-llms-openai-like>=0.8",
                    "llama-index-llms-anthropic",
                    "anthropic<1",  # it cannot read the answers of newer versions
                ),
            ),
            modes=(*OPENAI_MODES, *ANTHROPIC_MODES),
            models=CLAUDE,
        ),
        ClientRow(
            name="autogen",
            title="AutoGen",
            driver="frameworks.autogen_agent",
            # Newer versions of anthropic do not accept what it sends.
            home=Environment(
                "autogen", ("autogen-agentchat>=0.7", "autogen-ext[anthropic,openai]>=0.7", "anthropic<1")
            ),
            modes=("chat", "chat stream", *ANTHROPIC_MODES),
        ),
        ClientRow(
            name="google-genai",
            title="Google Gen AI SDK (Python)",
            driver="sdks.google_genai",
            home=Environment("google-genai", ("google-genai>=1.50",)),
            modes=GEMINI_MODES,
            model="gemini-2.5-flash",
        ),
        ClientRow(
            name="gemini-cli",
            title="Gemini CLI",
            driver="programs.gemini_cli",
            home=NpmPackages("npm-gemini-cli", ("@google/gemini-cli",), program="gemini"),
            modes=("contents stream",),
            model="gemini-2.5-flash",
            windows=(32_000,),
            tasks=LONG,
        ),
        ClientRow(
            name="semantic-kernel",
            title="Semantic Kernel",
            driver="frameworks.semantic_kernel_agent",
            home=Environment("semantic-kernel", ("semantic-kernel[anthropic]>=1.45",)),
            modes=("chat", "chat stream", *ANTHROPIC_MODES),
        ),
        ClientRow(
            name="crewai",
            title="CrewAI",
            driver="frameworks.crewai_agent",
            home=Environment("crewai", ("crewai[anthropic]>=1.15",)),
            modes=("chat", "chat stream", *ANTHROPIC_MODES),
            model="gpt-4o",
            models=CLAUDE,
            windows=(32_000,),
            tasks=SEPARATE,
        ),
    )
}
