"""What nobody wants to pay for is not sent, however large the window is."""

import json

import pytest

from everlong.core import Message, Role, Text
from everlong.engine import counter_for
from tests.gateway.raw_upstream import Talk, response
from tests.gateway.running import RunningGateway
from tests.gateway.talking import PATHS, RawClient, body_of, talk_through, whole_of

CAP = 8_000
TURNS = [
    {"role": ("user", "assistant")[at % 2], "content": f"Boat {at}: " + f"pier {at} and rope, " * 120}
    for at in range(41)
]


@pytest.mark.parametrize("cap", [None, CAP], ids=["none", "a soft cap"])
def test_the_engine_keeps_below_the_soft_cap_of_the_gateway(cap: int | None) -> None:
    sent: list[int] = []

    async def script(talk: Talk, head: bytes, body: bytes) -> None:
        said = [Message(Role.USER, (Text(one["content"]),)) for one in json.loads(body)["messages"]]
        sent.append(counter_for("gpt-4o").messages(said))
        await talk.say(response(whole_of("openai-chat")))

    async def client(gateway: RunningGateway) -> None:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"], body_of("openai-chat", TURNS))
            status, _ = await client.head()
            assert status == 200

    talk_through(script, client, mode="trim", soft_cap=cap)
    (tokens,) = sent
    assert (tokens <= CAP) is (cap is not None)
