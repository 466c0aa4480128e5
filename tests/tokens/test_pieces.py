"""A long text is counted in bounded pieces: as many tokens as it has when it is encoded whole, never fewer."""

import random
import re
from array import array
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Opaque
from everlong.tokens import Counter, estimate
from everlong.tokens.counter import ENCODED_FILE, FLAT_FILE, LEAST_FILE, SEARCHED
from everlong.tokens.estimates import PIECE, STEPS, _pairs, _weights, class_codes, run_tokens, shorten_runs
from everlong.tokens.exact import ENOUGH, ROWS, _count, count_exact, encoding_of
from everlong.tokens.pieces import SMALL_PIECE, TOKEN_BYTES, UNSETTLED, Encoding, counted_pieces, well_formed
from tests.calls import Calls

VOCABULARIES = sorted({vocabulary.name for _, vocabulary in ROWS if vocabulary.exact})

ROLL = random.Random(5)
LENGTH = 30_000
HOSTILE = {
    "one letter": "a" * LENGTH,
    "two letters": "ab" * (LENGTH // 2),
    "spaces": " " * LENGTH,
    "line ends": "\n" * LENGTH,
    "tabs": "\t" * LENGTH,
    "any white space": "".join(ROLL.choices(" \t\n\r\u3000", k=LENGTH)),
    "one digit": "7" * LENGTH,
    "digits": "".join(ROLL.choices("0123456789", k=LENGTH)),
    "base64": "".join(ROLL.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", k=LENGTH)),
    "letters": "".join(ROLL.choices("etaoinshrdlu", k=LENGTH)),
    "large and small letters": "".join(ROLL.choices("aAbB", k=LENGTH)),
    "underscores": "_" * LENGTH,
    "brackets": "[" * LENGTH,
    "signs": "".join(ROLL.choices(".,;:!?/\\'\"()[]{}<>-_=+*&^%$#@~`|", k=LENGTH)),
    "one emoji": "😀" * (LENGTH // 2),
    "a family": "👩‍👩‍👧‍👦" * (LENGTH // 7),
    "combining marks": "e" + "\u0301" * LENGTH,
    "Han": "".join(chr(ROLL.randrange(0x4E00, 0x9FFF)) for _ in range(LENGTH // 2)),
    "kana": "".join(chr(ROLL.randrange(0x3041, 0x30FF)) for _ in range(LENGTH // 2)),
    "Hangul": "".join(chr(ROLL.randrange(0xAC00, 0xD7A3)) for _ in range(LENGTH // 2)),
    "special tokens": "<|endoftext|>" * (LENGTH // 13),
    "anything": "".join(chr(ROLL.randrange(0x20, 0xD800)) for _ in range(LENGTH // 2)),
    "runs of everything": "".join(ROLL.choice("aé日7. \n😀_A'") * ROLL.randint(1, 900) for _ in range(60)),
    "words": "the quick brown fox doesn't wait, " * (LENGTH // 34),
}


class Watched:
    """An encoding that records how long each text was that it had to encode at once."""

    def __init__(self, vocabulary: str) -> None:
        self.lengths: list[int] = []
        self._encoding = encoding_of(vocabulary)
        self.encoding = replace(self._encoding, pack=self._pack)

    def _pack(self, text: str, begins: bool) -> bytes:
        self.lengths.append(len(text))
        return self._encoding.pack(text, begins)


def count_of(encoding: Encoding, text: str) -> int:
    return sum(piece.tokens for piece in counted_pieces(encoding, text))


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_C7_pieces_of_hostile_text_count_as_much_as_the_whole(vocabulary: str) -> None:
    encoding = replace(encoding_of(vocabulary), piece=SMALL_PIECE)
    counts = {name: count_of(encoding, text) for name, text in HOSTILE.items()}
    assert counts == {name: _count(vocabulary, text) for name, text in HOSTILE.items()}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("vocabulary", ["o200k_base", "gemma3"])
def test_no_text_is_encoded_in_long_pieces(vocabulary: str, name: str) -> None:
    watched = Watched(vocabulary)
    count_of(watched.encoding, HOSTILE[name] * 8)
    assert max(watched.lengths) <= 2 * watched.encoding.piece <= 65_536


@pytest.mark.parametrize("sample", ["a", " ", "\n", "7", "_", "😀", "\u0301", "日", "a9+", "word "])
@pytest.mark.parametrize("vocabulary", ["o200k_base", "gemma3", "llama2"])
def test_twice_the_text_is_twice_the_work(vocabulary: str, sample: str) -> None:
    work = []
    for length in (100_000, 200_000, 400_000):
        watched = Watched(vocabulary)
        count_of(watched.encoding, sample * (length // len(sample)))
        assert max(watched.lengths) <= 2 * watched.encoding.piece <= 65_536
        assert sum(watched.lengths) <= 1.25 * length, "little is encoded twice"
        work.append(len(watched.lengths))
    assert work[1] <= 2 * work[0] + 1
    assert work[2] <= 2 * work[1] + 1


ENDS = st.sampled_from(["a", "B", "é", "日", "7", ".", "'", " ", "\n", "\t", "😀", "\u0301", "_", "[", "＿", "0x"])
RUNS = st.lists(st.tuples(ENDS, st.integers(1, 700)), min_size=5, max_size=25)


@pytest.mark.parametrize("vocabulary", ["cl100k_base", "o200k_base", "gemma3", "llama2", "deepseek_v3", "glm4"])
@given(runs=RUNS)
@settings(max_examples=20, deadline=None)
def test_pieces_of_any_runs_count_as_much_as_the_whole(vocabulary: str, runs: list[tuple[str, int]]) -> None:
    text = "".join(sign * length for sign, length in runs)
    assert count_of(replace(encoding_of(vocabulary), piece=3_000), text) == _count(vocabulary, text)


FRAGMENTS = ["alpha", "Beta", "don't", " ", "\n", "  ", "上下文", "的。", "，", "42", "3.14", "{", "_x", "\t", "é"]
FRAGMENTS += ["日本", "한국어", "'s", "<s>", "\n\n"]


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@given(fragments=st.lists(st.sampled_from(FRAGMENTS), min_size=40, max_size=300))
@settings(max_examples=15, deadline=None)
def test_gaps_between_words_are_cut_without_a_trace(vocabulary: str, fragments: list[str]) -> None:
    """A piece is shorter than what is unsettled, so nothing is joined: it counts exactly, or as its bytes."""
    text = "".join(fragments)
    cut = list(counted_pieces(replace(encoding_of(vocabulary), piece=20), text))
    assert (cut[0].start, cut[-1].stop) == (0, len(text))
    short = [piece for piece in cut if piece.stop - piece.start <= 40]
    assert all(before.stop == after.start for before, after in pairwise(cut))
    assert sum(piece.tokens for piece in cut) >= _count(vocabulary, text)
    if short == cut:
        assert sum(piece.tokens for piece in cut) == _count(vocabulary, text)


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_no_token_reaches_across_a_gap_between_words(vocabulary: str) -> None:
    """What makes the cuts exact, for every token there is; `▁` is a space in some, and a sign of its own in others."""
    across = re.compile("[A-Za-z0-9\u4e00-\u9fff][ \\n，。、][A-Za-z\u4e00-\u9fff]")
    unpack = encoding_of(vocabulary).unpack
    with_spaces = vocabulary.startswith(("gemma", "llama2", "mistral_v1", "mistral_v2"))
    for token in range(300_000):
        try:
            text = unpack(token).decode(errors="replace")
        except ValueError:
            break
        assert not across.search(text.replace("▁", " ") if with_spaces else text), text


@given(text=st.text(alphabet="abc .,1é日", min_size=1_000, max_size=4_000), noise=st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_a_joint_that_is_not_proved_never_counts_too_few(text: str, noise: int) -> None:
    """An encoder that splits by the length of what it is given agrees with itself nowhere."""

    def pack(part: str, _: bool) -> bytes:
        size = 1 + (len(part) * noise) % 7
        return array("I", range(len(part) // size + 1)).tobytes()

    encoding = Encoding(pack, lambda token: b"x" * (1 + token % 3), 400)
    text = text.replace(" ", "").replace(".", "")
    assert count_of(encoding, text) >= len(pack(text, True)) // TOKEN_BYTES


def test_what_cannot_be_joined_counts_as_its_bytes() -> None:
    odd = Encoding(lambda text, _: array("I", [len(text)] * len(text)).tobytes(), lambda _: b"a")
    assert count_of(odd, "é" * 100_000) == 200_001
    fitting = replace(odd, pack=lambda text, _: array("I", [7] * len(text)).tobytes())
    assert count_of(fitting, "a" * 100_000) == 100_000


def test_what_is_settled_stands_far_enough_from_the_end() -> None:
    longest = max(len(encoding_of("o200k_base").unpack(token)) for token in range(199_000))
    assert longest < UNSETTLED


def test_beyond_every_window_the_rest_counts_as_its_bytes() -> None:
    """A text of one token for each character, and of two bytes on average."""
    part = "日a" * 100_000
    assert count_exact("o200k_base", part) == len(part)
    text = part * (1 + ENOUGH // len(part)) + part
    assert len(text) < count_exact("o200k_base", text) < len(text) + len(part.encode()) + len(part)
    assert ENOUGH > 4 * 2_000_000


def test_B9_surrogates_in_a_long_text_count_as_what_arrives() -> None:
    text = "a\ud800\ud83d\ude00 " * 10_000
    assert count_exact("o200k_base", text) == count_exact("o200k_base", well_formed(text))
    assert well_formed(text) == "a\ufffd😀 " * 10_000
    assert estimate(text, "claude") == estimate(well_formed(text), "claude")


# --- estimates -------------------------------------------------------------------------------------


def estimate_whole(text: str) -> int:
    """The estimate of a text that is looked at as one piece, however long it is."""
    shortened, left_out = shorten_runs(text)
    codes, weights = class_codes(shortened), _weights("claude")
    ends = sum(map(weights.ends.__getitem__, (*_pairs(codes, 0), *_pairs(codes, 1))))
    return round(1 + ends / STEPS + run_tokens(left_out, weights.repeats))


@given(
    before=st.integers(0, 120),
    runs=st.lists(
        st.one_of(
            st.tuples(st.sampled_from([*"-= a\n7日", "\ud83d", "\ude00", "\ud83d\ude00"]), st.integers(1, 90)),
            st.tuples(st.sampled_from("-= "), st.just(2 * PIECE)),
        ),
        max_size=40,
    ),
)
@settings(max_examples=60, deadline=None)
def test_an_estimate_in_pieces_is_the_estimate_of_the_whole(before: int, runs: list[tuple[str, int]]) -> None:
    """The first piece ends among the runs, or inside one of them, between two surrogates too."""
    text = "ab" * (PIECE // 2) + "".join(sign * length for sign, length in runs)
    assert estimate(text[before:], "claude") == estimate_whole(text[before:])


def test_no_text_is_estimated_in_long_pieces() -> None:
    with Calls(class_codes) as calls:
        for text in HOSTILE.values():
            estimate(text * 4, "claude")
    lengths = [len(call["text"]) for call in calls.arguments]
    assert max(lengths) <= PIECE + 16  # a short run is not cut
    assert sum(lengths) <= 4 * sum(map(len, HOSTILE.values()))


def test_the_tokens_of_runs_are_added_to_those_before() -> None:
    _, left_out = shorten_runs("-" * 40 + "=" * 50)
    assert run_tokens(left_out[1:], {"-": 8, "=": 16}, run_tokens(left_out[:1], {"-": 8, "=": 16})) == run_tokens(
        left_out, {"-": 8, "=": 16}
    )


# --- files in parts that nobody reads --------------------------------------------------------------


@given(
    before=st.integers(0, 120),
    runs=st.lists(
        st.tuples(
            st.sampled_from(["A", "+", '"', "{ ", "é"]),
            st.sampled_from([1, 90, LEAST_FILE - 1, LEAST_FILE, LEAST_FILE + 1, 9_000, 2 * SEARCHED]),
        ),
        max_size=12,
    ),
)
@settings(max_examples=60, deadline=None)
def test_files_are_found_the_same_in_pieces(before: int, runs: list[tuple[str, int]]) -> None:
    """The first piece ends among the runs, or inside one of them."""
    body = "{ " * ((SEARCHED - LEAST_FILE) // 2) + "".join(sign * length for sign, length in runs)
    part, counter = Opaque("document", body[before:]), Counter("claude-opus-4-5")
    rest, files = ENCODED_FILE.subn("", part.body)
    assert counter.part(part) == files * FLAT_FILE + counter.text(rest)
