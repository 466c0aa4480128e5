"""What a client tells the model beside the user, in the middle of a conversation, reaches the upstream in its place."""

import json
from typing import Any

import pytest

from everlong.compress import PRESETS
from everlong.core import Role
from everlong.llm import Answer, ScriptedServer, Window
from everlong.wire import format_named, problems
from tests.gateway.resending import FORMATS, members, of_clients, post
from tests.gateway.running import RunningGateway

Value = dict[str, Any]
WINDOW = 6_000
TURNS = 14
FILLING = "The boats lie at the pier and wait for the tide. " * 20
TOLD = {2: "Answer in French from now on.", 6: "The tariff of 1897 applies."}


def beside(fmt: str, text: str) -> Value:
    """System text in the list of messages."""
    return {"role": "system" if fmt == "anthropic" else "developer", "content": text}


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("preset", PRESETS)
def test_it_stays_in_every_request_as_the_client_wrote_it(preset: str, fmt: str) -> None:
    api = format_named(fmt).api
    messages: list[Value] = []
    with (
        ScriptedServer(lambda _: Answer(text=f"Answered. {FILLING}"), window=Window(WINDOW)) as server,
        RunningGateway(upstream=server.url, window=WINDOW, preset=preset, summaries="off") as gateway,
    ):
        for turn in range(TURNS):
            messages.append({"role": "user", "content": f"Question {turn}? {FILLING}"})
            if turn in TOLD:
                messages.append(beside(fmt, TOLD[turn]))
            body = {"model": "gpt-4o", "x_client": 1, api.messages: messages, api.lengths[0]: 400}
            status, _, answer = post(gateway, "/v1" + api.path, json.dumps(body).encode())
            assert status == 200, answer
            asked = of_clients(server)[-1]
            assert problems(fmt, json.loads(asked.body)) == []
            told = [text for since, text in TOLD.items() if turn >= since]
            assert [asked.body.count(text.encode()) for text in told] == [1] * len(told), f"turn {turn}"
            if fmt != "anthropic":
                sent = [message for message in asked.messages if "developer" in message.extra]
                assert [message.text for message in sent] == told
                assert [message.role for message in sent] == [Role.SYSTEM] * len(told)
            messages.append({"role": "assistant", "content": f"Answered. {FILLING}"})
        assert len(members(asked)) < len(messages) - 4
