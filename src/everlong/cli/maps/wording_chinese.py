"""What other parts of the program say in English, in Chinese: providers' objections and the reasons of edits.

The English texts belong to `wire.validate`, `wire.repair` and `compress`; one that this table does not know
stays English.
"""

import re
from functools import cache

__all__ = ["OBJECTIONS", "REASONS", "in_chinese"]

#: What a provider would object to, its parts in braces, and the same in Chinese.
OBJECTIONS: tuple[tuple[str, str], ...] = (
    ("there are no messages", "没有任何消息"),
    ("there are no contents", "没有任何内容（contents）"),
    ("there is no input", "没有输入（input）"),
    ("nobody but the system speaks", "只有系统消息，没有其他人发言"),
    ("is no object", "不是 JSON 对象"),
    ("{a} is no object", "{a} 不是 JSON 对象"),
    ("is from neither user nor assistant", "既不是用户消息，也不是助手消息"),
    ("is from neither user nor model", "既不是用户消息，也不是模型消息"),
    ("unknown role {a}", "未知角色 {a}"),
    ("first message is from {a}, not from the user", "第一条消息来自 {a}，而不是用户"),
    ("first turn is from {a}, not from the user", "第一轮来自 {a}，而不是用户"),
    ("first item is {a}, not a message of the user", "第一项是 {a}，而不是用户消息"),
    ("two turns from {a} in a row", "{a} 连续发言两次"),
    ("system message does not follow the user", "系统消息没有跟在用户消息之后"),
    ("{a} message says nothing", "{a} 消息是空的"),
    ("{a} turn says nothing", "{a} 的一轮是空的"),
    ("{a} message holds {b}", "{a} 消息中含有 {b}"),
    ("{a} turn holds what belongs to {b}", "{a} 的一轮中含有属于 {b} 的内容"),
    ("{a} message makes calls", "{a} 消息发起了工具调用"),
    ("{a} message shows a picture", "{a} 消息中含有图片"),
    ("is neither text nor blocks", "既不是文本，也不是内容块"),
    ("is no content block", "不是内容块"),
    ("text block is empty", "文本块是空的"),
    ("text part is empty", "文本部分是空的"),
    ("part is empty", "该部分是空的"),
    ("picture is empty", "图片是空的"),
    ("item has no type", "该项没有类型"),
    ("item {a} appears twice", "项 {a} 出现了两次"),
    ("is an empty list, or none", "是空列表，或不是列表"),
    ("call has no id", "调用没有 id"),
    ("call id {a} is not accepted", "调用 id {a} 不被接受"),
    ("call id {a} is not unique", "调用 id {a} 不唯一"),
    ("call names no function", "调用没有指明函数"),
    ("call {a} appears twice in one message", "调用 {a} 在同一条消息中出现两次"),
    ("call {a} has no result directly after it", "调用 {a} 之后没有紧跟它的结果"),
    ("call {a} has no result after it", "调用 {a} 之后没有结果"),
    ("call {a} has no result here", "调用 {a} 在此处没有结果"),
    ("tool name {a} is not accepted", "工具名 {a} 不被接受"),
    ("function name {a} is not accepted", "函数名 {a} 不被接受"),
    ("name {a} is not accepted", "名称 {a} 不被接受"),
    ("input is no object", "input 不是 JSON 对象"),
    ("arguments are no JSON text", "参数不是 JSON 文本"),
    ("arguments are not JSON", "参数不是有效的 JSON"),
    ("arguments are no object", "参数不是 JSON 对象"),
    ("arguments hold half a surrogate pair", "参数中含有半个代理对字符"),
    ("tool result names no call", "工具结果没有指明对应的调用"),
    ("tool result says nothing", "工具结果是空的"),
    ("tool result {a} says nothing", "工具结果 {a} 是空的"),
    ("tool result {a} is given twice", "工具结果 {a} 给出了两次"),
    ("tool result {a} answers no call in the message before it", "工具结果 {a} 在前一条消息中没有对应的调用"),
    ("tool result {a} answers no call before it", "工具结果 {a} 之前没有对应的调用"),
    ("tool result stands after other content", "工具结果排在了其他内容之后"),
    ("{a} function responses to {b} function calls", "{b} 个函数调用却有 {a} 个函数响应"),
    ("responses are from {a}, calls were to {b}", "响应来自 {a}，而调用的是 {b}"),
    ("thinking has no signature", "思考块没有签名"),
    ("assistant message ends in thinking", "助手消息以思考块结尾"),
    ("final assistant text ends in whitespace", "最后的助手文本以空白结尾"),
    (
        "thinking is enabled and the open turn does not begin with it",
        "已启用思考，但当前这一轮没有以思考块开头",
    ),
    ("reasoning has no summary list", "思考项没有摘要列表"),
    ("reasoning is not followed by the item it led to", "思考项之后没有它所引出的内容"),
    ("text holds half a surrogate pair", "文本中含有半个代理对字符"),
    ("a key holds half a surrogate pair", "某个键名中含有半个代理对字符"),
)


#: Why something was cut or mended.
REASONS: tuple[tuple[str, str], ...] = (
    ("older than what fits whole; see the excerpts", "较早，无法完整保留；见摘录"),
    ("excerpts and names from {a} messages", "来自 {a} 条消息的摘录和名称"),
    ("older than what is kept", "早于保留范围"),
    ("long text in the arguments of an older call", "较早调用的参数中的长文本"),
    ("all results together above their share of the window; oldest first", "工具结果总量超过其窗口份额；最早的优先"),
    ("older picture", "较早的图片"),
    ("message longer than its limit", "消息超过长度限制"),
    ("least important results first, oldest first among equals", "最不重要的结果优先，同等时较早的优先"),
    ("thoughts of an older step", "较早步骤的思考"),
    ("result above its share of the window", "结果超过其窗口份额"),
    ("tool use older than the last {a} rounds", "最近 {a} 轮之前的工具使用"),
    ("the same {a} tokens stand in message {b}", "同样的 {a} token 在消息 {b} 中已有"),
    ("{a} was changed later, in message {b}", "{a} 之后在消息 {b} 中被修改"),
    ("{a} was read again later, in message {b}", "{a} 之后在消息 {b} 中被重新读取"),
    ("repeated lines said once: {a} lines in {b}", "重复的行只说一次：{a} 行变为 {b} 行"),
    ("list of records written as a table: {a} characters in {b}", "记录列表改写为表格：{a} 字符变为 {b}"),
    (
        "colour codes and overwritten text: {a} of {b} characters were visible",
        "颜色代码与被覆盖的文本：{b} 字符中有 {a} 个可见",
    ),
    (
        "the request does not fit: results to one line, thoughts and long arguments out",
        "请求放不下：结果缩为一行，去掉思考和长参数",
    ),
    ("the request does not fit: only the newest is kept", "请求放不下：只保留最新内容"),
    ("what must stay does not fit: result cut before it was read", "必须保留的内容放不下：结果在被读取前已截短"),
    ("left out by the strategy", "被策略省略"),
    ("put in by the strategy", "由策略加入"),
    ("the first message must be from the user", "第一条消息必须来自用户"),
    ("joined with its neighbour: turns must alternate", "与相邻消息合并：发言必须交替"),
    ("results stand right after their calls now", "结果现在紧跟在调用之后"),
    ("call {a} had no result", "调用 {a} 没有结果"),
    ("call {a} has a result already", "调用 {a} 已有结果"),
    ("call {a} has a result now", "调用 {a} 现在有结果了"),
    ("call id {a} is sent as {b}", "调用 id {a} 以 {b} 发送"),
    ("result {a} answers no call", "结果 {a} 没有对应的调用"),
    ("a result says nothing", "某个结果是空的"),
    ("the {a} message says nothing", "{a} 消息是空的"),
    ("a blank text cannot be sent", "空白文本无法发送"),
    ("thinking without a signature cannot be sent", "没有签名的思考无法发送"),
    ("thinking that nothing follows cannot be sent", "后面没有内容的思考无法发送"),
    ("arguments of call {a} could not be read", "调用 {a} 的参数无法读取"),
    ("half a surrogate pair cannot be sent; replaced by U+FFFD", "半个代理对字符无法发送；已替换为 U+FFFD"),
)


def _pattern(english: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w)\\\}", r"(?P<\1>.+)", re.escape(english)), re.DOTALL)


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Rows with few parts and many words first: they say more than a pattern that also fits."""
    rows = sorted((*OBJECTIONS, *REASONS), key=lambda row: (row[0].count("{"), -len(row[0])))
    return [(_pattern(english), chinese) for english, chinese in rows]


def in_chinese(text: str) -> str:
    """Example: "call c1 has no result after it" -> "调用 c1 之后没有结果" """
    for pattern, chinese in _patterns():
        found = pattern.fullmatch(text)
        if found:
            return chinese.format(**found.groupdict())
    return text
