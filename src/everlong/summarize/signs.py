"""Signs that an answer is no summary: refusals, error texts, tool protocol, a conversation carried on.

Each row is a pattern, the reason it stands for and a real sample of it; the sample is the test. A row of a refusal, an
error or a question looks only at the beginning of an answer: a summary may well tell of errors and refusals.
"""

import re
from dataclasses import dataclass

__all__ = ["OPENINGS", "PROTOCOL", "Sign", "no_summary"]

LOOKED_AT = 400  # characters at the beginning
LEAD = r"^[\s\"'“*_#>\-]*"


@dataclass(frozen=True, slots=True)
class Sign:
    """What gives it away, what it is, and how it looks."""

    reason: str
    pattern: re.Pattern[str]
    sample: str


def _opening(reason: str, pattern: str, sample: str) -> Sign:
    return Sign(reason, re.compile(LEAD + f"(?:{pattern})", re.IGNORECASE), sample)


REFUSED = "a refusal"
ERROR = "an error text"
ASKED_BACK = "a question instead of a summary"
CONTINUED = "the conversation carried on instead of summarised"
TOOLS = "a tool call written as text"

#: Looked for at the beginning only.
OPENINGS: tuple[Sign, ...] = (
    _opening(
        REFUSED,
        r"(?:i'?m |i am )?(?:really |very |so )?(?:sorry|afraid)\b(?!,? the user)",
        "I'm sorry, but I can't assist with that request.",
    ),
    _opening(
        REFUSED,
        r"(?:unfortunately,? |apologies,? (?:but )?)?i(?: a|['’])?m? ?(?:can(?:no|['’])?t|can not|won['’]t|will not"
        r"|(?:am )?(?:unable|not able|not allowed) to|must decline|have to decline|do not feel comfortable"
        r"|don['’]t feel comfortable|could ?n[o'’]t)[ ,.]*(?:to )?(?:help|assist|comply|summari|provide|do that|do"
        r" this|fulfil"
        r"|continue|process|generate|create|produce|engage|share|discuss|with)",
        "I can't help with that.",
    ),
    _opening(
        REFUSED, r"as an? (?:ai|artificial|large language)\b", "As an AI language model, I do not keep conversations."
    ),
    _opening(
        REFUSED,
        r"(?:this|the) (?:request|content|conversation) (?:violates|goes against)",
        "This request violates our usage policy.",
    ),
    _opening(
        REFUSED,
        r"(?:非常|很|十分|真的)?(?:抱歉|对不起|不好意思|遗憾)[，,。！!\s]|我(?:无法|不能|没办法|没法)(?:帮|协助"
        r"|提供|完成|总结|继续|处理|满足|回答|参与)"
        r"|作为(?:一个|一名)?(?:AI|人工智能|语言模型)",
        "抱歉，我无法协助完成这个请求。",
    ),
    _opening(
        ERROR,
        r"\[?(?:api |http |server |upstream |network |internal |provider |fatal |unknown )*(?:error|exception)"
        r"(?:\s*[:：(\[]|\s+(?:code\s*)?\d{3}\b|\s+(?:generating|creating|while|during|from|calling|communicating))",
        "Error: 429 Too Many Requests",
    ),
    _opening(
        ERROR,
        r"(?:http/?[\d.]*\s+)?[45]\d\d\s+(?:too many|bad|internal|service|gateway|unauthorized|forbidden|not found"
        r"|error)"
        r"|(?:rate limit|quota|usage limit|too many requests|request (?:timed out|too large|failed)|connection"
        r" (?:error|refused|reset"
        r"|timed out|aborted)|internal server error|service unavailable|bad gateway|gateway time-?out|traceback \("
        r"|<!doctype|<html"
        r"|insufficient (?:quota|balance)|invalid api key|overloaded)\b",
        "Rate limit exceeded, please try again in 20s.",
    ),
    _opening(
        ERROR,
        r"\{\s*\"?(?:error|detail|errors)\"?\s*:",
        '{"error": {"message": "overloaded", "type": "overloaded_error"}}',
    ),
    _opening(
        ERROR,
        r"[^.\n]{0,80}\b(?:too long|too large) to (?:be )?summari[sz]e|[^.\n]{0,60}maximum context length"
        r"|(?:unable|failed|could not) to (?:generate|create|produce|make) (?:an? |the )?(?:\w+ )?summary|summary"
        r" (?:generation )?(?:failed|unavailable)"
        r"|\[?summary (?:not available|unavailable)",
        "Previous conversation was too long to summarize.",
    ),
    _opening(
        ERROR,
        r"(?:系统|网络|服务器?|接口|内部|请求)?(?:错误|异常|出错)(?:了)?[：:，,。！(（\s]|请求(?:过于频繁|超时"
        r"|失败|过多)|(?:余额|额度|配额)不足|服务(?:不可用|繁忙|器繁忙)"
        r"|(?:生成摘要|总结|摘要生成)失败|(?:对话|内容|上下文)(?:太长|过长)",
        "错误：请求过于频繁，请稍后再试",
    ),
    _opening(
        ASKED_BACK,
        r"(?:please |could you |can you )(?:please )?(?:provide|share|paste|send|give)|(?:it (?:looks|seems) like"
        r" )?(?:there (?:is|was) )?(?:no|not any)"
        r" (?:conversation|content|text|messages|transcript|history|context)\b"
        r"|\(nothing\)|(?:there (?:is|was) )?nothing (?:here )?to summari"
        r"|what would you like|how can i (?:help|assist)|i (?:don['’]t|do not) (?:see|have) (?:any|a|the|access)",
        "Please provide the conversation you would like me to summarize.",
    ),
    _opening(
        ASKED_BACK,
        r"请(?:您)?(?:提供|发送|粘贴|分享|给出|告诉)|(?:没有|暂无|无)(?:可|需要|任何)?(?:供)?(?:总结|摘要|对话"
        r"|内容)|请问(?:您|你)|(?:您|你)好[，,！!]|有什么(?:可以|能)帮",
        "请提供需要总结的对话内容。",
    ),
    _opening(
        CONTINUED,
        r"(?:sure|certainly|of course|okay|ok|great|alright|absolutely|got it|understood)?[,!.\s]*(?:let me"
        r"|let['’]s|i['’]ll|i will|i['’]m going to"
        r"|i am going to|now i)\b(?! summari)(?!\s+provide (?:a|the) summary)",
        "Sure, let me fix that test now.",
    ),
    _opening(
        CONTINUED,
        r"(?:好的|好|没问题|当然|明白|收到|可以)?[，,。！!\s]*(?:我(?:来|现在|马上|这就|将|会|先)(?!总结|概括)"
        r"|让我(?!总结|概括|来总结)|接下来我)",
        "好的，我来修复这个测试。",
    ),
)

#: Looked for at the beginning of any line outside code.
PROTOCOL: tuple[Sign, ...] = (
    Sign(
        TOOLS,
        re.compile(
            r"^[ \t]*<\W?(?:antml:)?(?:tool_?calls?|tool_use|function_?calls?|function|invoke|tool_code|tools?)\b[^>\n]*>"
            r"|<[|｜](?:tool|python_tag|channel|start|message|call|recipient)"
            r"|^[ \t]*\[TOOL_CALLS?\]|^[ \t]*<function="
            r"|^Action(?: Input)?: ?\S",
            re.IGNORECASE | re.MULTILINE,
        ),
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>',
    ),
    Sign(
        TOOLS,
        re.compile(
            r"^\s*\[?\s*\{\s*\"(?:name|tool|function|tool_calls|type)\"\s*:(?=[^{}]{0,200}\"(?:arguments"
            r"|parameters|input|function)\"\s*:)",
            re.IGNORECASE,
        ),
        '{"name": "read_file", "arguments": {"path": "a.py"}}',
    ),
)

_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_USER_LINE = re.compile(r"^[^\w\n]{0,9}(?:user|human|用户)\W{0,3}[:：]", re.IGNORECASE | re.MULTILINE)
_ANSWER_LINE = re.compile(r"^[^\w\n]{0,9}(?:assistant|ai|助手|助理)\W{0,3}[:：]", re.IGNORECASE | re.MULTILINE)


def no_summary(text: str) -> str:
    """Why this answer is no summary; "" if nothing gives it away. Example: "I can't help with that." -> "a refusal" """
    bare = _CODE.sub(" ", text)
    # A fenced call is still a call: the second row looks at the text as it is.
    for sign in PROTOCOL:
        if sign.pattern.search(bare) or sign.pattern.search(text.removeprefix("```json").lstrip("`")[:LOOKED_AT]):
            return sign.reason
    beginning = text[:LOOKED_AT]
    for sign in OPENINGS:
        if sign.pattern.search(beginning):
            return sign.reason
    if _USER_LINE.search(bare) and _ANSWER_LINE.search(bare):
        return CONTINUED
    return ""
