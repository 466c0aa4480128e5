"""Exact counts: token for token what an independent tokenizer finds, on anything."""

import base64
import hashlib
import random

import pytest
from rs_bpe.bpe import openai

from everlong.tokens.exact import _load, count_exact
from everlong.tokens.pieces import well_formed

STRINGS = 20_000

SCRIPTS = {
    "english": "the quick brown fox doesn't jump over a lazy dog's fence; it WAITS, 42 times a day. ",
    "chinese": "上下文窗口即将耗尽,需要压缩历史消息。请检查配置文件中的超时设置是否正确!",
    "japanese": "コンテキストの長さを超えました。設定ファイルを確認してください。",
    "korean": "대화 내용이 너무 길어서 요약이 필요합니다. 설정을 확인하세요.",
    "russian": "Контекстное окно заполнено, история будет сжата. ",
    "arabic": "تم تجاوز طول السياق، يرجى اختصار الرسائل. ",
    "thai": "บทสนทนายาวเกินไป โปรดสรุป ",
    "code": "def fit(self, budget: int = 4_096) -> list[str]:\n\treturn [m for m in self._log if m.size < budget]\n\n",
    "json": '{"id": 10023, "uuid": "9f86d081-884c-7d65", "ok": true, "tags": ["a", "b"], "t": 1.5e-3}\r\n',
    "marks": "<|endoftext|><|im_start|>system<|fim_prefix|>[INST]<s></s>",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈🤷🏽‍♀️ 1️⃣ é ñ ﷽ 𝕏 ",
    "spaces": " \t\n\r\u00a0\u3000\u2028  \n\n ",
}


def token_ids(vocabulary: str, text: str) -> list[int]:
    """The tokens themselves, by the same route as the count, for tests."""
    loaded = _load(vocabulary)
    if any(marker in text for marker in loaded.markers):
        return loaded.encoder.encode_ordinary(text)
    packed = memoryview(loaded.encoder.encode_flat(text)).cast("I")
    return list(packed)


def fuzzed(seed: int) -> str:
    """Slices of several scripts, random letters, random Unicode, latin-1 bytes: one string a seed."""
    roll = random.Random(seed)
    pieces = []
    for _ in range(roll.randint(1, 5)):
        kind = roll.randint(0, 9)
        if kind < 6:
            text = roll.choice(list(SCRIPTS.values()))
            start = roll.randrange(len(text))
            pieces.append(text[start : start + roll.randint(1, 60)])
        elif kind == 6:
            pieces.append("".join(roll.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=30)))
        elif kind == 7:
            pieces.append(
                "".join(chr(roll.choice((roll.randrange(0xD800), roll.randrange(0xE000, 0x110000)))) for _ in range(12))
            )
        elif kind == 8:
            pieces.append(roll.randbytes(20).decode("latin-1"))
        else:
            pieces.append(roll.choice("a _^\n-=0") * roll.randint(1, 80))
    return "".join(pieces)


@pytest.mark.parametrize(
    ("vocabulary", "peer"), [("o200k_base", openai.o200k_base), ("cl100k_base", openai.cl100k_base)]
)
def test_token_ids_equal_an_independent_tokenizers(vocabulary: str, peer: object) -> None:
    other = peer()  # type: ignore[operator]
    for seed in range(STRINGS):
        text = fuzzed(seed)
        ids = token_ids(vocabulary, text)
        assert ids == other.encode(text), repr(text)
        assert count_exact(vocabulary, text) == len(ids)


def encoded(size: int) -> str:
    blocks = (hashlib.sha256(b"%d" % n).digest() for n in range(size // 43 + 1))
    return base64.b64encode(b"".join(blocks)).decode()[:size]


HOSTILE = {
    "a million spaces": " " * 1_000_000,
    "a million a": "a" * 1_000_000,
    "a million underscores": "_" * 1_000_000,
    "a million line ends": "\n" * 1_000_000,
    "literal special tokens": "<|endoftext|>" * 1_000,
    "NULs": "\x00" * 1_000,
    "a megabyte of base64": encoded(1_000_000),
    "nothing": "",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_C7_hostile_text_is_counted_exactly(name: str) -> None:
    assert count_exact("o200k_base", HOSTILE[name]) == openai.o200k_base().count(HOSTILE[name])


def test_C7_ten_megabytes_of_base64_are_counted_as_the_sum_of_their_pieces() -> None:
    text = encoded(10_000_000)
    pieces = sum(count_exact("o200k_base", text[at : at + 100_000]) for at in range(0, len(text), 100_000))
    assert count_exact("o200k_base", text) == pytest.approx(pieces, rel=0.001)


@pytest.mark.parametrize(
    ("text", "same"),
    [("a\ud800b", "a\ufffdb"), ("\udc00\ud83d", "\ufffd\ufffd"), ("\ud83d\ude00", "😀"), ("plain", "plain")],
    ids=["lone high", "two lone", "a pair in two pieces", "nothing to do"],
)
def test_B9_lone_surrogates_count_as_what_arrives(text: str, same: str) -> None:
    assert well_formed(text) == same
    assert count_exact("o200k_base", text) == count_exact("o200k_base", same)


@pytest.mark.parametrize(
    "vocabulary",
    ["gemma2", "gemma3", "gemma4", "llama2", "llama3", "qwen3", "deepseek_v3", "kimi_k2", "glm4", "phi4", "mistral_v3"],
)
def test_every_vocabulary_counts_every_script(vocabulary: str) -> None:
    for text in SCRIPTS.values():
        assert 0 < count_exact(vocabulary, text) <= len(text.encode()) + 1
    assert count_exact(vocabulary, "") == 0


@pytest.mark.parametrize("vocabulary", ["llama2", "mistral_v2", "gemma3"])
def test_a_space_at_the_start_of_every_text_is_not_counted_at_the_start_of_every_piece(vocabulary: str) -> None:
    text = "word " * 20_000
    assert count_exact(vocabulary, text) == len(token_ids(vocabulary, text))
