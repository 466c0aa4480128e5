"""Pictures of a client after compactions: those of the newest steps and of the last message reach the provider."""

import json
from typing import Any

import pytest

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Window
from tests.gateway.resending import FORMATS, Resending, of_clients, resets, valid_upstream
from tests.gateway.running import RunningGateway
from tests.tokens.test_images import png

Value = dict[str, Any]
TOOLS: dict[str, Value] = {
    "anthropic": {"name": "read_file", "input_schema": {"type": "object"}},
    "openai-chat": {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}},
    "openai-responses": {"type": "function", "name": "read_file", "parameters": {"type": "object"}},
}
MODELS = {"anthropic": "claude-sonnet-4-5"}
PICTURES = [png(1_500 + number, 1_500) for number in range(24)]  # no two are the same
WORDS = " ".join(f"word{number}" for number in range(500))


def block(fmt: str, picture: str) -> Value:
    """A picture as the format writes it."""
    url = f"data:image/png;base64,{picture}"
    match fmt:
        case "anthropic":
            return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}}
        case "openai-chat":
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return {"type": "input_image", "image_url": url, "detail": "auto"}


class Showing(Resending):
    """A client whose tool shows pictures, and whose user does."""

    shown = 0

    def _result(self, call: str) -> list[Value]:
        """A text and a picture; in Chat Completions, where results are words, the picture follows as the user's."""
        (result,) = super()._result(call)
        picture = block(self.fmt, PICTURES[self.shown])
        self.shown += 1
        match self.fmt:
            case "anthropic":
                (inner,) = result["content"]
                words = {"type": "text", "text": inner["content"]}
                return [result | {"content": [inner | {"content": [words, picture]}]}]
            case "openai-chat":
                return [result, {"role": "user", "content": [{"type": "text", "text": "It shows:"}, picture]}]
            case _:
                return [result | {"output": [{"type": "input_text", "text": result["output"]}, picture]}]

    def show(self, gateway: RunningGateway, text: str) -> None:
        """A message of the user with a picture."""
        kind = "input_text" if self.fmt == "openai-responses" else "text"
        picture = block(self.fmt, PICTURES[self.shown])
        self.shown += 1
        self.messages.append({"role": "user", "content": [{"type": kind, "text": text}, picture]})
        self._answered(self.send(gateway))


def seen(asked: ReceivedRequest) -> list[int]:
    """The pictures that reached the provider."""
    return [number for number, picture in enumerate(PICTURES) if picture.encode() in asked.body]


@pytest.mark.parametrize("fmt", FORMATS)
def test_pictures_in_the_results_of_the_newest_steps_are_sent(fmt: str) -> None:
    client = Showing(fmt, model=MODELS.get(fmt, "gpt-4o"), fields={"tools": [TOOLS[fmt]]}, lines=120)
    calls = iter(range(100))

    def script(_: ReceivedRequest) -> Answer:
        number = next(calls)
        return Answer(text=f"Step {number}.", calls=(("read_file", json.dumps({"path": f"{number}.png"})),))

    with (
        ScriptedServer(script, window=Window(24_000, told=True)) as server,
        RunningGateway(upstream=server.url, summaries="off") as gateway,
    ):
        client.messages.append({"role": "user", "content": "Look at all pictures."})
        for _ in range(20):
            _, calls_made = client._answered(client.send(gateway))
            client.messages += [item for call in calls_made for item in client._result(call)]
        valid_upstream(server)
    requests = of_clients(server)
    assert resets(requests) >= 2
    for step, asked in enumerate(requests):
        assert {number for number in range(step) if number >= step - 3} <= set(seen(asked)), step
    assert seen(requests[-1])[0] > 0, "the oldest are gone"


@pytest.mark.parametrize("fmt", FORMATS)
def test_pictures_that_a_user_shows_are_sent_with_the_message_and_for_a_while_after(fmt: str) -> None:
    client = Showing(fmt, model=MODELS.get(fmt, "gpt-4o"))
    with (
        ScriptedServer(lambda _: Answer(text=WORDS), window=Window(16_000, told=True)) as server,
        RunningGateway(upstream=server.url, summaries="off") as gateway,
    ):
        for turn in range(18):
            if turn % 3 == 0:
                client.show(gateway, f"Picture {turn}: what is it? {WORDS}")
            else:
                client.ask(gateway, f"Question {turn} about it. {WORDS}")
        valid_upstream(server)
    requests = of_clients(server)
    assert resets(requests) >= 2
    assert all(turn // 3 in seen(asked) for turn, asked in enumerate(requests)), [seen(asked) for asked in requests]
    assert 1 not in seen(requests[-1]), "older ones are gone; the first stands with the task"
