"""How model names are spelt, and what two spellings have in common.

One model is "claude-opus-4-5", "anthropic/claude-opus-4.5", "us.anthropic.claude-opus-4-5-20251101-v1:0" or
"claude-opus-4-5@20251101". The key of a name is its last path segment without region and vendor, folded;
what providers append (dates, revisions, ":free") is a release mark and names the same model.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from everlong.windows.providers import canonical

__all__ = ["Spelling", "is_chat", "key_of", "prefixes", "spelling_of", "tails", "unmarked"]

FOLDED = str.maketrans("._@ ", "----")
BOUNDARY = re.compile(r"[-:/]")  # of a folded key: the other separators are dashes by then

REGION_AND_VENDOR = re.compile(
    r"(?:(?:us|us-gov|eu|apac|ap|jp|au|ca|sa|in|global)\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen"
    r"|writer|zai)\.(?=[a-z])"
)
OWN_FILE = re.compile(r"gguf|ggml|exl[23]\b|\bmlx\b")  # formats that people run themselves
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
    """A name as asked for: the provider it names ("" if none), the path before it, and its key."""

    text: str
    provider: str
    path: tuple[str, ...]
    key: str

    @property
    def is_own_file(self) -> bool:
        """Whether it names a file that people run themselves. Example: "unsloth/Qwen3-32B-GGUF"."""
        return OWN_FILE.search(self.text) is not None


def spelling_of(model: str, provider: str = "") -> Spelling:
    """A name taken apart; a provider given beside it counts more than one inside.

    Example: "OpenRouter/deepseek/deepseek-chat" -> provider "openrouter", key "deepseek-chat"
    """
    text = model.strip().lower()
    *path, tail = [segment for segment in text.split("/") if segment] or [""]
    named = canonical(provider)
    if not named and (text.startswith("arn:aws:bedrock") or REGION_AND_VENDOR.match(tail)):
        named = "amazon-bedrock"
    return Spelling(text, named or canonical(path[0] if path else ""), tuple(path), key_of(text))


def key_of(model: str) -> str:
    """What all spellings of a model share. Example: "us.anthropic.Claude-Opus-4.5" -> "claude-opus-4-5"."""
    tail = model.strip().lower().rstrip("/").rpartition("/")[2]
    vendor = REGION_AND_VENDOR.match(tail) if "." in tail else None
    return tail[vendor.end() if vendor else 0 :].removeprefix("ft:").translate(FOLDED)


def unmarked(key: str) -> str:
    """The key without release marks. Example: "claude-opus-4-5-20251101-v1:0" -> "claude-opus-4-5"."""
    return RELEASE_MARKS.sub("", key)


def prefixes(key: str) -> Iterator[str]:
    """Shorter keys that end where a word ends, longest first; none that is a single plain word.

    Example: "gpt-4o-mini-high" -> "gpt-4o-mini", "gpt-4o"
    """
    for end in reversed([found.start() for found in BOUNDARY.finditer(key)]):
        prefix = key[:end]
        if "-" in prefix or any(letter.isdigit() for letter in prefix):
            yield prefix


def tails(key: str) -> Iterator[str]:
    """What is left when leading words go. Example: "my-gpt-4o" -> "gpt-4o", "4o"."""
    for found in BOUNDARY.finditer(key):
        yield key[found.end() :]


def is_chat(model: str) -> bool:
    """False for what embeds, draws, films, speaks or listens only."""
    return NOT_CHAT.search(model.lower()) is None
