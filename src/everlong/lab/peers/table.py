"""Who is compared: a row each, with the name it is called by, where it runs and which way of its adapter it is.

Rows only, standard library only: a peer's own process reads this too.
"""

from dataclasses import dataclass

__all__ = ["PEERS", "PEER_NAMES", "PeerRow"]


@dataclass(frozen=True, slots=True)
class PeerRow:
    """`adapter` is a module in `adapters/`, `strategy` one of the ways it offers; `talk` is for dialogues only."""

    name: str
    title: str
    environment: str
    adapter: str
    strategy: str
    talk: bool = False

    @property
    def module(self) -> str:
        """The full name of its adapter."""
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
    PeerRow("openai-agents", "openai-agents ToolOutputTrimmer", "openai-agents", "openai_agents_trimmer", "trim"),
    PeerRow("strands", "strands sliding, overflow loop", "strands", "strands_sliding", "sliding"),
    PeerRow("headroom", "headroom compress", "headroom", "headroom_compress", "compress"),
    PeerRow("minilm", "BM25 + MiniLM embeddings, rank fusion", "minilm", "minilm", "fusion", talk=True),
)

PEERS = {row.name: row for row in _ROWS}
PEER_NAMES = tuple(PEERS)
