"""Write a summary without a model: from the facts alone, a line for each kind, and marked as such.

It says nothing that is not in the conversation. Without facts, it says only that messages were left out.
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
            "en": "Requests of the user: {count}; the last: “{last}”.",
            "zh": "用户提出 {count} 个请求；最后一个：“{last}”。",
        },
    ),
    ("files_changed", {"en": "Files changed: {count} ({names}).", "zh": "改动 {count} 个文件（{names}）。"}),
    ("failures", {"en": "Failures: {count}; the last: {last}.", "zh": "失败 {count} 次，最后一次：{last}。"}),
    ("open_tasks", {"en": "Open tasks: {count} ({names}).", "zh": "未完成的任务 {count} 个（{names}）。"}),
    ("files_read", {"en": "Files read: {count} ({names}).", "zh": "读过 {count} 个文件（{names}）。"}),
)
NOTHING = {"en": "Earlier messages were left out.", "zh": "较早的消息已省略。"}


def summary_by_rules(facts: Facts, language: str, *, style: Style = "structured") -> Summary:
    """Return a summary of the facts, made by code. Example: one request -> 'Requests of the user: 1; the last: “…”.'"""
    limit = CONTEXT_LIMIT if style in ("structured", "rolling") else FREE_LIMIT
    lines: list[str] = []
    for name, wording in SENTENCES:
        items: tuple[str, ...] = getattr(facts, name)
        if items:
            last = clipped(one_line(items[-1]), LONGEST_QUOTE)
            names = ", ".join(clipped(one_line(item), LONGEST_QUOTE) for item in items[-NAMED:])
            line = in_language(wording, language).format(count=len(items), last=last, names=names)
            if sum(map(len, lines)) + len(lines) + len(line) > limit:
                break
            lines.append(line)
    context = "\n".join(lines) or clipped(in_language(NOTHING, language), limit)
    return Summary(style=style, source="rules", language=language, context=context, facts=facts)
