"""Whatever clients name, in whatever order: nobody sees an error, and the model always reads what it should."""

import os
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from everlong.core import Role
from tests.gateway.chains.harbour import Talk, client_of, entry, harbour, held_by, turns_of
from tests.gateway.running import RunningGateway

WINDOW = 4_000
SOAK = 60 if os.environ.get("EVERLONG_SOAK") else 0
SAYING = ("go on", "go back", "in the conversation", "not stored")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("go on"), st.just(0)),
        st.tuples(st.just("go on"), st.just(0)),
        st.tuples(st.just("go back"), st.integers(0, 30)),
        st.tuples(st.just("in the conversation"), st.just(0)),
        st.tuples(st.just("add to it"), st.just(0)),
        st.tuples(st.just("not stored"), st.just(0)),
        st.tuples(st.just("lost there"), st.integers(0, 30)),
        st.tuples(st.just("forgotten here"), st.just(0)),
    ),
    min_size=8,
    max_size=30,
)


@settings(max_examples=SOAK or 8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_no_order_of_requests_ends_in_an_error(steps: list[tuple[str, int]]) -> None:
    with harbour(WINDOW) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        client = client_of(gateway.url)
        chain, held = Talk(client), held_by(provider)
        conversation = Talk(client, conversation=client.conversations.create().id)
        names: list[str] = []
        for number, (step, at) in enumerate(steps):
            name = names[at % len(names)] if names else ""
            if step == "add to it":
                item: Any = {"type": "message", "role": "user", "content": f"Added {number}."}
                client.conversations.items.create(conversation.conversation, items=[item])
            elif step == "lost there" and name != chain.previous:
                held.answers.pop(name, None)
            elif step == "forgotten here" and chain.previous in held.answers:  # the provider can still tell it
                gateway.services.chains.forget(_scope(gateway), chain.previous)
            elif step in SAYING:
                talk = conversation if step == "in the conversation" else chain
                chain.previous = name if step == "go back" else chain.previous
                chain.previous = "" if _ends(gateway, chain.previous, held.answers) else chain.previous
                said = f"Message {number}. {entry(number)}"
                talk.say(said, **({"store": False} if step == "not stored" and chain.previous else {}))
                names += [chain.previous] if talk is chain else []
                last = turns_of(provider)[-1]
                assert last.tokens <= WINDOW
                assert last.messages[-1].role is Role.USER
                assert said in last.messages[-1].text, "the last message of the user is sent as it is"


def _ends(gateway: RunningGateway, name: str, answers: object) -> bool:
    """Whether neither the gateway nor the provider knows all of a chain any more."""
    missing = gateway.services.chains.past(_scope(gateway), name).missing
    while missing:
        if missing not in answers:  # type: ignore[operator]
            return True
        missing = answers[missing].previous or ""  # type: ignore[index]
    return False


def _scope(gateway: RunningGateway) -> str:
    return gateway.services.clients.identify([(b"authorization", b"Bearer key")]).scope
