"""Spellings of model names, and the key that all spellings of a model share.

One model is "claude-opus-4-5", "anthropic/claude-opus-4.5", "us.anthropic.claude-opus-4-5-20251101-v1:0" or
"claude-opus-4-5@20251101". The key of a name is its last path segment in lower case, without region and vendor, with
dashes as separators. Dates, revisions and ":free" at the end are release marks: the name still means the same model.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from everlong.windows.providers import canonical

__all__ = ["Spelling", "is_chat", "key_of", "prefixes", "spelling_of", "tails", "unmarked"]

FOLDED = str.maketrans("._@ ", "----")
BOUNDARY = re.compile(r"[-:/]")  # the separators of a key; the others have become dashes

REGION_AND_VENDOR = re.compile(
    r"(?:(?:us|us-gov|eu|apac|ap|jp|au|ca|sa|in|global)\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen"
    r"|writer|zai)\.(?=[a-z])"
)
OWN_FILE = re.compile(r"gguf|ggml|exl[23]\b|\bmlx\b")  # file formats of models that people run themselves
RELEASE_MARKS = re.compile(
    r"(?:-20\d{6}|-20\d\d-\d\d-\d\d|-default|-latest|-v\d+:\d+|:\d+k|\[\w+\]"
    r"|:(?:free|thinking|beta|extended|nitro|floor|online|exacto|cloud|latest))+$"
)
NOT_CHAT = re.compile(
    r"embed|whisper|\btts|tts\b|melotts|rerank|transcri|moderation|dall-e|imagen|\bveo|\bflux|diffusion|sdxl|\bsora"
    r"|\bkling|seedance|seedream|prompt-guard|text-to-audio|\bmusic\b|lyria|\bwan\d|recraft|ideogram|runway|elevenlabs"
    r"|topaz|\bbge-|\be5-|mini-?lm|-asr-|imagine-(?:image|video)|gpt-image|chatgpt-image|qwen-image|video-detector"
    r"|\bhailuo|\bt2v\b|\bi2v\b|-mpnet-"
)


@dataclass(frozen=True, slots=True)
class Spelling:
    """A model name in its parts: the provider ("" if none), the path before the name, and its key."""

    text: str
    provider: str
    path: tuple[str, ...]
    key: str

    @property
    def is_own_file(self) -> bool:
        """Whether it names a file that people run themselves. Example: "unsloth/Qwen3-32B-GGUF"."""
        return OWN_FILE.search(self.text) is not None


def spelling_of(model: str, provider: str = "") -> Spelling:
    """Split a model name into its parts. A `provider` argument overrides one in the name.

    Example: "OpenRouter/deepseek/deepseek-chat" -> provider "openrouter", key "deepseek-chat"
    """
    text = model.strip().lower()
    *path, tail = [segment for segment in text.split("/") if segment] or [""]
    named = canonical(provider)
    if not named and (text.startswith("arn:aws:bedrock") or REGION_AND_VENDOR.match(tail)):
        named = "amazon-bedrock"
    return Spelling(text, named or canonical(path[0] if path else ""), tuple(path), key_of(text))


def key_of(model: str) -> str:
    """Return the key shared by all spellings of a model.

    Example: "us.anthropic.Claude-Opus-4.5" -> "claude-opus-4-5".
    """
    tail = model.strip().lower().rstrip("/").rpartition("/")[2]
    vendor = REGION_AND_VENDOR.match(tail) if "." in tail else None
    return tail[vendor.end() if vendor else 0 :].removeprefix("ft:").translate(FOLDED)


def unmarked(key: str) -> str:
    """Return the key without release marks. Example: "claude-opus-4-5-20251101-v1:0" -> "claude-opus-4-5"."""
    return RELEASE_MARKS.sub("", key)


def prefixes(key: str) -> Iterator[str]:
    """Yield shorter keys that end at a word boundary, longest first, except single words without digits.

    Example: "gpt-4o-mini-high" -> "gpt-4o-mini", "gpt-4o"
    """
    for end in reversed([found.start() for found in BOUNDARY.finditer(key)]):
        prefix = key[:end]
        if "-" in prefix or any(letter.isdigit() for letter in prefix):
            yield prefix


def tails(key: str) -> Iterator[str]:
    """Yield the key without its leading words. Example: "my-gpt-4o" -> "gpt-4o", "4o"."""
    for found in BOUNDARY.finditer(key):
        yield key[found.end() :]


def is_chat(model: str) -> bool:
    """Whether a model chats; False for models that only embed, rerank, or handle images, video or audio."""
    return NOT_CHAT.search(model.lower()) is None
