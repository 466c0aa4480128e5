"""Counting, as the documents ask for it."""

import json

import pytest

from everlong import count
from everlong.tokens import Counter, count_exact

SYSTEM = {"role": "system", "content": "You are a careful engineer. 请用中文回答。"}
USER = {"role": "user", "content": "Please read src/app.py and fix the retry."}
CALL = {
    "role": "assistant",
    "content": None,
    "reasoning_content": "The retry loop has no limit, I should look at it first.",
    "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "src/app.py"}'}}
    ],
}
RESULT = {
    "role": "tool",
    "tool_call_id": "1",
    "name": "read_file",
    "content": "def retry():\n    while True:\n        call()\n",
}
PICTURE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}


@pytest.mark.parametrize(
    "message", [SYSTEM, USER, CALL, RESULT, PICTURE], ids=["system", "user", "assistant", "tool", "image"]
)
def test_N1_1_1_every_role_counts(message: dict[str, object]) -> None:
    assert count([SYSTEM, message], model="gpt-4o") > count([SYSTEM], model="gpt-4o")


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("name", "read_file"),
        ("arguments", '{"path": "src/app.py"}'),
        ("reasoning", "The retry loop has no limit, I should look at it first."),
    ],
)
def test_N1_1_1_calls_and_reasoning_count_by_their_text(where: str, text: str) -> None:
    def changed(value: str) -> dict[str, object]:
        message = json.loads(json.dumps(CALL))
        if where == "reasoning":
            message["reasoning_content"] = value
        else:
            message["tool_calls"][0]["function"][where] = value
        return message

    longer = text + " and some more words of it"
    grown = count([USER, changed(longer)], model="gpt-4o") - count([USER, changed(text)], model="gpt-4o")
    assert grown == count_exact("o200k_base", longer) - count_exact("o200k_base", text)


def test_N1_1_1_a_whole_list_is_the_sum_of_its_messages() -> None:
    history = [SYSTEM, USER, CALL, RESULT]
    assert count(history, model="gpt-4o") == sum(count([message], model="gpt-4o") for message in history)


@pytest.mark.parametrize(("model", "exact"), [("gpt-4o", True), ("claude-opus-4-5", False), ("nobody-knows", False)])
def test_N1_1_2_exact_where_a_tokenizer_exists_and_an_estimate_takes_over_silently(model: str, exact: bool) -> None:
    assert Counter(model).exact is exact
    assert count([SYSTEM, USER], model=model) > 20


def test_N3_3_multimodal_lists_and_the_documents_flat_image() -> None:
    words: dict[str, object] = {"type": "text", "text": "look"}
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    alone = count([{"role": "user", "content": [words]}], model="nobody-knows")
    assert count([{"role": "user", "content": [words, picture, picture]}], model="nobody-knows") - alone == 600


def test_N3_3_decisions_reckon_with_the_uncertainty_of_an_estimate() -> None:
    assert Counter("nobody-knows").vocabulary.spread >= 0.10
    assert Counter("gpt-4o").vocabulary.spread == 0
