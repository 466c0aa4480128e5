"""`count`: any format, every list costs what is new in it, and a changed message is noticed."""

import pytest

from everlong import count
from everlong.core import Message
from everlong.engine.budget import counter_for
from everlong.engine.histories.counts import REMEMBERED_LISTS
from everlong.errors import InputError, WireError
from everlong.wire import document_of
from tests.core.build import assistant, user

TALK = [{"role": "user", "content": "hello world"}, {"role": "assistant", "content": "hi there"}]
BODY = {"model": "claude-opus-4-5", "system": "Be brief.", "messages": [{"role": "user", "content": "hello world"}]}


def test_values_and_dicts_count_alike() -> None:
    assert count(TALK, model="gpt-4o") == count([user("hello world"), assistant("hi there")], model="gpt-4o")


def test_a_body_counts_its_system_text_and_tools() -> None:
    tool = {"name": "read_file", "input_schema": {"type": "object"}}
    alone = count(BODY["messages"], model="gpt-4o")
    assert count(BODY, model="gpt-4o") > alone
    assert count({**BODY, "tools": [tool]}, model="gpt-4o") == count(BODY, model="gpt-4o", tools=[tool])


def test_a_list_that_grew_costs_what_is_new() -> None:
    seen: list[Message] = []
    counter = counter_for("gpt-4o-grown")
    whole = counter.message

    def spy(message: Message) -> int:
        seen.append(message)
        return whole(message)

    counter.message = spy  # type: ignore[method-assign]
    rows = [{"role": "user", "content": f"message {n}"} for n in range(100)]
    first = count(rows, model="gpt-4o-grown")
    seen.clear()
    grown = count([*rows, {"role": "assistant", "content": "one more"}], model="gpt-4o-grown")
    assert [message.text for message in seen] == ["one more"]
    assert grown == first + whole(document_of([{"role": "assistant", "content": "one more"}]).messages[0])


@pytest.mark.parametrize("at", [0, 1])
def test_a_message_changed_in_place_is_noticed(at: int) -> None:
    rows = [dict(row) for row in TALK]
    before = count(rows, model="gpt-4o")
    rows[at]["content"] = "now something much longer than it was before"
    assert count(rows, model="gpt-4o") > before


def test_a_message_changed_far_inside_is_noticed() -> None:
    block = {"type": "text", "text": "hello"}
    rows = [{"role": "user", "content": [block]}]
    before = count(rows, model="gpt-4o")
    block["text"] = "now something much longer than it was before"
    assert count(rows, model="gpt-4o") > before


def test_plain_words_do_not_decide_the_format_of_what_follows() -> None:
    """The same count whether or not the beginning was counted before."""
    asked = [{"role": "user", "content": "read it"}]
    call = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}}
    rows = [*asked, {"role": "assistant", "content": [call]}]
    alone = count({"messages": rows}, model="gpt-4o")
    count(asked, model="gpt-4o")
    assert count(rows, model="gpt-4o") == alone


def test_what_is_nested_beyond_reason_is_refused() -> None:
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(WireError, match="nested too deeply"):
        count([{"role": "user", "content": "hi", "extra": deep}], model="gpt-4o")


def test_a_shorter_list_is_counted_as_it_is() -> None:
    count(TALK, model="gpt-4o")
    assert count(TALK[:1], model="gpt-4o") == 6


def test_many_models_do_not_pile_up() -> None:
    for n in range(3 * REMEMBERED_LISTS):
        assert count(TALK, model=f"gpt-4o-{n}") == count(TALK, model="gpt-4o")


@pytest.mark.parametrize("wrong", [[1, 2], [{"role": "king", "content": ""}], {"no": "messages"}, [{"a": 1}]])
def test_what_is_no_conversation_is_refused(wrong: object) -> None:
    with pytest.raises((InputError, WireError)):
        count(wrong, model="gpt-4o")  # type: ignore[arg-type]


def test_no_messages_no_tokens() -> None:
    assert count([], model="gpt-4o") == 0
