"""The table of peers: the name of each, its environment, its adapter, and the adapter's strategy.

Rows only, standard library only: a peer's own process reads this too.
"""

from dataclasses import dataclass

__all__ = ["PEERS", "PEER_NAMES", "PeerRow"]


@dataclass(frozen=True, slots=True)
class PeerRow:
    """One peer. `adapter` is a module in `adapters/`, `strategy` one of its strategies; `talk` means dialogues only."""

    name: str
    title: str
    environment: str
    adapter: str
    strategy: str
    talk: bool = False

    @property
    def module(self) -> str:
        """Return the full name of the adapter's module."""
        return f"everlong.lab.peers.adapters.{self.adapter}"


_ROWS = (
    PeerRow("langchain-trim", "langchain trim_messages, documented", "langchain", "langchain_trim", "documented"),
    PeerRow("langchain-trim-exact", "langchain trim_messages, exact counter", "langchain", "langchain_trim", "exact"),
    PeerRow("langchain-trim-defaults", "langchain trim_messages, defaults", "langchain", "langchain_trim", "defaults"),
    PeerRow("langchain-clear", "langchain ClearToolUsesEdit", "langchain", "langchain_middleware", "clear"),
    PeerRow("langchain-summary", "langchain SummarizationMiddleware", "langchain", "langchain_middleware", "summarize"),
    PeerRow("langmem", "langmem summarize_messages", "langmem", "langmem_summary", "summarize"),
    PeerRow("pydantic-sliding", "pydantic-ai-harness sliding, exact", "pydantic-ai", "pydantic_harness", "sliding"),
    PeerRow("pydantic-tiered", "pydantic-ai-harness tiered", "pydantic-ai", "pydantic_harness", "tiered"),
    PeerRow("pydantic-summary", "pydantic-ai-harness summary, exact", "pydantic-ai", "pydantic_harness", "summarize"),
    PeerRow("pydantic-relevance", "pydantic-ai-harness relevance", "pydantic-ai", "pydantic_harness", "relevance"),
    PeerRow("openai-agents", "openai-agents ToolOutputTrimmer", "openai-agents", "openai_agents_trimmer", "trim"),
    PeerRow("strands", "strands sliding, overflow loop", "strands", "strands_sliding", "sliding"),
    PeerRow("strands-context", "strands context manager, auto", "strands", "strands_context", "auto"),
    PeerRow("strands-presets", "strands context manager, presets", "strands", "strands_context", "presets"),
    PeerRow("haystack-sliding", "haystack sliding window, exact", "haystack", "haystack_compaction", "sliding"),
    PeerRow("haystack-prune", "haystack pruning, then sliding", "haystack", "haystack_compaction", "prune"),
    PeerRow("haystack-summary", "haystack summary, then sliding", "haystack", "haystack_compaction", "summarize"),
    PeerRow("agno", "agno Compaction", "agno", "agno_compaction", "compact"),
    PeerRow("agno-search", "agno Compaction, searched once", "agno", "agno_compaction", "search"),
    PeerRow("ag2", "AG2 TokenBudgetPolicy", "ag2", "ag2_budget", "budget"),
    PeerRow("mastra", "Mastra observational memory", "mastra", "mastra_observations", "observe"),
    PeerRow("litellm", "litellm compress, BM25", "litellm", "litellm_compress", "bm25"),
    PeerRow(
        "litellm-minilm", "litellm compress, BM25 + MiniLM", "litellm-minilm", "litellm_minilm", "hybrid", talk=True
    ),
    PeerRow("headroom", "headroom compress", "headroom", "headroom_compress", "compress"),
    PeerRow("bm25-minilm", "BM25 + MiniLM embeddings, rank fusion", "minilm", "minilm", "fusion", talk=True),
)

PEERS = {row.name: row for row in _ROWS}
PEER_NAMES = tuple(PEERS)
