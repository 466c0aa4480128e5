"""C3: counts of four characters a token come far too low on dense text, and compaction too late."""

import json
import random
import string
from base64 import b64encode
from uuid import UUID

import pytest

from everlong.tokens import ESTIMATED, count_exact, estimate
from tests.tokens.test_estimates import (
    CHINESE_CHAT,
    CHINESE_TECHNICAL,
    ENGLISH_CHAT,
    ENGLISH_TECHNICAL,
    JAPANESE_CHAT,
    JAPANESE_TECHNICAL,
    KOREAN_CHAT,
    KOREAN_TECHNICAL,
    PYTHON,
    TYPESCRIPT,
    some_bytes,
    some_json,
    some_logs,
)

NOISE = some_bytes(6_000)


def drawn(alphabet: str, size: int = 6_000) -> str:
    return "".join(random.Random(7).choices(alphabet, k=size))


EMOJI = "".join(map(chr, range(0x1F600, 0x1F650))) + "🎉🚀✅❌🔥👍💡📦🐛✨🙏🎁📝🔍⏳🌍🍎🐍🦀🎯"

DENSE = {
    "Chinese": CHINESE_CHAT + CHINESE_TECHNICAL,
    "Japanese": JAPANESE_CHAT + JAPANESE_TECHNICAL,
    "Korean": KOREAN_CHAT + KOREAN_TECHNICAL,
    "English": ENGLISH_CHAT + ENGLISH_TECHNICAL,
    "code": PYTHON + TYPESCRIPT,
    "base64": b64encode(NOISE).decode(),
    "base64 in lines": "\n".join(b64encode(NOISE[at : at + 57]).decode() for at in range(0, len(NOISE), 57)),
    "data URL": "data:image/png;base64," + b64encode(NOISE).decode(),
    "hex": NOISE.hex(),
    "hex dump": NOISE[:2_000].hex(" "),
    "SHA-1 sums": "\n".join(NOISE[at : at + 20].hex() for at in range(0, 4_000, 20)),
    "digits": drawn(string.digits),
    "numbers": " ".join(str(int.from_bytes(NOISE[at : at + 3])) for at in range(0, 3_000, 3)),
    "emoji": drawn(EMOJI, 1_000),
    "emoji in text": "".join(f"{face} well done " for face in drawn(EMOJI, 100)),
    "random small letters": drawn(string.ascii_lowercase),
    "random letters": drawn(string.ascii_letters),
    "random letters with spaces": drawn(string.ascii_lowercase + "  "),
    "random printable": drawn(string.printable[:95]),
    "random bytes as latin-1": NOISE.decode("latin-1"),
    "log lines": some_logs(),
    "dense JSON": json.dumps([[n, n * 37 % 1_000 / 8, None, "k"] for n in range(400)], separators=(",", ":")),
    "JSON": some_json(None),
    "UUIDs": "\n".join(str(UUID(bytes=NOISE[at : at + 16])) for at in range(0, 4_800, 16)),
    "a million spaces": " " * 1_000_000,
    "a million times a": "a" * 1_000_000,
    "a million underscores": "_" * 1_000_000,
    "a table of rules": ("+" + "-" * 30 + "+" + "=" * 44 + "+\n") * 40,
}


@pytest.mark.parametrize("kind", DENSE)
def test_C3_dense_text_is_not_undercounted(kind: str) -> None:
    assert 0.9 <= estimate(DENSE[kind]) / count_exact("o200k_base", DENSE[kind]) <= 1.5


@pytest.mark.parametrize("vocabulary", [name for name in ESTIMATED if name not in ("o200k_base", "claude")])
@pytest.mark.parametrize("kind", [kind for kind in DENSE if not kind.startswith("a million")])
def test_C3_nor_in_any_other_vocabulary(kind: str, vocabulary: str) -> None:
    assert 0.8 <= estimate(DENSE[kind], vocabulary) / count_exact(vocabulary, DENSE[kind]) <= 1.5


def test_C3_four_characters_a_token_would_have_come_too_late() -> None:
    """The figures that made compaction start at three times the window."""
    for kind in ("Chinese", "Japanese", "Korean", "base64", "digits"):
        assert len(DENSE[kind]) / 4 < 0.8 * count_exact("o200k_base", DENSE[kind])


HOSTILE = {
    "ten megabytes of base64": b64encode(NOISE).decode() * 1_250,
    "a megabyte of zeros": "\x00" * 1_000_000,
    "lone surrogates": "\ud800" * 100_000,
    "runs side by side": ("a" * 16 + "b" * 16) * 10_000,
    "runs just too short": ("a" * 15 + "b" * 15) * 10_000,
    "the last code point": "\U0010ffff" * 50_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_C3_hostile_text_gets_a_figure_that_grows_with_it(kind: str) -> None:
    text = HOSTILE[kind]
    whole, half = estimate(text), estimate(text[: len(text) // 2])
    assert 0 < half < whole < len(text.encode("utf-8", "surrogatepass"))
    assert abs(whole - 2 * half) <= 0.01 * whole + 2
