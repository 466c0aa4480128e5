"""What `everlong inspect` says to people, in English and Chinese, side by side so that neither can lag behind.

`{n}` and other names in braces are figures or quotations. English texts with "|" have a form for one and one
for many. Nothing here is read by a model.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from everlong.cli.maps.wording_chinese import in_chinese
from everlong.cli.terminal.tables import amount, percent

__all__ = ["LANGUAGES", "TEXTS", "Wording", "language_from"]

LANGUAGES = ("en", "zh")

TEXTS: dict[str, tuple[str, str]] = {
    # --- figures --------------------------------------------------------------------------------
    "tokens": ("{n} token|{n} tokens", "{n} token"),
    "messages": ("{n} message|{n} messages", "{n} 条消息"),
    "rounds": ("{n} round|{n} rounds", "{n} 轮"),
    "of_window": ("{share} of the window of {n}", "占 {n} 窗口的 {share}"),
    "range": ("{low} to {high}", "{low} ～ {high}"),
    "unknown_model": ("unknown model", "未知模型"),
    "exact": ("exact", "精确"),
    "estimated": ("estimated", "估算"),
    "vocabulary": ("vocabulary {name}", "词表 {name}"),
    "at_most": ("at most {n}", "最多 {n}"),
    "free": ("free", "剩余"),
    "over": ("too much", "超出"),
    "reply": ("reply reserve", "回复预留"),
    "margin": ("margin", "余量"),
    "window": ("window", "窗口"),
    "counting": ("counting", "计数方式"),
    "share": ("share", "占比"),
    "source_user": ("set by you", "由你设定"),
    "source_learned": ("learned from the provider", "从服务商的报错中得知"),
    "source_served": ("told by the server", "由服务端告知"),
    "source_registry": ("registry, {date}", "登记表，{date}"),
    "source_default": ("assumed: the model is not in the registry", "假定值：登记表中没有此模型"),
    "others_say": ("others say {list}", "其他来源：{list}"),
    "compacted": (
        "The file holds {n} tokens. Its client compacted it: what stands before message {at} is no longer sent.",
        "文件共 {n} token。客户端已自行压缩：消息 {at} 之前的内容不再发送。",
    ),
    "boundary": ("the client compacted here", "客户端在此压缩"),
    "boundary_here": (
        "Here the client's own compaction took effect: of what is above, only the system text is still sent.",
        "客户端自己的压缩在此生效：以上内容除系统提示外不再发送。",
    ),
    "several": (
        "{n} conversations in this file; this is number {at}. Choose with --pick.",
        "文件中有 {n} 个对话，这是第 {at} 个。用 --pick 选择。",
    ),
    "outlook": (
        "About {cost} % of what sending everything would cost; {kept} % of what is needed again stays in sight.",
        "费用约为全部发送的 {cost} %；之后还要用到的内容，有 {kept} % 仍在模型视野内。",
    ),
    "outlook_measured": (
        "Measured on long agent sessions with a warm cache; everlong lab replay measures your own.",
        "在缓存有效的长时间智能体会话上测得；用 everlong lab replay 可测量你自己的会话。",
    ),
    "comma": (", ", "，"),
    "semicolon": ("; ", "；"),
    # --- categories, roles, kinds -----------------------------------------------------------------
    "schemas": ("tool schemas", "工具定义"),
    "system": ("system", "系统"),
    "user": ("user", "用户"),
    "assistant": ("assistant", "助手"),
    "tool": ("tool", "工具"),
    "text": ("text", "文本"),
    "reasoning": ("reasoning", "思考"),
    "kind_calls": ("tool calls", "工具调用"),
    "results": ("tool results", "工具结果"),
    "images": ("images", "图片"),
    "other": ("other", "其他"),
    "framing": ("framing", "格式开销"),
    "image": ("[image {what}]", "[图片 {what}]"),
    "opaque": ("[{what}]", "[{what}]"),
    "sealed": ("[encrypted reasoning]", "[加密的思考]"),
    "(unknown tool)": ("(unknown tool)", "（未知工具）"),
    # --- headings ---------------------------------------------------------------------------------
    "title": ("Token map", "Token 地图"),
    "history": ("The whole history", "完整历史"),
    "history_hint": (
        "From the first message to the last; width is tokens. Point at it to read, click to go there.",
        "从第一条消息到最后一条，宽度即 token 数。移到上面可读，点击可跳转。",
    ),
    "cell": ("one cell is about {n} tokens", "每格约 {n} token"),
    "by_role": ("By role", "按角色"),
    "by_kind": ("By kind", "按类型"),
    "by_tool": ("By tool", "按工具"),
    "by_round": ("By round", "按轮次"),
    "heaviest": ("Heaviest messages", "最重的消息"),
    "protected": ("Protected", "受保护"),
    "protected_hint": ("Never shortened, never left out.", "不会被缩短，也不会被省略。"),
    "repeats": ("Said more than once", "重复内容"),
    "wasted": ("{n} token wasted|{n} tokens wasted", "浪费 {n} token"),
    "no_repeats": ("Nothing of size is said twice.", "没有成段的重复内容。"),
    "problems": ("What the provider would reject", "服务商会拒绝的内容"),
    "problem_count": ("{n} problem|{n} problems", "{n} 个问题"),
    "accepted": ("Valid for {fmt}", "符合 {fmt} 格式要求"),
    "checked_for": ("checked as {fmt}", "按 {fmt} 检查"),
    "warnings": ("Could not be read", "无法读取"),
    "all_rounds": ("Every round", "全部轮次"),
    "rounds_hint": ("In order of time. Open a round to see its messages.", "按时间排列。展开一轮可查看其中的消息。"),
    "before_rounds": ("Before the first question", "第一个问题之前"),
    "nothing_asked": ("(no user message)", "（无用户消息）"),
    "pictures_only": ("(image)", "（图片）"),
    # --- columns ----------------------------------------------------------------------------------
    "column_tokens": ("tokens", "token"),
    "column_messages": ("messages", "消息"),
    "column_calls": ("calls", "次数"),
    "column_asked": ("in calls", "调用"),
    "column_answered": ("in results", "结果"),
    "column_copies": ("copies", "份数"),
    "column_edits": ("edits", "改动"),
    "column_wasted": ("wasted", "浪费"),
    "column_why": ("why", "原因"),
    "column_what": ("what", "内容"),
    "column_where": ("where", "位置"),
    "column_before": ("before", "之前"),
    "column_after": ("after", "之后"),
    "column_ref": ("reference", "引用"),
    # --- why something is protected ---------------------------------------------------------------
    "system text": ("system text", "系统提示"),
    "last user message": ("last user message", "最后一条用户消息"),
    "result not read yet": ("result not read yet", "尚未被读取的结果"),
    "pinned": ("pinned", "已固定"),
    # --- a budget ---------------------------------------------------------------------------------
    "fitted": ("Brought under {n} tokens", "压缩到 {n} token 以内"),
    "fits_already": ("It fits as it is.", "无需改动即可容纳。"),
    "before_after": ("{before} → {after} tokens", "{before} → {after} token"),
    "stays": ("stays", "保留"),
    "trimmed": ("trimmed", "缩短"),
    "goes": ("left out", "省略"),
    "ours": ("added by us", "由我们添加"),
    "edit_count": ("{n} edit|{n} edits", "{n} 处改动"),
    "sent_instead": ("What would be sent instead", "实际会发送的内容"),
    "shorten": ("shortened", "缩短"),
    "drop": ("left out", "省略"),
    "insert": ("added", "添加"),
    "repair": ("repaired", "修复"),
    # --- the steps of a cut -----------------------------------------------------------------------
    "step_by_need": ("older than what fits whole", "较早，无法完整保留"),
    "insert_by_need": ("excerpts and names from what is left out", "被省略内容的摘录与名称"),
    "step_call_arguments": ("long text in older calls", "较早调用中的长文本"),
    "step_duplicates": ("the same text again", "重复的文本"),
    "step_emergency": ("emergency: it does not fit otherwise", "紧急处理：否则放不下"),
    "step_hard_trim": ("results above their share, oldest first", "结果超出份额，最早的优先"),
    "step_images": ("older pictures", "较早的图片"),
    "step_json_tables": ("lists of records written as tables", "记录列表改写为表格"),
    "step_long_messages": ("messages longer than their limit", "超长消息"),
    "step_newest": ("older than what is kept", "早于保留范围"),
    "step_priority": ("least important results", "最不重要的结果"),
    "step_reasoning": ("thoughts of older steps", "较早步骤的思考"),
    "step_repair": ("so that the provider accepts it", "为使服务商接受"),
    "step_repeated_lines": ("repeated lines said once", "重复的行只说一次"),
    "step_soft_trim": ("results above their share", "结果超出份额"),
    "step_superseded": ("files read again or changed later", "之后又读取或修改过的文件"),
    "step_terminal": ("colour codes and overwritten text", "颜色代码与被覆盖的文本"),
    "step_tool_rounds": ("tool use of older rounds", "较早轮次的工具使用"),
    # --- the page ---------------------------------------------------------------------------------
    "find": ("Find in titles and texts", "在标题和正文中查找"),
    "found": ("{n} shown", "显示 {n} 条"),
    "more_characters": ("… and {n} more characters", "……另有 {n} 个字符"),
    "more_rows": ("… and {n} more", "……另有 {n} 项"),
    "more_tokens": ("… and {n} more, together {tokens} tokens", "……另有 {n} 项，共 {tokens} token"),
    "more_hint": ("--top 0 shows all", "--top 0 显示全部"),
    "working": ("counting …", "正在计数……"),
    "page_written": ("Page written to {path}", "页面已写入 {path}"),
    "footer": (
        "One file, nothing loaded from elsewhere, nothing sent anywhere.",
        "单个文件：不加载外部内容，也不向外发送任何数据。",
    ),
}


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts in one language. Example: Wording("en").many("rounds", 1) -> "1 round" """

    language: str

    def __call__(self, key: str, **values: str) -> str:
        """The text with its values in place."""
        return self._text(key).rpartition("|")[2].format(**values)

    def many(self, key: str, number: int) -> str:
        """The text in the form that the number asks for."""
        one, _, several = self._text(key).rpartition("|")
        return (one if one and number == 1 else several).format(n=amount(number))

    def share(self, low: int, high: int, whole: int) -> str:
        """How much of the whole it is; two figures where it is not known exactly."""
        if low == high:
            return percent(low, whole)
        return self("range", low=percent(low, whole), high=percent(high, whole))

    def known(self, key: str) -> str:
        """The text of a key if there is one, else the key itself: a role, a protection, the name of a tool."""
        return self._text(key) if key in TEXTS else key

    def kind(self, kind: str) -> str:
        """A kind of part or a category."""
        return self("kind_calls") if kind == "calls" else self.known(kind)

    def step(self, step: str, action: str) -> str:
        """What a step of a cut is about, or what it adds."""
        keys = (f"{action}_{step}", f"step_{step}")
        return next((self._text(key) for key in keys if key in TEXTS), step)

    def reason(self, text: str) -> str:
        """A provider's objection or the reason of an edit; in English where no translation is known."""
        return in_chinese(text) if self.language == "zh" else text

    def _text(self, key: str) -> str:
        english, chinese = TEXTS[key]
        return chinese if self.language == "zh" else english


def language_from(environment: Mapping[str, str]) -> str:
    """The language of the locale. Example: {"LANG": "zh_CN.UTF-8"} -> "zh" """
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if environment.get(name):
            return "zh" if re.match(r"zh([_.-]|$)", environment[name], re.IGNORECASE) else "en"
    return "en"
