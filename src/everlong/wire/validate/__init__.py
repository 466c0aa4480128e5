"""Would the provider accept it? Looks at the payload as it would be sent, and at nothing else.

Independent of our own parsers and renderers, so that it checks those too. Never changes anything.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from everlong.core import JsonObject
from everlong.errors import InputError
from everlong.wire.validate.anthropic import anthropic_problems
from everlong.wire.validate.gemini import gemini_problems
from everlong.wire.validate.openai_chat import chat_problems
from everlong.wire.validate.openai_responses import responses_problems
from everlong.wire.validate.problem import Problem
from everlong.wire.validate.texts import surrogate_problems

__all__ = ["VALIDATORS", "Problem", "problems"]

Validator: TypeAlias = Callable[[JsonObject], Iterator[Problem]]

VALIDATORS: dict[str, Validator] = {
    "anthropic": anthropic_problems,
    "gemini": gemini_problems,
    "openai-chat": chat_problems,
    "openai-responses": responses_problems,
}


def problems(fmt: str, payload: JsonObject) -> list[Problem]:
    """What the provider would reject; [] is valid.

    Example: problems("openai-chat", {"messages": []}) -> [Problem("messages", "there are no messages")]
    """
    if fmt not in VALIDATORS:
        raise InputError(f"no validator for {fmt!r}; known: {', '.join(VALIDATORS)}")
    return [*VALIDATORS[fmt](payload), *surrogate_problems(payload)]
