"""Split texts into words and words into search terms; detect a text's language, and choose a text by language.

A word is an identifier, a number, or a run of letters of any script; Chinese has no spaces, so each character and each
pair of neighbours is a word. A word is found by its terms: `sessionManager` by itself (with a high weight), by
`session` and by `manager`. Everything that searches or selects uses `words_of` and `terms_of`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

__all__ = ["COMPOUND_WEIGHT", "STOP_WORDS", "in_language", "language_of", "stem", "terms_of", "words_of"]

COMPOUND_WEIGHT = 2.5  # a whole compound identifier says more than its parts
SINGLE_CHARACTER_WEIGHT = 0.5  # one Chinese character or digit says less than a pair
LONGEST_STEM = 5  # letters; words with the same beginning are mostly related
LONGEST_ENDING = 4  # letters
LONGEST_WORD = 80  # characters; longer runs are encoded data
LOOKED_AT = 2_000  # characters of each text
FALLBACK_LANGUAGE = "en"
KANA_SHARE = 4  # Chinese characters per kana; a text with fewer is Japanese, which we do not write

T = TypeVar("T")

_IDEOGRAPH = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff"
_ASCII_WORDS = re.compile(r"[A-Za-z0-9_]+")
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_FOREIGN_WORDS = re.compile(rf"[^\W\d_{_IDEOGRAPH}]+")
_PAIRS = re.compile(rf"(?=([{_IDEOGRAPH}]{{2}}))")
_SINGLES = re.compile(rf"[{_IDEOGRAPH}]")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ings?|edly|ie[sd]|ers?|ed|es|ly|s|e|y)$")

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_KANA = re.compile(r"[\u3041-\u30ff]")
_LETTERS = re.compile(r"[A-Za-z]+")

ENGLISH_STOP_WORDS = (
    "a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it "
    "its me my no not of on or our she so that the their them then there they this to up us was we were what when "
    "where which who why will with would you your"
)
CHINESE_STOP_WORDS = "的了是在我你他她它们和与也就都不有这那吗呢吧啊一"
STOP_WORDS = frozenset(ENGLISH_STOP_WORDS.split()) | frozenset(CHINESE_STOP_WORDS)


def words_of(text: str) -> list[str]:
    """Return the words of a text, with repeats: ASCII words, then other words, then Chinese pairs and characters.

    Example: "read_file 上下文 42" -> ["read_file", "42", "上下", "下文", "上", "下", "文"]
    """
    words = _ASCII_WORDS.findall(text)
    if not text.isascii():
        foreign = " ".join(_FOREIGN.findall(text))
        words += [*_FOREIGN_WORDS.findall(foreign), *_PAIRS.findall(foreign), *_SINGLES.findall(foreign)]
    return words


def terms_of(word: str) -> tuple[tuple[str, float], ...]:
    """Return the terms that find a word, with their weights; () for stop words and data.

    Example: "readFile" -> (("readfile", 2.5), ("read", 1.0), ("fil", 1.0))
    """
    lower = word.lower()
    if lower in STOP_WORDS or len(word) > LONGEST_WORD or not lower.strip("_"):
        return ()
    if len(word) == 1:
        return () if word.isascii() and not word.isdigit() else ((word, SINGLE_CHARACTER_WEIGHT),)
    if "_" not in word and (word == lower or not word.isalpha()):
        return ((stem(lower), 1.0),)
    parts = dict.fromkeys(map(str.lower, _PARTS.findall(word)))
    if len(parts) < 2:
        return ((stem(lower.strip("_")), 1.0),)
    return ((lower, COMPOUND_WEIGHT), *((stem(part), 1.0) for part in parts if len(part) > 1))


def stem(word: str) -> str:
    """Return at most five letters of a word, without its English ending: `retries` finds `retry`.

    Example: "sessions" -> "sessi"
    """
    if len(word) < 4 or not (word.isalpha() and word.isascii()):
        return word
    # A long word is cut to its first letters anyway, whatever its ending is.
    return (word if len(word) >= LONGEST_STEM + LONGEST_ENDING else _ENDING.sub("", word))[:LONGEST_STEM]


def language_of(texts: Iterable[str]) -> str:
    """Return "zh" if the texts have more Chinese characters than Latin words, otherwise "en".

    Example: ["修复 bug"] -> "zh"
    """
    chinese = latin = kana = 0
    for text in texts:
        chinese += len(_CHINESE.findall(text[:LOOKED_AT]))
        latin += len(_LETTERS.findall(text[:LOOKED_AT]))
        kana += len(_KANA.findall(text[:LOOKED_AT]))
    return "zh" if chinese > max(latin, KANA_SHARE * kana) else "en"


def in_language(texts: Mapping[str, T], language: str) -> T:
    """Return the text for a language; the English one if there is none."""
    return texts.get(language, texts[FALLBACK_LANGUAGE])
