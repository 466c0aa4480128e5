"""The witness's own sentences, by language. Everything else that it says is quoted."""

import re
from collections.abc import Mapping

from everlong.relevance import in_language

__all__ = ["ABSENT", "SMALL_TALK", "WORDS", "is_own_answer", "is_own_line", "place_line"]

#: How its answers begin: an answer that begins so is never evidence for another.
FOUND: Mapping[str, str] = {"en": "In what I was sent:", "zh": "在发给我的内容里："}
ABSENT: Mapping[str, str] = {"en": "That is not in what I was sent.", "zh": "发给我的内容里没有这一点。"}
PLACE = "> — *"  # how the line below a quotation begins
HELLO: Mapping[str, str] = {
    "en": "I am the witness, not a language model. Ask me something about this conversation: I quote the answer from "
    "what I was sent, or say that it is not there.",
    "zh": "我是“见证人”，不是语言模型：问我这段对话里的任何事，我会从发给我的内容中原样引用能回答它的话；"
    "没有，就直说没有。",
}
NOTED: Mapping[str, str] = {
    "en": "Noted: it is part of this conversation now. I am the witness, not a language model, so I only quote. Ask "
    "me about it later and see whether it still reaches me.",
    "zh": "这句话已经留在对话里了。我是“见证人”，不是语言模型，只会引用原话。以后再问我，看看它是否还能传到我这里。",
}

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "found": FOUND["en"],
        "hello": HELLO["en"],
        "noted": NOTED["en"],
        "sent": "I was sent {messages} messages, about {tokens} tokens",
        "with_summary": ", with a summary of what came before",
        "with_excerpts": ", with recalled excerpts",
        "recalled": " Recall found nothing about it either.",
        "looked": "I looked for: {words}.",
        "user": "you, message {number} of {all}",
        "assistant": "the assistant, message {number} of {all}",
        "result": "result of {name}, message {number} of {all}",
        "system": "the instructions",
        "summary": "the summary",
        "recalled_excerpt": "recalled: message {number} of the thread",
        "excerpt": "recalled from earlier in the thread",
        "end": ".",
        "between": ", ",
    },
    "zh": {
        "found": FOUND["zh"],
        "hello": HELLO["zh"],
        "noted": NOTED["zh"],
        "sent": "发给我的有 {messages} 条消息，约 {tokens} 个 token",
        "with_summary": "，其中有一份更早内容的摘要",
        "with_excerpts": "，其中有取回的原文片段",
        "recalled": "用 recall 找过，也没有。",
        "looked": "我找的是：{words}。",
        "user": "你，第 {number} 条（共 {all} 条）",
        "assistant": "助手，第 {number} 条（共 {all} 条）",
        "result": "{name} 的结果，第 {number} 条（共 {all} 条）",
        "system": "系统提示",
        "summary": "摘要",
        "recalled_excerpt": "取回的原文：对话第 {number} 条",
        "excerpt": "取回的原文：更早的对话",
        "end": "。",
        "between": "、",
    },
}

#: How the other lines of its answers begin.
OWN_LINES = tuple(words[name].partition("{")[0] for words in WORDS.values() for name in ("sent", "looked"))
SMALL_TALK = re.compile(
    r"(?:hi|hello|hey|good (?:morning|evening|afternoon|day)|thanks?(?: you)?(?: very much| a lot)?|thx|bye|goodbye"
    r"|ok(?:ay)?|who are you|what are you|what can you do|what do you do|how do(?:es)? (?:you|this|it) work"
    r"|help(?: me)?|test(?:ing)?|how are you|nice|great|cool"
    r"|你好|您好|嗨|早上好|下午好|晚上好|谢谢你?|多谢|感谢|再见|好的?|你是谁|你是什么|你能做什么|你会什么|你会做什么|帮助|怎么用|测试)"
    r"(?: there| witness|呀|啊|了)?[\s,.!?，。！？~]*",
    re.IGNORECASE,
)


def is_own_answer(text: str) -> bool:
    """Whether the witness said this."""
    return text.startswith((*FOUND.values(), *ABSENT.values(), *HELLO.values(), *NOTED.values()))


def is_own_line(line: str) -> bool:
    """Return whether only the witness writes such a line: then the text is one of its own answers, recalled."""
    return line.startswith((PLACE, *OWN_LINES)) or is_own_answer(line)


def place_line(language: str, kind: str, number: int, name: str, messages: int) -> str:
    """Return where a quotation stood. Example: user, 3 of 17 -> "> — *you, message 3 of 17*" """
    place = in_language(WORDS, language)[kind].format(number=number, name=name or "tool", all=messages)
    return f"{PLACE}{place}*"
