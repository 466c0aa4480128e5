"""Conversations that the provider holds by name: kept whole there, shortened for the model."""

import pytest
from openai import NotFoundError

from everlong.wire import OPENAI_RESPONSES
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


def _added(text: str) -> list[dict[str, str]]:
    return [{"type": "message", "role": "user", "content": text}]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_a_conversation_goes_on_and_its_provider_has_all_of_it(stream: bool) -> None:
    with harbour(WINDOW) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        client = client_of(gateway.url)
        name = client.conversations.create(items=_added(RULE)).id
        talk = Talk(client, conversation=name, stream=stream)
        for turn in range(1, 31):
            if turn in (5, 25):
                client.conversations.items.create(name, items=_added(f"The lighthouse changed at {turn}."))
            talk.say(QUESTION if turn in (10, 20, 30) else entry(turn))
        assert [talk.answers[turn - 1] for turn in (10, 20, 30)] == [f"It is {ORDER}."] * 3
        turns = [one for one in turns_of(provider) if one.tokens <= WINDOW]
        assert len(turns) == 30
        whole = [at for at, one in enumerate(turns) if not continues(one)]
        assert whole == [at for at, headers in enumerate(talk.headers) if int(headers["x-everlong-compactions"])]
        assert continues(turns[0]) == name
        assert continues(turns[whole[0] + 1]) == f"resp_{turns[whole[0]].number}", "the shorter chain goes on"
        assert "The lighthouse changed at 25." in " ".join(message.text for message in turns[24].messages)
    # What was sent apart from the conversation was added to it: its client sees what it expects.
    items = OPENAI_RESPONSES.read_messages(held_by(provider).conversations[name])
    assert len(items) == 1 + 2 + 2 * 30
    assert [items[at].text for at in (1, 3, 5, -2)] == [entry(1), entry(2), entry(3), QUESTION]
    assert "The lighthouse changed at 25." in [item.text for item in items]


def test_a_conversation_given_as_an_object_is_the_same_one() -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url) as gateway:
        client = client_of(gateway.url)
        name = client.conversations.create().id
        talk = Talk(client, options={"conversation": {"id": name}})
        talk.say(RULE)
        talk.previous = ""
        assert talk.say(QUESTION) == f"It is {ORDER}."
        assert gateway.services.chains.past(_scope(gateway), name).missing == ""
        assert continues(provider.requests[-1])


def test_an_item_that_was_deleted_is_not_sent_again() -> None:
    """What is left is asked of the provider, once it is needed."""
    with harbour(WINDOW) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        client = client_of(gateway.url)
        name = client.conversations.create(items=_added(RULE)).id
        talk = Talk(client, conversation=name)
        talk.say(entry(1))
        client.conversations.items.delete(held_by(provider).conversations[name][0]["id"], conversation_id=name)
        for turn in range(2, 20):
            talk.say(entry(turn))
        assert talk.compactions
        assert talk.say(QUESTION) == "I do not know."


def test_two_keys_share_no_conversation() -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url) as gateway:
        owner = client_of(gateway.url, "owner")
        name = owner.conversations.create(items=_added(RULE)).id
        Talk(owner, conversation=name).say(entry(1))
        del held_by(provider).conversations[name]
        with pytest.raises(NotFoundError):
            Talk(client_of(gateway.url, "other"), conversation=name).say(QUESTION)
        assert Talk(owner, conversation=name).say(QUESTION) == f"It is {ORDER}."


def test_a_provider_that_takes_no_items_costs_nobody_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    with harbour(WINDOW) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        client = client_of(gateway.url)
        name = client.conversations.create(items=_added(RULE)).id
        talk = Talk(client, conversation=name)
        for turn in range(1, 12):
            talk.say(entry(turn))
        del held_by(provider).conversations[name]
        for turn in range(12, 20):
            talk.say(entry(turn))
        assert talk.say(QUESTION) == f"It is {ORDER}."
        assert "could not be completed" in caplog.text


def _scope(gateway: RunningGateway) -> str:
    return gateway.services.clients.identify([(b"authorization", b"Bearer key")]).scope
