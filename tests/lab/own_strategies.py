"""Strategies as somebody might write them: most of them wrong."""

from typing import Any

from everlong.errors import BudgetImpossible

Messages = list[dict[str, Any]]


def keeps_all(messages: Messages, budget: int) -> Messages:
    return messages


def spoils_what_it_is_given(messages: Messages, budget: int) -> Messages:
    for message in messages:
        for call in message.get("tool_calls") or ():
            call["function"]["arguments"] = "spoilt"
        message["content"] = "spoilt"
    return []


def finds_no_room(messages: Messages, budget: int) -> Messages:
    raise BudgetImpossible(budget, [("all of it", budget + 1)])


def raises(messages: Messages, budget: int) -> Messages:
    raise KeyError("no such thing")


def gives_none(messages: Messages, budget: int) -> Any:
    return None


def gives_words(messages: Messages, budget: int) -> Any:
    return ["a", "b"]


def gives_a_number(messages: Messages, budget: int) -> Any:
    return 7


def gives_a_wizard(messages: Messages, budget: int) -> Any:
    return [{"role": "wizard", "content": "x"}]


def yields(messages: Messages, budget: int) -> Any:
    yield from messages
