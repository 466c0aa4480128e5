"""The ruler of `lab speed moves`: what counts as a break, and that every conversation is asked to its end."""

import json
from pathlib import Path

from everlong.core import Message
from everlong.lab.environments import Environments
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.gateways.moves import HEADER, Breaks, run
from everlong.llm import ReceivedRequest


def asked(name: str, texts: str, tokens: int) -> ReceivedRequest:
    """A request with one message for each letter."""
    body = json.dumps({"messages": [{"role": "user", "content": text} for text in texts]}).encode()
    messages: tuple[Message, ...] = ()
    headers = {HEADER: name} if name else {}
    return ReceivedRequest(number=1, model="m", messages=messages, body=body, headers=headers, tokens=tokens)


def test_a_break_is_counted_in_its_own_conversation_and_told_from_a_compaction() -> None:
    breaks = Breaks()
    for name, texts, tokens in [
        ("1", "ab", 20),
        ("2", "xy", 20),
        ("1", "abc", 30),  # goes on
        ("1", "zc", 20),  # a compaction
        ("1", "abcd", 40),  # a process that did not know of it
        ("", "summarise", 50),
        ("2", "xyz", 30),
    ]:
        breaks.answer(asked(name, texts, tokens))
    assert (breaks.requests, breaks.breaks, breaks.grown, breaks.summaries) == (6, 2, 1, 1)


def test_a_quick_run_asks_every_conversation_to_its_end(tmp_path: Path) -> None:
    told: list[str] = []
    [table] = run(Bench(Environments(tmp_path, told.append), quick=True, peers=False))
    [(name, requests, *_)] = table.rows
    assert (name, requests) == ("2 SQLite", "21 / 0")
    assert not [line for line in told if "left out" in line]
