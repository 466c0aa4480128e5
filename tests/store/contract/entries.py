"""Entries for the contract: messages, points, and texts that break careless stores."""

from everlong.core import (
    Action,
    CallId,
    Edit,
    Figures,
    Image,
    Message,
    Opaque,
    Point,
    Reasoning,
    Ref,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from tests.core.build import assistant, calls, result, system, user

__all__ = ["CONVERSATION", "EVERYTHING", "HOSTILE_TEXTS", "SUMMARY", "full_point", "point", "talk"]

SUMMARY = (user("[summary] They talked about the weather."),)

CONVERSATION = (
    system("You are kind."),
    user("Where is the config?"),
    calls("1", arguments='{"path": "config.toml"}'),
    result("1", "port = 8080"),
    assistant("The port is 8080."),
    user("And the host?"),
)

#: A message with every kind of part and every field filled.
EVERYTHING = Message(
    Role.ASSISTANT,
    (
        Text("words", '{"annotations": []}'),
        Image("aGVsbG8=", "image/png", "", "high", '{"x": 1}'),
        Image(url="https://example.com/a.png"),
        ToolCall(CallId("c1"), "read_file", '{"path": "a.py"}', '{"index": 0}'),
        ToolResult(
            CallId("c0"),
            (Text("inner words"), Image("d29ybGQ=", "image/jpeg"), Opaque("audio", '{"a": 1}')),
            "read_file",
            failed=True,
            extra='{"y": 2}',
        ),
        Reasoning("thinking", "signature", '{"z": 3}'),
        Opaque("future", '{"type": "future"}'),
    ),
    name="ann",
    origin="openai-chat",
    extra='{"id": "m1"}',
)

HOSTILE_TEXTS = {
    "empty": "",
    "NUL": "a\x00b\x00",
    "lone surrogates": "high \ud83d low \ude00 alone",
    "line separators": "a\u2028b\u2029c\x85d\x0be",
    "carriage returns": "a\r\nb\rc\n",
    "byte order mark": "\ufeffa",
    "emoji and Chinese": "你好，世界 👩‍👩‍👧‍👦 e\u0301 é",
    "escapes": 'quote " backslash \\ \\u0000 \\ud83d \x1b[31m',
    "not characters": "\ufffe\uffff\U0010ffff",
    "300 kB": "这是一行很长的输出 line 0123456789\n" * 7_500,
    "just above 2 kB": "x" * 2_049,
}


def point(boundary: int, summary: str = "[summary]", **more: int | str) -> Point:
    return Point(boundary=boundary, summary=(user(summary),), **more)  # type: ignore[arg-type]


def full_point(boundary: int) -> Point:
    """A point with every field filled."""
    trimmed = Edit(
        at=1, step="by_need", action=Action.SHORTEN, reason="too long", before=10, after=4, part=0, ref=Ref("0" * 16)
    )
    dropped = Edit(at=2, step="newest", action=Action.DROP, reason="较早", before=7, after=0)
    return Point(
        boundary=boundary,
        summary=(*SUMMARY, EVERYTHING),
        tokens_before=100,
        tokens_after=20,
        reason="high mark",
        focus="端口",
        account='{"goal": "找到端口"}',
        model="gpt-4o",
        limit=64_000,
        edits=(trimmed, dropped),
        figures=Figures(messages=9, kept=2, shortened=3, before=120, after=40),
    )


def talk(turns: int, about: str = "turn") -> tuple[Message, ...]:
    """So many user messages, each answered."""
    return tuple(
        message
        for turn in range(turns)
        for message in (user(f"{about} {turn}, question"), assistant(f"{about} {turn}, answer"))
    )
