"""Signs that an answer is not a summary: refusals, error texts, tool protocol, a continued conversation.

Each row is a pattern, its reason and a real sample; the sample is the test. Rows for refusals, errors and questions
look only at the beginning of an answer: a summary may well report errors and refusals.
"""

import re
from dataclasses import dataclass

__all__ = ["OPENINGS", "PROTOCOL", "Sign", "no_summary"]

LOOKED_AT = 400  # characters at the beginning
LEAD = r"^[\s\"'“*_#>\-]*"


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign: its reason, its pattern and a sample."""

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

ENDED = r"(?=\s*(?:[.,:;!(。，：！—-]|$)|\s+(?:please|try|for|by peer|while|on request))"
STOPPED = r"(?=\s*(?:[，,。！!：:（(]|$))"

#: Searched only at the beginning of an answer.
OPENINGS: tuple[Sign, ...] = (
    _opening(
        REFUSED,
        r"(?:i['’]?m |i am )?(?:really |very |so )?(?:sorry|afraid)(?=\s*[,.!—-]|\s+(?:but|i\b|that i|about that|for))",
        "I'm sorry, but I can't assist with that request.",
    ),
    _opening(
        REFUSED,
        r"(?:unfortunately,? |apologies,? (?:but )?)?i (?:can(?:no|['’])?t|can not|won['’]t|will not|could not"
        r"|couldn['’]t) (?:help|assist|comply|summari|provide|do (?:that|this)|fulfil|continue|process|generate|create"
        r"|produce|engage|share|discuss)",
        "I can't help with that.",
    ),
    _opening(
        REFUSED,
        r"(?:unfortunately,? )?i(?:['’]m| am) (?:unable|not able|not allowed|not permitted) to\b",
        "Unfortunately, I am unable to provide a summary.",
    ),
    _opening(
        REFUSED,
        r"i (?:must|have to) decline|i (?:do not|don['’]t) feel comfortable",
        "I must decline to summarize this.",
    ),
    _opening(
        REFUSED,
        r"as an? (?:ai|artificial intelligence|large language)(?: language)?(?: model| assistant)?,? i\b",
        "As an AI language model, I do not keep conversations.",
    ),
    _opening(
        REFUSED,
        r"(?:this|the|your) (?:request|content|conversation|prompt) (?:violates|goes against)",
        "This request violates our usage policy.",
    ),
    _opening(
        REFUSED,
        r"(?:非常|很|十分|真的)?(?:抱歉|对不起|不好意思|遗憾)[，,。！!\s]",
        "抱歉，我无法协助完成这个请求。",
    ),
    _opening(
        REFUSED,
        r"我(?:无法|不能|没办法|没法)(?:帮|协助|提供|完成|总结|继续|处理|满足|回答|参与)",
        "我无法提供这段对话的摘要。",
    ),
    _opening(REFUSED, r"作为(?:一个|一名)?(?:AI|人工智能|语言模型)[^。]{0,12}我", "作为一个AI语言模型，我不能这样做。"),
    _opening(
        ERROR,
        r"\[?(?:api |http |server |upstream |network |internal |provider |fatal |unknown )*(?:error|exception)"
        r"(?:\s*[:：\[]|\s+(?:code\s*)?\d{3}\b|\s+(?:generating|creating|while|during|from|calling|communicating))",
        "Error: 429 Too Many Requests",
    ),
    _opening(
        ERROR,
        r"(?:http/?[\d.]*\s+)?[45]\d\d\s+(?:too many|bad (?:request|gateway)|internal server|service unav|gateway time"
        r"|unauthorized|forbidden|not found|error(?=\s*[:.]|\s*$))",
        "503 Service Unavailable",
    ),
    _opening(
        ERROR,
        rf"(?:(?:rate|usage|quota) ?limit (?:exceeded|reached|hit|error)|too many requests|quota exceeded){ENDED}",
        "Rate limit exceeded, please try again in 20s.",
    ),
    _opening(
        ERROR,
        rf"(?:the )?(?:request (?:timed out|too large|failed)|connection (?:error|refused|reset|timed out|aborted)"
        rf"|internal server error|service unavailable|bad gateway|gateway time-?out|overloaded){ENDED}",
        "Connection reset by peer",
    ),
    _opening(
        ERROR,
        r"traceback \(|<!doctype|<html|insufficient (?:quota|balance)|(?:invalid|incorrect) api key",
        "Traceback (most recent call last):",
    ),
    _opening(
        ERROR,
        r"\{\s*\"?(?:error|detail|errors)\"?\s*:",
        '{"error": {"message": "overloaded", "type": "overloaded_error"}}',
    ),
    _opening(
        ERROR,
        r"[^.\n]{0,80}\b(?:too long|too large) to (?:be )?summari[sz]e|[^.\n]{0,60}maximum context length (?:is|of)",
        "Previous conversation was too long to summarize.",
    ),
    _opening(
        ERROR,
        r"(?:unable|failed|could not) to (?:generate|create|produce|make|summari[sz]e)\b"
        r"|\[?summary (?:generation )?(?:failed|unavailable|not available)",
        "Failed to generate summary.",
    ),
    _opening(ERROR, r"(?:系统|网络|服务器?|接口|内部|请求)?(?:错误|异常|出错)了?[：:，,。！]", "错误：请稍后再试"),
    _opening(
        ERROR,
        rf"(?:请求(?:过于频繁|超时|失败|过多)|(?:余额|额度|配额)不足|服务(?:不可用|器?繁忙)){STOPPED}",
        "请求过于频繁，请稍后再试",
    ),
    _opening(
        ERROR,
        rf"(?:(?:生成摘要|总结|摘要生成)失败|(?:对话|内容|上下文)(?:太长|过长)){STOPPED}",
        "对话过长，无法总结。",
    ),
    _opening(
        ASKED_BACK,
        r"(?:please |could you |can you )(?:please )?(?:provide|share|paste|send|give)\b",
        "Please provide the conversation you would like me to summarize.",
    ),
    _opening(
        ASKED_BACK,
        r"(?:it (?:looks|seems) like )?(?:there (?:is|was|are|were) )?no (?:conversation|content|text|messages?"
        r"|transcript|history|context)(?: history| content)?"
        r" (?:to summari|(?:was |were |is |has been )?(?:provided|given|included))",
        "There is no conversation to summarize.",
    ),
    _opening(ASKED_BACK, r"\(nothing\)|(?:there (?:is|was) )?nothing (?:here )?to summari", "Nothing to summarize."),
    _opening(
        ASKED_BACK,
        r"what would you like|how can i (?:help|assist)|i (?:don['’]t|do not) (?:see|have) (?:any|a|the|access)\b",
        "How can I help you today?",
    ),
    _opening(ASKED_BACK, r"请(?:您)?(?:提供|发送|粘贴|分享|给出|告诉)", "请提供需要总结的对话内容。"),
    _opening(
        ASKED_BACK,
        r"(?:没有|暂无|无)(?:可|需要|任何)?供?(?:总结|摘要)|(?:没有|未)(?:提供|收到)(?:任何)?(?:对话|内容)",
        "没有可总结的内容。",
    ),
    _opening(ASKED_BACK, r"请问(?:您|你)|(?:您|你)好[，,！!]|有什么(?:可以|能)帮", "你好！有什么可以帮你？"),
    _opening(
        CONTINUED,
        r"(?:(?:sure|certainly|of course|okay|ok|great|alright|absolutely|got it|understood)[,!.\s]+)?(?:let me"
        r"|let['’]s(?! encrypt)|i['’]ll|i will|i['’]m going to|i am going to|now i)\b"
        r"(?! summari| provide (?:a|the) summary)",
        "Sure, let me fix that test now.",
    ),
    _opening(
        CONTINUED,
        r"(?:(?:好的?|没问题|当然|明白|收到|可以)[，,。！!\s]*)?(?:我(?:来|现在|马上|这就|将|会|先)|让我|接下来我)"
        r"(?!来?总结|来?概括)(?![^。\n]{0,30}[了已])",
        "好的，我来修复这个测试。",
    ),
)

#: Searched at the beginning of every line outside code.
PROTOCOL: tuple[Sign, ...] = (
    Sign(
        TOOLS,
        re.compile(
            r"^[ \t]*<\W?(?:\w{1,20}:)?(?:tools?|tool_?(?:calls?|use|code)|function(?:_?calls?)?|invoke)\b[^>\n]*>"
            r"|<[|｜](?:tool|python_tag|channel|start|message|call|recipient)"
            r"|^[ \t]*\[TOOL_CALLS?\]|^[ \t]*<function="
            r"|^Action Input: ?\S",
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
    """Return why an answer is not a summary; "" if it may be one. Example: "I can't help with that." -> "a refusal" """
    bare = _CODE.sub(" ", text)
    # A tool call in a code fence is still a call, so the second search includes code.
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
