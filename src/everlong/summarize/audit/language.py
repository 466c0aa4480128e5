"""Detect the language of a conversation or a summary.

Languages are told apart by script, and those in Latin script by their commonest words. Code, paths, names and
quotations stay in their own language and do not count. An unclear language is reported as such.
"""

import re
from collections.abc import Iterable

from everlong.relevance import in_language

__all__ = ["UNKNOWN_LATIN", "detected", "differs", "language_named", "spoken"]

#: An unidentified language in Latin script.
UNKNOWN_LATIN = "latin"

#: The names of languages: by the language of the name, then by code.
NAMES: dict[str, dict[str, str]] = {
    "en": {
        "en": "English",
        "zh": "Chinese",
        "ja": "Japanese",
        "ko": "Korean",
        "ar": "Arabic",
        "ru": "Russian",
        "he": "Hebrew",
        "hi": "Hindi",
        "th": "Thai",
        "el": "Greek",
        "es": "Spanish",
        "pt": "Portuguese",
        "fr": "French",
        "de": "German",
        "it": "Italian",
    },
    "zh": {
        "en": "英文",
        "zh": "中文",
        "ja": "日文",
        "ko": "韩文",
        "ar": "阿拉伯文",
        "ru": "俄文",
        "he": "希伯来文",
        "hi": "印地文",
        "th": "泰文",
        "el": "希腊文",
        "es": "西班牙文",
        "pt": "葡萄牙文",
        "fr": "法文",
        "de": "德文",
        "it": "意大利文",
    },
}
UNNAMED = {"en": "the language of the conversation", "zh": "对话所用的语言"}

#: Scripts other than Latin, each with the pattern of one word.
SCRIPTS: dict[str, re.Pattern[str]] = {
    "zh": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]"),
    "ja": re.compile(r"[\u3041-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]+"),
    "ar": re.compile(r"[\u0600-\u06ff]+"),
    "ru": re.compile(r"[\u0400-\u04ff]+"),
    "he": re.compile(r"[\u0590-\u05ff]+"),
    "hi": re.compile(r"[\u0900-\u097f]+"),
    "th": re.compile(r"[\u0e00-\u0e7f]{1,4}"),
    "el": re.compile(r"[\u0370-\u03ff]+"),
}
LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words that only one of these languages has.
COMMON_WORDS: dict[str, frozenset[str]] = {
    "en": _words("the and of is was were to with that this for are has have not user by from it on be"),
    "es": _words("el los las una y es fue con para por que pero usuario está del se más como al lo su"),
    "pt": _words("o os uma e é foi com para não mas usuário está do da dos das em na no ao foram são"),
    "fr": _words("le les une et est été avec pour dans mais utilisateur du des au aux ne pas sur par qui"),
    "de": _words("der die das und ist wurde mit für nicht aber ein eine den dem zu von im auf auch sind"),
    "it": _words("il gli una e è stato con per non ma utente della del dei che di sono nel alla"),
}

#: What is not translated: code, quotations, addresses, paths, names.
UNTRANSLATED = re.compile(
    r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|《[^》\n]*》|https?://\S+"
    r"|(?<![A-Za-z0-9_.-])[A-Za-z0-9_.-]*[/\\][\w./\\-]*|\b\w+[_.]\w[\w.]*|\b[A-Za-z]*\d\w*|\b[A-Z]{2,}\b|\b[a-z]+[A-Z]\w*",
    re.DOTALL,
)
LOOKED_AT = 4_000  # characters of each text
KANA_SHARE = 4  # Chinese characters per kana; a text with fewer is Japanese
FEWEST_WORDS = 6  # with fewer, the language is unclear
CLEAR_LEAD = 2  # one language needs this many times the common words of the next
CLEAR_SHARE = 0.6  # of the words must be in the script for a text to count as written in it


def spoken(texts: Iterable[str]) -> str:
    """Return the language of these texts; "en" if it is not clear. Example: ["是的"] -> "en" """
    joined = "\n".join(text[:LOOKED_AT] for text in texts)
    return detected(joined)[0] or "en"


def language_named(language: str, *, within: str = "en") -> str:
    """Return the name of a language, in the language `within`.

    Example: "ja" -> "Japanese"; "latin" -> "the language of the conversation"
    """
    return in_language(NAMES, within).get(language) or in_language(UNNAMED, within)


def differs(text: str, wanted: str) -> str:
    """Return the language of the text if it is clearly not the wanted one; otherwise ""."""
    language, share = detected(text[:LOOKED_AT])
    if not language or language == wanted or (wanted not in NAMES["en"] and wanted != UNKNOWN_LATIN):
        return ""
    latin_wanted, latin_found = _is_latin(wanted), _is_latin(language)
    if latin_wanted and latin_found:
        return "" if UNKNOWN_LATIN in (wanted, language) else language
    return language if share >= CLEAR_SHARE else ""


def _is_latin(language: str) -> bool:
    return language == UNKNOWN_LATIN or language in COMMON_WORDS


def detected(text: str) -> tuple[str, float]:
    """Return the language of a text ("" if unclear) and the share of words in its script.

    Example: "修复 `login.py` 的问题" -> ("zh", 1.0)
    """
    bare = UNTRANSLATED.sub(" ", text)
    counts = {code: len(pattern.findall(bare)) for code, pattern in SCRIPTS.items()}
    if counts["ja"] and counts["zh"] <= KANA_SHARE * counts["ja"]:
        counts["ja"] += counts["zh"]
        counts["zh"] = 0
    latin = [word.lower() for word in LATIN.findall(bare)]
    counts[UNKNOWN_LATIN] = len(latin)
    total = sum(counts.values())
    if total < FEWEST_WORDS:
        return "", 0.0
    # Texts in any script contain Latin words (names, terms); the opposite is rare.
    best = max(counts, key=lambda code: counts[code])
    share = counts[best] / total
    return (_latin_language(latin) if best == UNKNOWN_LATIN else best), share


def _latin_language(words: list[str]) -> str:
    scores = sorted(
        ((sum(word in known for word in words), code) for code, known in COMMON_WORDS.items()), reverse=True
    )
    (first, code), (second, _) = scores[0], scores[1]
    return code if first >= CLEAR_LEAD and first >= CLEAR_LEAD * second else UNKNOWN_LATIN
