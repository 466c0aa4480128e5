"""A harbour's log kept over many turns, by clients that leave the past to their provider."""

import json
from dataclasses import dataclass, field
from typing import Any

from openai import OpenAI

from everlong.llm import ReceivedRequest
from everlong.llm.scripted.held import HeldAnswers
from everlong.testing import Answer, ScriptedServer, Window
from everlong.wire import OPENAI_RESPONSES
from tests.sdk_clients import closed_later

ORDER = "KX-48213"
RULE = f"Rule: always name the order number {ORDER} when you write to the harbour master."
QUESTION = "Which order number do you name?"


def keeps_the_log(asked: ReceivedRequest) -> Answer:
    """Answer a question from what is in the prompt, and nothing else."""
    last = asked.messages[-1].text
    if QUESTION not in last:
        return Answer(text=f"Noted as entry {asked.number}. " + "All moored. " * 40)
    before = " ".join(message.text for message in asked.messages[:-1])
    return Answer(text=f"It is {ORDER}." if ORDER in before else "I do not know.")


def entry(number: int) -> str:
    """What the user says in a turn: some 400 tokens."""
    return f"Entry {number}: " + f"pier {number} has {number + 3} boats, the wind is {number % 9}. " * 25


def harbour(window: int = 16_000) -> ScriptedServer:
    return ScriptedServer(keeps_the_log, window=Window(window))


def held_by(provider: ScriptedServer) -> HeldAnswers:
    return provider.held[OPENAI_RESPONSES.name]


def client_of(url: str, key: str = "key") -> OpenAI:
    return closed_later(OpenAI(base_url=url, api_key=key, max_retries=0))


@dataclass
class Talk:
    """A client that names the answer before, or a conversation; `headers` and `answers` are those of all turns."""

    client: OpenAI
    conversation: str = ""
    stream: bool = False
    previous: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    headers: list[Any] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    def say(self, text: Any, **options: Any) -> str:
        named = {"previous_response_id": self.previous} if self.previous else {}
        named = {"conversation": self.conversation} if self.conversation else named
        asked: dict[str, Any] = {
            "model": "gpt-4o",
            "input": text,
            "stream": self.stream,
            **named,
            **self.options,
            **options,
        }
        raw = self.client.responses.with_raw_response.create(**asked)
        self.headers.append(raw.headers)
        answer = raw.parse()
        if self.stream:
            answer = [event for event in answer if event.type == "response.completed"][-1].response
        self.previous = answer.id
        self.answers.append(answer.output_text)
        return answer.output_text

    @property
    def compactions(self) -> int:
        return sum(int(each["x-everlong-compactions"]) for each in self.headers)


def turns_of(provider: ScriptedServer) -> list[ReceivedRequest]:
    """The turns of clients: summaries are asked for with a body that says not to store them."""
    return [one for one in provider.requests if b'"store": false' not in one.body]


def continues(request: ReceivedRequest) -> str:
    """What a request leaves to its provider: the name of an answer or of a conversation; "" if it holds everything."""
    body = json.loads(request.body)
    return str(body.get("previous_response_id") or body.get("conversation") or "")
