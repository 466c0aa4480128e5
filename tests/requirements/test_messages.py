"""CS-2: our own message type, independent of any provider; adapters convert both ways."""

import ast
from pathlib import Path

import pytest

import everlong.core
from everlong.core import Message, Role
from everlong.wire import ANTHROPIC, GEMINI, OPENAI_CHAT

CORE = Path(everlong.core.__file__).parent

PAYLOADS = {
    "openai-chat": (OPENAI_CHAT, {"role": "user", "content": "你好"}),
    "anthropic": (ANTHROPIC, {"role": "user", "content": [{"type": "text", "text": "你好"}]}),
    "gemini": (GEMINI, {"role": "user", "parts": [{"text": "你好"}]}),
}


def test_CS_2_core_imports_nothing_of_a_provider() -> None:
    for path in CORE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("everlong"):
                assert (node.module or "").startswith(("everlong.core", "everlong.doors", "everlong.errors")), path.name


@pytest.mark.parametrize("fmt", PAYLOADS)
def test_CS_2_adapters_convert_both_ways(fmt: str) -> None:
    spoken, payload = PAYLOADS[fmt]
    message = spoken.read_message(payload)
    assert isinstance(message, Message)
    assert (message.role, message.text) == (Role.USER, "你好")
    assert spoken.write_message(message) == [payload]


@pytest.mark.parametrize("source", PAYLOADS)
@pytest.mark.parametrize("target", PAYLOADS)
def test_CS_2_a_message_of_one_provider_can_be_said_to_another(source: str, target: str) -> None:
    message = PAYLOADS[source][0].read_message(PAYLOADS[source][1])
    rendered = PAYLOADS[target][0].write_message(message)
    assert PAYLOADS[target][0].read_message(rendered[0]).text == "你好"
