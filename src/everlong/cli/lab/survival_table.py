"""How the figures of the lab look on a terminal, in English and Chinese."""

from collections.abc import Iterator, Sequence

from everlong.cli.terminal.tables import amount, console, percent, table
from everlong.lab import Result, Row

__all__ = ["print_results"]

#: The figure beside the first.
SECOND = {"probes": "strict", "edits": "cut", "dialogs": "recall"}

TEXTS = {
    "en": {
        "probes": "Strings the agent used later, still in what is sent",
        "edits": "Texts the agent replaces next, still there line after line",
        "dialogs": "Questions with all their evidence in what is sent",
        "strategy": "strategy",
        "head": "{data}, {half}: {total} in {conversations}",
        "cases": "{n} case|{n} cases",
        "conversations": "{n} conversation|{n} conversations",
        "uncut": "{share} stand in the whole history; more cannot be found.",
        "all": "all",
        "tuning": "tuning half",
        "confirming": "confirming half",
        "strict": "strict",
        "cut": "where cut",
        "recall": "recall",
        "ms": "ms",
        "over": "{strategy}: {over} of {total} selections at {budget} passed the budget",
        "failed": "{strategy}: {failed} of {total} selections at {budget} gave nothing: what must stay does not fit",
    },
    "zh": {
        "probes": "智能体后来用到的字符串仍在发送内容中的比例",
        "edits": "智能体接下来要替换的文本仍逐行完整存在的比例",
        "dialogs": "全部证据都在发送内容中的问题比例",
        "strategy": "策略",
        "head": "{data}，{half}：{conversations}中的 {total}",
        "cases": "{n} 个用例",
        "conversations": "{n} 个对话",
        "uncut": "完整历史中有 {share}；不可能更高。",
        "all": "全部",
        "tuning": "调参半",
        "confirming": "验证半",
        "strict": "严格",
        "cut": "需裁剪时",
        "recall": "召回",
        "ms": "毫秒",
        "over": "{strategy}：预算 {budget} 时 {total} 次选择中有 {over} 次超出预算",
        "failed": "{strategy}：预算 {budget} 时 {total} 次选择中有 {failed} 次没有结果：必须保留的内容放不下",
    },
}


def print_results(results: Sequence[Result], language: str) -> None:
    """A table for each data set: a strategy a row, a budget a column."""
    by_data: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        by_data.setdefault((result.measure, result.data), []).append(result)
    for members in by_data.values():
        _print_one(members, TEXTS[language])


def _print_one(results: Sequence[Result], say: dict[str, str]) -> None:
    out = console()
    first = results[0]
    out.print(say[first.measure], style="bold")
    out.print(
        say["head"].format(
            data=first.data,
            half=say[first.half],
            total=_many(say["cases"], first.total),
            conversations=_many(say["conversations"], first.conversations),
        ),
        markup=False,  # names of data are data
    )
    if first.uncut < first.total:
        out.print(say["uncut"].format(share=percent(first.uncut, first.total)))
    head = (say["strategy"], "", *(_short(row.budget) for row in first.rows))
    out.print(table(head, (line for result in results for line in _lines(result, say))))
    for result in results:
        for row in result.rows:
            for kind, number in (("over", row.over), ("failed", row.failed)):
                if number and result.strategy != "whole":
                    figures = {"budget": row.budget, "total": row.total, kind: number}
                    told = say[kind].format(
                        strategy=result.strategy, **{name: amount(figure) for name, figure in figures.items()}
                    )
                    out.print(told, style="dim")


def _lines(result: Result, say: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """What was found, the figure beside it, and the time."""
    yield (result.strategy, "%", *(f"{row.percent:.1f}" for row in result.rows))
    yield ("", f"{say[SECOND[result.measure]]} %", *(_second(result.measure, row) for row in result.rows))
    yield ("", say["ms"], *(f"{row.milliseconds:.1f}" for row in result.rows))


def _second(measure: str, row: Row) -> str:
    """The figure beside: without names alone; of the histories that had to be cut; of each question's evidence."""
    if measure == "dialogs":
        return f"{100 * (row.recall or 0):.1f}"
    if measure == "probes":
        return f"{row.strict_percent:.1f}"
    cut = next((group for group in row.groups if (group.of, group.name) == ("history", "cut")), None)
    return f"{100 * cut.hits / cut.total:.1f}" if cut else "–"


def _many(text: str, number: int) -> str:
    """Example: "{n} case|{n} cases", 1 -> "1 case" """
    one, _, several = text.rpartition("|")
    return (one if one and number == 1 else several).format(n=amount(number))


def _short(budget: int) -> str:
    """Example: 16000 -> 16k"""
    return f"{budget // 1_000}k" if budget % 1_000 == 0 else str(budget)
