"""A past that began elsewhere: left to the provider and said so; asked of the provider once it is too long."""

import pytest
from openai import BadRequestError

from everlong.testing import ScriptedServer
from tests.gateway.chains.harbour import (
    ORDER,
    QUESTION,
    RULE,
    Talk,
    client_of,
    continues,
    entry,
    harbour,
    held_by,
    turns_of,
)
from tests.gateway.running import RunningGateway

WINDOW = 6_000


def _asked(provider: ScriptedServer) -> int:
    return len([one for one in held_by(provider).asked if one.startswith("GET")])


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("cumulative", [False, True], ids=["each its own", "all before"])
def test_a_chain_begun_elsewhere_is_managed_once_it_is_too_long(stream: bool, cumulative: bool) -> None:
    with harbour(WINDOW) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        held_by(provider).cumulative = cumulative
        talk = Talk(client_of(provider.url), stream=stream)
        for turn in range(1, 7):
            talk.say(RULE if turn == 3 else entry(turn))
        talk.client = client_of(gateway.url)
        talk.headers.clear()
        talk.say(entry(7))
        assert continues(provider.requests[-1]) == f"resp_{provider.requests[-2].number}"
        assert talk.headers[0]["x-everlong-managed"] == "no; the provider stores part of the conversation"
        assert not _asked(provider)
        for turn in range(8, 25):
            talk.say(entry(turn))
        assert talk.say(QUESTION) == f"It is {ORDER}."
        assert talk.headers[-1]["x-everlong-managed"] == "yes"
        assert talk.compactions >= 2
        assert 0 < _asked(provider) <= 2 * 8, "the past was asked for once"
        assert len([one for one in turns_of(provider) if one.tokens > WINDOW]) <= 2


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_a_conversation_begun_elsewhere_is_managed_once_it_is_too_long(stream: bool) -> None:
    with harbour(WINDOW) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        direct = client_of(provider.url)
        name = direct.conversations.create(items=[{"type": "message", "role": "user", "content": RULE}]).id
        talk = Talk(direct, conversation=name, stream=stream)
        for turn in range(1, 7):
            talk.say(entry(turn))
        talk.client = client_of(gateway.url)
        talk.headers.clear()
        for turn in range(7, 25):
            talk.say(entry(turn))
        assert talk.say(QUESTION) == f"It is {ORDER}."
        assert talk.compactions >= 2
    assert len(held_by(provider).conversations[name]) == 1 + 2 * 25


def test_a_past_that_the_provider_does_not_show_ends_in_its_own_error() -> None:
    with harbour(WINDOW) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        talk = Talk(client_of(provider.url))
        while provider.requests[-1:] == [] or provider.requests[-1].tokens < WINDOW - 1_000:
            talk.say(entry(1))
        first = next(iter(held_by(provider).answers))
        talk.client = client_of(gateway.url)
        held = held_by(provider).answers.pop(first)
        with pytest.raises(BadRequestError, match="maximum context length"):
            talk.say(entry(2) * 3)
        held_by(provider).answers[first] = held
        assert talk.say(entry(2) * 3)
