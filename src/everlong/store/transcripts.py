"""A thread as Markdown that people read: who said what and when, calls and thinking folded, pictures in place.

Every message is complete; compactions are notes at the places where they were made. Our own few words are in the
reader's language.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from everlong.core import (
    Image,
    Message,
    Part,
    Point,
    Reasoning,
    Recalled,
    Role,
    Row,
    Text,
    Thread,
    ToolCall,
    ToolResult,
)
from everlong.engine import Threads
from everlong.store.rules import as_utc

__all__ = ["transcript"]

#: The words of the file, by language.
WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "untitled": "Untitled",
        "head": "{messages} messages · started {created} · last changed {updated}",
        "user": "You",
        "assistant": "Assistant",
        "system": "Instructions",
        "tool": "Tool",
        "thinking": "Thinking",
        "call": "Call: {name}",
        "result": "Result: {name}",
        "failed": "Failed: {name}",
        "summary": "Summary of the first {count} rows",
        "cut": "Compaction: the first {count} rows are no longer sent",
        "undone": "(undone later)",
        "recalled": "Recalled from earlier messages",
        "picture": "image",
        "none": "(empty)",
        "stopped": "stopped",
        "broken off": "interrupted",
        "length": "stopped at the length limit",
        "empty": "empty answer",
    },
    "zh": {
        "untitled": "未命名",
        "head": "{messages} 条消息 · 开始于 {created} · 最后更新 {updated}",
        "user": "你",
        "assistant": "助手",
        "system": "指令",
        "tool": "工具",
        "thinking": "思考过程",
        "call": "调用：{name}",
        "result": "结果：{name}",
        "failed": "失败：{name}",
        "summary": "前 {count} 行的摘要",
        "cut": "压缩：前 {count} 行不再发送",
        "undone": "（之后已撤销）",
        "recalled": "从较早的消息中召回",
        "picture": "图片",
        "none": "（空）",
        "stopped": "已停止",
        "broken off": "回答中断",
        "length": "达到长度上限",
        "empty": "空回答",
    },
}
SAFE_PICTURE = re.compile(r"image/(png|jpeg|gif|webp)")
DATA = re.compile(r"[A-Za-z0-9+/=]+")


def transcript(store: Threads, thread: Thread, language: str = "en") -> Iterator[str]:
    """The lines of the file, one row at a time."""
    say = WORDS.get(language, WORDS["en"])
    yield f"# {_one_line(thread.title) or say['untitled']}\n\n"
    head = say["head"].format(
        messages=thread.messages, created=_minute(thread.created), updated=_minute(thread.updated)
    )
    yield f"*{head}*\n"
    standing = {row.order: stands for row, stands in store.points(thread.id)}
    for row in store.read(thread.id):
        yield from _row(row, say, stands=standing.get(row.order, True))


def _row(row: Row, say: Mapping[str, str], *, stands: bool) -> Iterator[str]:
    match row.entry:
        case Message() as message:
            yield from _message(message, message.time or row.time, say)
        case Recalled(message=message):
            yield f"\n{_folded(say['recalled'], message.text)}"
        case Point(boundary=boundary, summary=summary):
            key = "summary" if summary else "cut"
            label = say[key].format(count=boundary) + ("" if stands else f" {say['undone']}")
            text = "\n\n".join(message.text for message in summary if message.text)
            yield f"\n---\n\n{_folded(label, text) if text else f'*{label}*'}\n\n---\n"
        case _:
            return


def _message(message: Message, time: datetime, say: Mapping[str, str]) -> Iterator[str]:
    if message.role is not Role.TOOL:
        model = _one_line(message.model)
        who = say[message.role.value] + (f" ({model})" if model else "")
        ended = f" · {say[message.ending]}" if message.ending else ""
        yield f"\n## {who} · {_minute(time)}{ended}\n"
    for part in message.parts:
        if text := _part(part, say):
            yield f"\n{text}\n"


def _part(part: Part, say: Mapping[str, str]) -> str:
    match part:
        case Text(text=text):
            return text.strip("\n")
        case Reasoning(text=text):
            return _folded(say["thinking"], text) if text.strip() else ""
        case Image():
            return _picture(part, say)
        case ToolCall(name=name, arguments=arguments):
            return _folded(say["call"].format(name=_one_line(name)), _fenced(arguments, "json"))
        case ToolResult(name=name, failed=failed, content=content):
            label = say["failed" if failed else "result"].format(name=_one_line(name) or say["tool"])
            inner = [_fenced(each.text) if isinstance(each, Text) else _part(each, say) for each in content]
            return _folded(label, "\n\n".join(filter(None, inner)) or say["none"])
        case _:
            return ""


def _picture(image: Image, say: Mapping[str, str]) -> str:
    if image.data and SAFE_PICTURE.fullmatch(image.media_type) and DATA.fullmatch(image.data):
        return f"![{say['picture']}](data:{image.media_type};base64,{image.data})"
    return f"[{say['picture']}]({image.url})" if image.url.startswith("https://") and ")" not in image.url else ""


def _folded(title: str, text: str) -> str:
    safe = title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<details>\n<summary>{safe}</summary>\n\n{text.strip()}\n\n</details>"


def _fenced(text: str, kind: str = "") -> str:
    """Return the text as a block of code, whatever fences it contains."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}"


def _minute(time: datetime) -> str:
    return f"{as_utc(time):%Y-%m-%d %H:%M} UTC"


def _one_line(text: str) -> str:
    return " ".join(text.split())
