"""A small registry of our own, in the shape of the real one: makers, resellers, clouds, a server of one's own."""

from everlong.windows.entries import MODELS_DEV, Entry
from everlong.windows.registry import Registry
from everlong.windows.sources.litellm import LITELLM

JULY, MAY = "2026-07-02", "2026-05-01"


def row(provider: str, model: str, context: int | None = None, **fields: object) -> Entry:
    """A row of models.dev unless `table` says otherwise."""
    given: dict[str, object] = {"table": MODELS_DEV, "date": JULY, "context": context, **fields}
    return Entry(provider, model, **given)  # type: ignore[arg-type]


SMALL = Registry(
    (
        row("anthropic", "claude-opus-4-5", 200_000, output=64_000, usd_input=5.0, usd_cache_read=0.5),
        row("anthropic", "claude-opus-4-5-20251101", 200_000, output=64_000),
        row("anthropic", "claude-3-5-sonnet-20240620", 200_000),
        row("anthropic", "claude-3-5-sonnet-20241022", 201_000),
        row("amazon-bedrock", "anthropic.claude-opus-4-5-20251101-v1:0", 199_000),
        row("google-vertex", "claude-opus-4-5@20251101", 198_000),
        row("venice", "claude-opus-4-5", 190_000),
        row("openai", "gpt-4", 8_192),
        row("openai", "gpt-4o", 128_000, output=16_384, usd_input=2.5, usd_output=10.0),
        row("openai", "gpt-4o-mini", 127_000),
        row("openai", "gpt-5", 400_000, input=272_000, output=128_000),
        row("openai", "gpt-5", None, input=272_000, table=LITELLM, date=MAY),
        row("azure", "gpt-4o", 126_000),
        row("deepseek", "deepseek-chat", 1_000_000, output=384_000),
        row("deepseek", "deepseek-chat", None, input=131_072, output=8_192, table=LITELLM, date=MAY),
        row("deepseek", "deepseek-v4-flash", 1_000_000),
        row("openrouter", "deepseek/deepseek-chat", 128_000),
        row("openrouter", "openai/gpt-4o", 125_000),
        row("nano-gpt", "NousResearch/hermes-4-70b", 131_072),
        row("kilo", "nousresearch/hermes-4-70b", 131_072),
        row("chutes", "nousresearch/hermes-4-70b", 40_000),
        row("mistral", "mistral-7b-instruct", 32_000),
        row("ollama", "llama3.1", None, input=8_192, table=LITELLM, date=MAY),
        row("ollama", "mistral", None, input=8_192, table=LITELLM, date=MAY),
    )
)
