"""The data set that ships with these tests: written by us, in the form of the lab's data folder."""

from pathlib import Path

from everlong.core import CallId, History, Message, Reasoning, Role, Text, ToolCall, ToolResult

DATA = Path(__file__).parent / "data"


def said(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


def step(number: int, result: str, arguments: str = "{}", thought: str = "") -> History:
    """A call and its result."""
    key = CallId(f"c{number}")
    thinking = (Reasoning(thought),) if thought else ()
    return (
        Message(Role.ASSISTANT, (*thinking, ToolCall(key, "run", arguments))),
        Message(Role.TOOL, (ToolResult(key, (Text(result),)),)),
    )
