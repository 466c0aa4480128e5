"""The words that the server itself shows to people: one row per language.

The page brings its own words, one table per language in `page/src/words`. A language is in both or in neither; the
settings accept `LANGUAGES`.
"""

from collections.abc import Mapping

__all__ = ["LANGUAGES", "NOT_BUILT"]

#: Shown in place of a page that is not built, by language; `{command}` builds it.
NOT_BUILT: Mapping[str, str] = {
    "en": "The page is not built yet. The server is running, and its API works. "
    "Build the page with {command}, then reload.",
    "zh": "页面尚未构建，服务器和 API 已在运行。请运行 {command} 构建页面，然后刷新。",
}

#: The languages that a person may choose.
LANGUAGES: tuple[str, ...] = tuple(NOT_BUILT)
