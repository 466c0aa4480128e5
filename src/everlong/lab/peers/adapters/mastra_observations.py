"""Mastra's observational memory: older messages become observations, the newest stay unchanged.

`ObservationalMemory.observe` is called as its documentation offers it to other systems, whenever three sevenths of the
budget are new since the last time; four sevenths are for observations, as in its defaults. The observer's model quotes
a fifth of what it sees, the least compression that Mastra states; the reflector's model keeps three quarters of the
space. The tool that looks up observed messages is not called.
"""

import json
import subprocess
import sys
from functools import cache, lru_cache
from pathlib import Path
from shutil import which
from typing import Any

from everlong.lab.peers.extract import extract
from everlong.lab.peers.rules import text_tokens, total
from everlong.lab.peers.shapes import Fitting, Message, split_system

PREFACE = 700  # tokens that it writes around its observations
MESSAGES_SHARE, SHARES = 3, 7
QUOTED = 5  # the observer quotes one token in five
FIRST = 1_700_000_000_000  # milliseconds: an arbitrary start of the conversation
MINUTE = 60_000
OBSERVED, REFLECTED = "## New Message History to Observe", "## OBSERVATIONS TO REFLECT ON"  # headings in its prompts
LAB = Path(sys.prefix).parent
SCRIPT = Path(__file__).with_suffix(".mjs")


class _Node:
    """Mastra in a separate process; it asks us instead of a model."""

    def __init__(self) -> None:
        own = LAB / "node" / "bin" / "node"
        node = str(own) if own.is_file() else which("node") or "node"
        self._process = subprocess.Popen(
            [node, str(SCRIPT), str(LAB / "npm-mastra")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.threads = 0

    def say(self, value: Message) -> None:
        if self._process.stdin is None:
            raise RuntimeError("node has no pipes")
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def read_answer(self, observed: int) -> dict[str, Any]:
        """Return its answer, after answering its questions; `observed` is the space for observations."""
        while True:
            line = self._process.stdout.readline() if self._process.stdout else ""
            if not line:
                raise RuntimeError("node ended")
            message: dict[str, Any] = json.loads(line)
            if "ask" not in message:
                return message
            _, reflects, old = message["ask"].partition(REFLECTED)
            _, _, new = message["ask"].partition(OBSERVED)
            text = old.partition("\n## ")[0] if reflects else new or message["ask"]
            room = observed * 3 // 4 if reflects else text_tokens(text) // QUOTED
            self.say({"answer": extract(text, room, text_tokens)})


@cache
def _node() -> _Node:
    return _Node()


def _observed(messages: list[Message], budget: int) -> list[Message]:
    system, rest = split_system(messages)
    if total(messages) <= budget:
        return messages
    room = budget - PREFACE - total([*system, rest[-1]])
    groups = _groups(rest[:-1])
    left, context = _played(json.dumps(groups), max(200, room * MESSAGES_SHARE // SHARES), max(200, room))
    kept = [message for place in left for message in groups[place]]
    observations = [{"role": "system", "content": context}] if context else []
    return [*system, *observations, *kept, rest[-1]]


@lru_cache(maxsize=4)
def _played(conversation: str, newest: int, room: int) -> tuple[tuple[int, ...], str]:
    """Play a conversation; return the positions of the remaining messages, and the observations.

    Questions about one conversation differ only in their last message, so the same call is repeated often.
    """
    node = _node()
    node.threads += 1
    thread = str(node.threads)
    observations = room - newest
    node.say({"thread": thread, "messageTokens": newest, "observationTokens": observations})
    groups: list[list[Message]] = json.loads(conversation)
    left: list[int] = []
    context, size = "", 0
    for place, group in enumerate(groups):
        left.append(place)
        size += total(group)
        if size < newest:
            continue
        node.say({"thread": thread, "messages": [_held(at, groups[at]) for at in left]})
        answer = node.read_answer(observations)
        left, context = [int(name) for name in answer["left"]], answer["context"]
        size = sum(total(groups[at]) for at in left)
    return tuple(left), context


def _groups(messages: list[Message]) -> list[list[Message]]:
    """Return the messages with the results of their calls: Mastra has both in one message."""
    groups: list[list[Message]] = []
    for message in messages:
        if message["role"] == "tool" and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def _held(place: int, group: list[Message]) -> Message:
    first, *results = group
    found = {result["tool_call_id"]: result["content"] for result in results if result["role"] == "tool"}
    parts: list[Message] = [{"type": "text", "text": first["content"]}] if first.get("content") else []
    for call in first.get("tool_calls") or ():
        invocation = {
            "state": "result",
            "toolCallId": call["id"],
            "toolName": call["function"]["name"],
            "args": json.loads(call["function"]["arguments"]),
            "result": found.get(call["id"], ""),
        }
        parts.append({"type": "tool-invocation", "toolInvocation": invocation})
    role = "assistant" if first["role"] == "assistant" else "user"
    content = {"format": 2, "parts": parts or [{"type": "text", "text": ""}]}
    return {"id": str(place), "role": role, "createdAt": FIRST + place * MINUTE, "content": content}


STRATEGIES = {"observe": Fitting(read=list, fit=_observed, write=lambda messages, _: messages)}
