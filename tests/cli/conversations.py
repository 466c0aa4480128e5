"""Small conversations for the tests of what is shown."""

import json
from pathlib import Path
from typing import Any

LISTING = "\n".join(f"shelf {n}: {n * 7 % 31} copies of volume {n}" for n in range(60))

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "You count books."},
    {"role": "user", "content": "How many copies are there?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "list_shelf", "arguments": '{"path": "hall/a"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": LISTING},
    {"role": "assistant", "content": "Many.", "reasoning_content": "I add them up."},
    {"role": "user", "content": "Look again, please."},
    {
        "role": "assistant",
        "content": "Again.",
        "tool_calls": [
            {"id": "c2", "type": "function", "function": {"name": "list_shelf", "arguments": '{"path": "hall/a"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": LISTING},
]

HOSTILE = (
    '</script><script>alert(1)</script><img src=x onerror=alert(2)>" onmouseover="alert(3)\' <svg/onload=alert(4)>'
    " &amp; $style ${x} \u202egnorw\u202c \x1b[31mred\x1b[0m \x1b]0;title\x07 \x00 \ud800 <!-- ]]> [bold]x[/bold]"
)


def body(messages: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": messages, **fields}


def hostile() -> dict[str, Any]:
    call = {"id": 'a"><b>', "type": "function", "function": {"name": "<img src=x>", "arguments": '{"q": "<b>"}'}}
    messages = [
        {"role": "system", "content": HOSTILE},
        {"role": "user", "content": HOSTILE},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": 'a"><b>', "content": HOSTILE * 3},
        {"role": "tool", "tool_call_id": "<script>", "content": "x" * 300_000},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://evil.example.com/x.png"}}]},
    ]
    return {"model": '"><script>alert(5)</script>', "messages": messages}


def written(folder: Path, value: object, name: str = "talk.json") -> str:
    path = folder / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def compacted_session() -> bytes:
    """A session of pi with one compaction in it."""
    entries = [
        {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/shop"},
        _entry("a", None, "user", "first question"),
        _entry("b", "a", "assistant", "first answer"),
        {
            "type": "compaction",
            "id": "c",
            "parentId": "b",
            "timestamp": "2026-01-01T00:00:03.000Z",
            "summary": "what was said before",
            "firstKeptEntryId": "c",
            "tokensBefore": 100,
        },
        _entry("d", "c", "user", "second question"),
    ]
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def _entry(name: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    stamp = "2026-01-01T00:00:01.000Z"
    return {"type": "message", "id": name, "parentId": parent, "timestamp": stamp, "message": message}
