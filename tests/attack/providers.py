"""What providers refuse, written from their published rules: a second opinion beside `wire/formats/*/rules.py`.

Shares no code with the package. `refusals` gives one line for each reason. Block and item types that the rules do not
know are let pass, because providers add new ones; everything that has a known type must be right. Settings that are no
part of the conversation (temperature, metadata) are the caller's own; they must only be JSON.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.attack.bodies import Payload
from tests.attack.rules_anthropic import messages
from tests.attack.rules_gemini import generate_content
from tests.attack.rules_ollama import chat as ollama_chat
from tests.attack.rules_openai import chat, responses

__all__ = ["DEEPEST", "refusals"]

DEEPEST = 200  # levels; what the strictest of the JSON readers behind the APIs still takes


def refusals(fmt: str, body: Any) -> list[str]:
    """Every reason for which the provider of the format would refuse the body; [] if it takes it."""
    unwritable = _unwritable(body)
    if unwritable:
        return [unwritable]
    if not isinstance(body, dict):
        return ["the body is not an object"]
    return list(RULES[fmt](body))


def _unwritable(body: Any) -> str:
    """Why it cannot be written as strict JSON in UTF-8; "" if it can."""
    try:
        text = json.dumps(body, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        return f"not JSON: {type(error).__name__} {error}"[:200]
    depth = deepest = 0
    if text.count("[") + text.count("{") > DEEPEST:
        for sign in re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text):
            depth += (sign in "[{") - (sign in "]}")
            deepest = max(deepest, depth)
    if deepest > DEEPEST:
        return f"nested {deepest} levels deep"
    return "" if _named(body) else "a key is no text"


def _named(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _named(inner) for key, inner in value.items())
    return all(map(_named, value)) if isinstance(value, list | tuple) else True


RULES: Mapping[str, Callable[[Payload], Iterator[str]]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic": messages,
    "gemini": generate_content,
    "ollama": ollama_chat,
}
