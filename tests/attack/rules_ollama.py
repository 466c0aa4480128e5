"""What Ollama refuses of a chat: its server reads the body into typed structures, and is lenient beyond them.

github.com/ollama/ollama/blob/main/docs/api.md, api/types.go
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from tests.attack.bodies import Payload

__all__ = ["chat"]

ROLES = ("system", "user", "assistant", "tool")


def chat(body: Payload) -> Iterator[str]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: nothing to answer"
        return
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            yield f"{where}: role"
            return
        if not isinstance(message.get("content"), str | None):  # null has no effect in Go
            yield f"{where}.content: cannot unmarshal into a string"
        yield from _pictures(where, message.get("images"))
        yield from _calls(where, message.get("tool_calls"))


def _pictures(where: str, images: Any) -> Iterator[str]:
    if images is None:
        return
    if not isinstance(images, list):
        yield f"{where}.images: cannot unmarshal into a list"
        return
    for index, image in enumerate(images):
        try:
            base64.b64decode(image, validate=True)
        except (binascii.Error, TypeError, ValueError):
            yield f"{where}.images[{index}]: illegal base64"


def _calls(where: str, calls: Any) -> Iterator[str]:
    if calls is None:
        return
    if not isinstance(calls, list):
        yield f"{where}.tool_calls: cannot unmarshal into a list"
        return
    for index, call in enumerate(calls):
        made = call.get("function") if isinstance(call, dict) else None
        if not isinstance(made, dict) or not isinstance(made.get("name"), str):
            yield f"{where}.tool_calls[{index}]: no function"
        elif not isinstance(made.get("arguments", {}), dict):
            yield f"{where}.tool_calls[{index}]: arguments are not an object"
