"""A message whose content is missing is an error of `fit` and `count`: it would disappear from the conversation."""

from collections.abc import Callable
from typing import Any

import pytest

from everlong import count, fit
from everlong.errors import InputError

ASKED = {"role": "user", "content": "hello"}
SAID = {"role": "assistant", "content": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
USED: Any = [
    ASKED,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
]
MISSPELT = {"role": "user", "contnt": "x"}
LINE = "{}[{}] has no content, only 'role', 'contnt'; did you mean 'content' for 'contnt'?"
MISSING: dict[str, tuple[Any, str]] = {
    "the first": ([MISSPELT], LINE.format("messages", 0)),
    "a later one": ([ASKED, SAID, ASKED, MISSPELT], LINE.format("messages", 3)),
    "a body": ({"model": "gpt-4o", "messages": [ASKED, SAID, MISSPELT]}, LINE.format("messages", 2)),
    "a system text": (
        [{"role": "system", "Contents": "Be brief."}, ASKED],
        "messages[0] has no content, only 'role', 'Contents'; did you mean 'content' for 'Contents'?",
    ),
    "a developer's text": (
        [{"role": "developer", "text": "Be brief."}, ASKED],
        "messages[0] has no content, only 'role', 'text'; add 'content'",
    ),
    "nothing but a role": ([ASKED, SAID, {"role": "user"}], "messages[2] has no content, only 'role'; add 'content'"),
    "Anthropic": ([*USED, SAID, MISSPELT], LINE.format("messages", 4)),
    "a body of Anthropic": ({"system": "Be brief.", "messages": [MISSPELT]}, LINE.format("messages", 0)),
    "Responses": ({"input": [ASKED, SAID, MISSPELT]}, LINE.format("input", 2)),
    "Ollama": ({"options": {"num_ctx": 8_000}, "messages": [MISSPELT]}, LINE.format("messages", 0)),
    "Gemini": (
        [{"role": "user", "prts": [{"text": "x"}]}, {"role": "model", "parts": [{"text": "hi"}]}],
        "contents[0] has no parts, only 'role', 'prts'; did you mean 'parts' for 'prts'?",
    ),
}


@pytest.mark.parametrize("read", [fit, count], ids=lambda read: read.__name__)
@pytest.mark.parametrize("name", MISSING)
def test_a_message_without_content_is_named_with_its_keys(name: str, read: Callable[..., object]) -> None:
    messages, line = MISSING[name]
    with pytest.raises(InputError) as told:
        read(messages, model="gpt-4o")
    assert str(told.value) == line


def test_one_that_a_growing_list_gains_is_named_by_its_place_in_the_whole_list() -> None:
    talk = [ASKED, SAID]
    fitted, _ = fit(talk, model="gpt-4o"), count(talk, model="gpt-4o")
    for read in (lambda: fit([*talk, MISSPELT], model="gpt-4o", previous=fitted), lambda: count([*talk, MISSPELT])):
        with pytest.raises(InputError) as told:
            read()
        assert str(told.value) == LINE.format("messages", 2)


#: What a message may lack or leave empty.
ALLOWED: dict[str, Any] = {
    "calls without content": [ASKED, {"role": "assistant", "tool_calls": [CALL]}],
    "a user's null": [{"role": "user", "content": None}],
    "a user's empty text": [{"role": "user", "content": ""}],
    "a user's empty list": [{"role": "user", "content": []}],
    "an image alone, for Ollama": [{"role": "user", "images": ["aGk="]}],
    "a name beside it": [{"role": "user", "name": "ada", "content": "hello"}],
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_providers_accept_is_read(name: str) -> None:
    assert count(ALLOWED[name], model="gpt-4o") > 0
    assert fit(ALLOWED[name], model="gpt-4o").messages
