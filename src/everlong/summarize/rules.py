"""The summary that needs no model: written by code from the facts alone, and marked as such.

It says nothing that is not in the conversation; without facts it says only that messages were left out.
"""

from everlong.relevance import in_language
from everlong.summarize.parts import CONTEXT_LIMIT, FREE_LIMIT, Style
from everlong.summarize.summary import Facts, Summary
from everlong.summarize.text import clipped, one_line

__all__ = ["summary_by_rules"]

LONGEST_QUOTE = 80  # characters of the last request in one sentence
NAMED = 3  # files named in one sentence

#: Each kind of fact as one sentence, by language.
SENTENCES: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "requests",
        {
            "en": "{count} requests of the user; the last: “{last}”.",
            "zh": "用户提出 {count} 个请求；最后一个：“{last}”。",
        },
    ),
    ("files_changed", {"en": "{count} files changed ({names}).", "zh": "改动 {count} 个文件（{names}）。"}),
    ("failures", {"en": "{count} failures, the last: {last}.", "zh": "失败 {count} 次，最后一次：{last}。"}),
    ("open_tasks", {"en": "{count} open tasks ({names}).", "zh": "未完成的任务 {count} 个（{names}）。"}),
    ("files_read", {"en": "{count} files read ({names}).", "zh": "读过 {count} 个文件（{names}）。"}),
)
BETWEEN = {"en": " ", "zh": ""}  # two sentences
NOTHING = {"en": "Earlier messages were left out.", "zh": "较早的消息已省略。"}


def summary_by_rules(facts: Facts, language: str, *, style: Style = "structured") -> Summary:
    """A summary of the facts, by code. Example: one request -> context '1 requests of the user; the last: “…”.'"""
    sentences = []
    for name, wording in SENTENCES:
        items: tuple[str, ...] = getattr(facts, name)
        if items:
            last = clipped(one_line(items[-1]), LONGEST_QUOTE)
            names = ", ".join(clipped(one_line(item), LONGEST_QUOTE) for item in items[-NAMED:])
            sentences.append(in_language(wording, language).format(count=len(items), last=last, names=names))
    limit = CONTEXT_LIMIT if style in ("structured", "rolling") else FREE_LIMIT
    joined = in_language(BETWEEN, language).join(sentences) or in_language(NOTHING, language)
    return Summary(style=style, source="rules", language=language, context=clipped(joined, limit), facts=facts)
