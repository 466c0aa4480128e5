"""The words that the server itself shows to people: one row per language.

The page brings its own words, one table per language in `page/src/words`. A language is in both or in neither; the
settings accept `LANGUAGES`.
"""

from collections.abc import Mapping

__all__ = ["LANGUAGES", "NOT_BUILT"]

#: Shown in place of a page that is not built, by language; `{command}` builds it.
NOT_BUILT: Mapping[str, str] = {
    "en": "The page is not built yet. The server runs, and its API answers. "
    "Build the page once with {command} and load this again.",
    "zh": "页面尚未构建。请运行 {command}，然后刷新。",
}

#: The languages that a person may choose.
LANGUAGES: tuple[str, ...] = tuple(NOT_BUILT)
