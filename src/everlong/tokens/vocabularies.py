"""The vocabulary in which a model counts.

One table: the longest pattern found at the start of a path segment of the model's name decides. An
exact row names a vocabulary that splintr carries; the others name the estimate that comes closest
and how far off it may be before any usage was reported.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["UNKNOWN", "Vocabulary", "name_segments", "vocabulary_of"]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A way to count. `spread` is the relative error to expect: 0 with the model's own tokenizer."""

    name: str
    exact: bool
    spread: float


def _exact(name: str) -> Vocabulary:
    return Vocabulary(name, exact=True, spread=0.0)


def _nearest(name: str, spread: float) -> Vocabulary:
    return Vocabulary(name, exact=False, spread=spread)


#: Nothing known: the estimate for o200k; other vocabularies differ from it by up to about this much.
UNKNOWN = _nearest("o200k_base", 0.25)

#: No tokenizer of a current Claude exists offline; its newest vocabularies write up to a fifth more.
CLAUDE = _nearest("claude", 0.20)

ROWS: tuple[tuple[str, Vocabulary], ...] = (
    ("gpt-4o", _exact("o200k_base")),
    ("gpt-4.1", _exact("o200k_base")),
    ("gpt-4.5", _exact("o200k_base")),
    ("gpt-5", _exact("o200k_base")),
    ("gpt-oss", _exact("o200k_base")),
    ("chatgpt-4o", _exact("o200k_base")),
    ("codex", _exact("o200k_base")),
    ("o1", _exact("o200k_base")),
    ("o3", _exact("o200k_base")),
    ("o4", _exact("o200k_base")),
    ("gpt-4", _exact("cl100k_base")),
    ("gpt-3.5", _exact("cl100k_base")),
    ("gpt-35", _exact("cl100k_base")),
    ("text-embedding", _exact("cl100k_base")),
    ("claude", CLAUDE),
    ("gemini", _exact("gemma3")),
    ("gemini-3.1", _exact("gemma4")),
    ("gemini-3.5", _exact("gemma4")),
    ("gemma", _exact("gemma3")),
    ("gemma-2", _exact("gemma2")),
    ("gemma2", _exact("gemma2")),
    ("gemma-4", _exact("gemma4")),
    ("gemma4", _exact("gemma4")),
    ("qwen", _exact("qwen3")),
    ("qwq", _exact("qwen3")),
    ("qvq", _exact("qwen3")),
    ("deepseek", _exact("deepseek_v3")),
    ("deepseek-r1-distill-qwen", _exact("qwen3")),
    ("deepseek-r1-distill-llama", _exact("llama3")),
    ("kimi", _exact("kimi_k2")),
    ("moonshot", _exact("kimi_k2")),
    ("glm", _exact("glm4")),
    ("chatglm", _exact("glm4")),
    ("glm-5", _nearest("o200k_base", 0.15)),
    ("llama-2", _exact("llama2")),
    ("llama2", _exact("llama2")),
    ("llama-3", _exact("llama3")),
    ("llama3", _exact("llama3")),
    ("meta-llama-3", _exact("llama3")),
    ("meta.llama3", _exact("llama3")),
    ("llama-4", _nearest("llama3", 0.15)),
    ("llama4", _nearest("llama3", 0.15)),
    ("mistral", _exact("mistral_v3")),
    ("ministral", _exact("mistral_v3")),
    ("magistral", _exact("mistral_v3")),
    ("devstral", _exact("mistral_v3")),
    ("pixtral", _exact("mistral_v3")),
    ("open-mistral-nemo", _exact("mistral_v3")),
    ("codestral", _exact("mistral_v2")),
    ("open-mixtral-8x22b", _exact("mistral_v2")),
    ("mixtral-8x22b", _exact("mistral_v2")),
    ("mixtral", _exact("mistral_v1")),
    ("open-mixtral", _exact("mistral_v1")),
    ("mistral-7b", _exact("mistral_v1")),
    ("open-mistral-7b", _exact("mistral_v1")),
    ("phi-4", _exact("phi4")),
    ("phi4", _exact("phi4")),
)

_BY_LENGTH = sorted(ROWS, key=lambda row: -len(row[0]))
_HOST = re.compile(r"^(?:(?:us|eu|ap|apac|global|jp|au)\.)?(?:anthropic\.)?")


def name_segments(model: str) -> list[str]:
    """The pieces of a model's name, each without the region and vendor that a cloud writes before it.

    Example: "bedrock/us.anthropic.claude-opus-4-5" -> ["bedrock", "claude-opus-4-5"]
    """
    return [_HOST.sub("", segment) for segment in model.lower().split("/")]


@lru_cache(maxsize=1_024)
def vocabulary_of(model: str) -> Vocabulary:
    """The vocabulary of a model, whatever stands around its name.

    Example: "openrouter/openai/gpt-4o-mini" -> o200k_base, exact; "claude-opus-4-5" -> claude, estimated
    """
    for name in reversed(name_segments(model)):
        for start, vocabulary in _BY_LENGTH:
            if name.startswith(start) and _ends_well(start, name[len(start) : len(start) + 1]):
                return vocabulary
    return UNKNOWN


def _ends_well(start: str, following: str) -> bool:
    """`o1` is `o1-mini` but not `o100`."""
    return not (start[-1].isdigit() and following.isdigit())
