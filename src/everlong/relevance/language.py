"""Which language people speak in a conversation, as far as our own words should follow it."""

import re
from collections.abc import Iterable

__all__ = ["language_of"]

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_KANA = re.compile(r"[\u3041-\u30ff]")
_LETTERS = re.compile(r"[A-Za-z]+")
LOOKED_AT = 2_000  # characters of each text
KANA_SHARE = 4  # Chinese characters to one kana: below that it is Japanese, which we do not write


def language_of(texts: Iterable[str]) -> str:
    """Chinese ("zh") if there are more of its characters than Latin words, else "en". Example: ["修复 bug"] -> "zh" """
    chinese = latin = kana = 0
    for text in texts:
        chinese += len(_CHINESE.findall(text[:LOOKED_AT]))
        latin += len(_LETTERS.findall(text[:LOOKED_AT]))
        kana += len(_KANA.findall(text[:LOOKED_AT]))
    return "zh" if chinese > max(latin, KANA_SHARE * kana) else "en"
