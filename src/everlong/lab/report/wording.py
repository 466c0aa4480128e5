"""Every word of the lab's pages in English and Chinese, and what each measure's rule is."""

import re
from dataclasses import dataclass
from math import isfinite

from everlong.lab.report.replay_words import REPLAY_TEXTS

__all__ = ["LANGUAGES", "TEXTS", "Wording", "money", "spaced"]

LANGUAGES = ("en", "zh")

SMALLEST_SUM = 0.0001  # dollars that are said
GROUPED = re.compile(r"\d{1,3}(,\d{3})+")

#: key -> English ("one|several" where a number decides), Chinese
TEXTS: dict[str, tuple[str, str]] = {
    "title": ("What survives", "保留了什么"),
    "speed_title": ("What it costs", "开销"),
    "intro": (
        "Real conversations, no judge: a figure says how much of what was needed later is still in what would be sent.",
        "真实对话，无需裁判：数字表示之后用到的内容，有多少仍在将要发送的上下文中。",
    ),
    "speed_intro": (
        "CPU time first, and ratios: they hold on a busy machine, wall times do not.",
        "以 CPU 时间和比值为主：机器繁忙时它们依然可靠，挂钟时间则不然。",
    ),
    "probes": ("Strings that agents used later", "智能体之后用到的字符串"),
    "edits": ("Text that agents replaced later", "智能体之后替换的文本"),
    "dialogs": ("Questions about long dialogues", "关于长对话的提问"),
    "rule": ("Rule.", "规则："),
    "rule_probes": (
        "An agent really used the string later in a call; before that it stood in at most three messages, the last of "
        "them thousands of tokens back. A hit: it is a part of any text that would be sent.",
        "智能体之后确实在调用中用到了该字符串；此前它最多出现在三条消息里，最近一条也在数千 token 之前。"
        "命中：它出现在将要发送的任一文本中。",
    ),
    "rule_edits": (
        "An agent later replaced this text in a file. A hit: the whole of it stands in what would be sent, as "
        "consecutive lines; line numbers of file reads aside.",
        "智能体之后在文件中替换了这段文本。命中：它以连续的行完整出现在将要发送的内容中（不计读取文件时的行号）。",
    ),
    "rule_dialogs": (
        "A hit: every turn that holds a part of the answer is in what would be sent, word for word.",
        "命中：包含答案的每一轮发言都逐字出现在将要发送的内容中。",
    ),
    "strict": (
        "Full bars are strict: what stands only in our ledger of names is not counted.",
        "深色部分为严格命中：只出现在名称清单中的不算。",
    ),
    "mostly_over": (
        "Dotted: more than half of what was sent passed the budget, so a provider would have refused it.",
        "虚线条：超过一半的发送内容超出预算，服务商会拒绝。",
    ),
    "ceiling": ("in the whole history", "完整历史中"),
    "ceiling_hint": (
        "{share} stand in the whole history (dashed line): more cannot be found.",
        "完整历史中有 {share}（虚线）：不可能找到更多。",
    ),
    "half_all": ("all conversations", "全部对话"),
    "half_tuning": ("tuning half", "调参半区"),
    "half_confirming": ("confirming half", "验证半区"),
    "conversations": ("{n} conversation|{n} conversations", "{n} 个对话"),
    "cases_probes": ("{n} string|{n} strings", "{n} 个字符串"),
    "cases_edits": ("{n} edit|{n} edits", "{n} 处编辑"),
    "cases_dialogs": ("{n} question|{n} questions", "{n} 个问题"),
    "cases": ("{n} case|{n} cases", "{n} 个案例"),
    "budget": ("budget, tokens", "预算（token）"),
    "at_budget": ("At {n} tokens", "预算 {n} token 时"),
    "still_there": ("still there, %", "仍在，%"),
    "all_figures": ("All figures", "全部数字"),
    "by": ("By {what}, at {n} tokens", "按{what}，预算 {n} token"),
    "by_kind": ("kind", "类型"),
    "by_source": ("source", "来源"),
    "by_category": ("category", "类别"),
    "column_strategy": ("strategy", "策略"),
    "column_budget": ("budget", "预算"),
    "column_hits": ("hits", "命中"),
    "column_strict": ("strict", "严格"),
    "column_total": ("of", "总数"),
    "column_recall": ("recall, %", "召回，%"),
    "column_ms": ("ms, median", "毫秒，中位"),
    "column_tokens": ("tokens sent", "发送 token"),
    "column_over": ("over budget", "超预算"),
    "column_failed": ("failed", "失败"),
    "over": ("over the budget {n} of {all}", "{all} 次中 {n} 次超预算"),
    "failed": ("failed {n}", "失败 {n} 次"),
    "nothing": ("There are no results.", "没有结果。"),
    "footer": (
        "One file, nothing loaded from elsewhere, nothing sent anywhere.",
        "单个文件：不加载外部内容，也不向外发送任何数据。",
    ),
    **REPLAY_TEXTS,
}


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts in one language. Example: Wording("en")("failed", n="2") -> "failed 2" """

    language: str

    def __call__(self, key: str, **values: str) -> str:
        """The text with its values in place, figures as everywhere. Example: n="16,000" is said as 16 000"""
        english, chinese = TEXTS[key]
        one, _, several = (chinese if self.language == "zh" else english).rpartition("|")
        text = one if one and values.get("n") == "1" else several
        return text.format(**{name: spaced(value) for name, value in values.items()})

    def joined(self, *sentences: str) -> str:
        """Sentences one after another; what is empty is left out."""
        return ("" if self.language == "zh" else " ").join(filter(None, sentences))

    def known(self, key: str, otherwise: str) -> str:
        """The text of a key if there is one: a measure or a split may be named that this table does not know."""
        return self(key) if key in TEXTS else otherwise


def spaced(value: str) -> str:
    """A figure as everywhere; what is no figure stays. Example: "16,000" -> "16 000" """
    return value.replace(",", " ") if GROUPED.fullmatch(value) else value


def money(dollars: float | None) -> str:
    """A sum as everywhere; what is not known is a dash. Example: 0.0123 -> $0.0123, 12.3 -> $12.30, 1234.5 -> $1 234"""
    if dollars is None or not isfinite(dollars):
        return "–"
    size, sign = abs(dollars), "-" * (dollars < 0)
    if size == 0:
        return "$0"
    if size < SMALLEST_SUM / 2:
        return f"< ${SMALLEST_SUM}"
    for below, digits in ((0.99995, 4), (999.995, 2)):
        if size < below:
            return f"{sign}${size:.{digits}f}"
    return f"{sign}${spaced(f'{size:,.0f}')}"
