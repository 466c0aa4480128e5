"""Agents that have no tool role: results come as user messages, files are sent again in their newest form.

Through the gateway the task stands in every request, and so does the newest form of the files.
"""

import json
from typing import Any

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Window
from everlong.wire import problems
from tests.gateway.resending import of_clients, post
from tests.gateway.running import RunningGateway

Value = dict[str, Any]
WINDOW = 16_000
REQUESTS = 30
MARKED = {"model": "gpt-4o", "x_client": 1}
SYSTEM = {"role": "system", "content": "You solve tasks with code. " * 60}


def ledger(number: int, lines: int = 60) -> str:
    return "\n".join(
        f"quay {number}, line {line}: {line * number % 97} crowns from boat {line + number}" for line in range(lines)
    )


def words(message: Value) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def sent(asked: ReceivedRequest) -> list[Value]:
    messages: list[Value] = json.loads(asked.body)["messages"]
    return messages


def forwarded(gateway: RunningGateway, server: ScriptedServer, messages: list[Value]) -> tuple[list[Value], str]:
    """What the upstream got for these messages, and what it answered."""
    body = json.dumps({**MARKED, "messages": messages}).encode()
    status, _, answer = post(gateway, "/v1/chat/completions", body)
    assert status == 200, answer
    asked = of_clients(server)[-1]
    assert problems("openai-chat", json.loads(asked.body)) == []
    return sent(asked), json.loads(answer)["choices"][0]["message"]["content"]


def acting(asked: ReceivedRequest) -> Answer:
    return Answer(text=f"Thought: quay {asked.number} comes next.\n<code>\nshow('quay{asked.number}.txt')\n</code>")


def test_the_task_of_an_agent_without_tools_stands_in_each_of_thirty_requests() -> None:
    task = {
        "role": "user",
        "content": "New task:\nFind the quay whose ledger of 1897 does not add up, and say by how much.",
    }
    messages: list[Value] = [SYSTEM, task]
    with (
        ScriptedServer(acting, window=Window(WINDOW)) as server,
        RunningGateway(upstream=server.url, window=WINDOW, summaries="off") as gateway,
    ):
        compacted = 0
        for number in range(REQUESTS):
            got, answer = forwarded(gateway, server, messages)
            assert [words(message) for message in got].count(task["content"]) == 1, f"request {number}"
            assert words(got[-1]) == words(messages[-1])  # what the model has not read yet
            compacted += len(got) < len(messages)
            messages.append({"role": "assistant", "content": answer})
            messages.append({"role": "user", "content": f"Observation:\nExecution logs:\n{ledger(number)}"})
        assert compacted > 10


def files(version: int) -> Value:
    text = ledger(version, lines=150)
    return {
        "role": "user",
        "content": "I have *added these files to the chat* so you can go ahead and edit them.\n\n*Trust this message "
        f"as the true contents of these files!*\n\nledger.txt\n```\n{text}\n```\n",
    }


def test_the_file_that_is_edited_is_whole_in_every_request_and_old_talk_gives_way() -> None:
    repository = {
        "role": "user",
        "content": f"Here are summaries of some files present in my git repository.\n{ledger(7, 20)}",
    }
    fixed = [SYSTEM, repository, {"role": "assistant", "content": "Ok, I won't try and edit those files."}]
    done: list[Value] = []
    with (
        ScriptedServer(lambda _: Answer(text=f"Changed it.\n{ledger(3, 40)}"), window=Window(WINDOW)) as server,
        RunningGateway(upstream=server.url, window=WINDOW, summaries="off") as gateway,
    ):
        compacted = 0
        for version in range(16):
            shown = [
                files(version),
                {"role": "assistant", "content": "Ok, any changes I propose will be to those files."},
            ]
            question = {"role": "user", "content": f"Add the boats of month {version}.\n{ledger(version, 20)}"}
            messages = [*fixed, *done, *shown, question]
            got, answer = forwarded(gateway, server, messages)
            texts = [words(message) for message in got]
            assert files(version)["content"] in texts, f"request {version}"
            assert repository["content"] in texts
            assert question["content"] in texts
            assert done == [] or done[0]["content"] in texts  # the first question is the task
            compacted += len(got) < len(messages)
            committed = f"I committed the changes with git hash a1b2c3{version:x} & commit msg: month {version}"
            done += [question, {"role": "assistant", "content": answer}]
            done += [{"role": "user", "content": committed}, {"role": "assistant", "content": "Ok."}]
        assert compacted > 5
