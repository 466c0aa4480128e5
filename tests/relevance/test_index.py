"""The index grows with each message and finds what is asked for."""

from hypothesis import given, settings, strategies as st

from everlong.core import Message
from everlong.relevance.index import Index
from everlong.relevance.query import calls_since, query_of, query_of_text
from everlong.relevance.ranking import ranked
from tests.core.build import assistant, calls, result, user

TALK = (
    user("The retry limit of the payment client is wrong."),
    assistant("I will look at payment_client.py."),
    user("我们决定把折扣价向下取整到角。"),
    assistant("好的,已记录取整规则。"),
    user("The office plants need water on Fridays."),
    assistant("Noted."),
)


def best(index: Index, question: str) -> str:
    scores = index.rank(query_of_text(question))
    return index.chunks[max(range(len(scores)), key=scores.__getitem__)].text


def indexed(*messages: Message) -> Index:
    index = Index()
    index.extend(messages)
    return index


def test_english_is_found_by_other_forms_of_its_words() -> None:
    assert "retry limit" in best(indexed(*TALK), "what was wrong with payments retrying?")


def test_chinese_is_found() -> None:
    assert "取整" in best(indexed(*TALK), "取整规则是什么?")


def test_a_part_of_an_identifier_finds_it() -> None:
    index = indexed(user("see SessionManager"), user("see the weather"))
    assert "SessionManager" in best(index, "session")


def test_nothing_asked_nothing_scored() -> None:
    assert set(indexed(*TALK).rank({})) == {0.0}
    assert Index().rank({"a": 1.0}) == []


@given(st.lists(st.integers(0, len(TALK) - 1), max_size=12), st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_growing_gives_what_building_at_once_gives(picks: list[int], asked_at: int) -> None:
    messages = [TALK[pick] for pick in picks]
    query = query_of_text("payment retry 取整 water")
    grown = Index()
    for at, message in enumerate(messages):
        grown.add(message)
        if at == asked_at:
            grown.rank(query)
    assert grown.rank(query) == indexed(*messages).rank(query)
    assert grown.messages == len(messages)


def test_the_query_follows_the_end_of_the_conversation() -> None:
    query = query_of((*TALK, user("Where is the timeout set?"), calls("1", arguments='{"path": "src/settings.toml"}')))
    assert {"timeo", "toml"} <= set(query)
    assert "的" not in query


def test_files_in_work_are_known_by_how_many_calls_ago() -> None:
    history = (calls("1", arguments='{"path": "a.py"}'), result("1"), calls("2", arguments='{"path": "src/b.py"}'))
    assert calls_since(history) == {"b.py": 0, "a.py": 1}


def test_ranking_prefers_what_the_question_is_about() -> None:
    history = (*TALK, user("Remind me: what about the payment client?"))
    index = indexed(*history)
    order = [index.chunks[number].at for number in ranked(index, history).numbers]
    assert order.index(0) < order.index(4)
    assert sorted(order) == list(range(len(history)))
