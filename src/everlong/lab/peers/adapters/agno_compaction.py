"""agno's `Compaction(…)`: older messages become a summary over an archive, the newest stay unchanged.

It works as in `Agent(compaction=…)` when the provider says that a request is too long. A quarter of the budget (at most
2,000 tokens) is for the summary, which is an extract; a tenth stays free; the newest messages get the rest. `search`
adds what its tool `search_compacted_history` finds in one call, with the long words of the question.
"""

import re
from types import SimpleNamespace
from typing import Any

from agno.compaction import Compaction
from agno.db.sqlite import SqliteDb
from agno.models.message import Message as Held

from everlong.lab.peers.extract import extract, room_for_summary
from everlong.lab.peers.rules import text_tokens, total
from everlong.lab.peers.shapes import Fitting, Message, split_system

HEADROOM = 10  # one tenth of the budget: it does not count the frames of messages, and never shortens one
FOUND_MOST = 2_200  # tokens of the largest search result, 8,000 characters
SESSION = "session"
FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content")
_WORD = re.compile(r"\w{6,}")  # shorter words match everywhere, and it shows the first twenty matches


class _Summarizer:
    """A model that quotes from the text to summarise."""

    id = "gpt-4o"

    def __init__(self, room: int) -> None:
        self._room = room

    def response(self, messages: list[Held], **_: Any) -> SimpleNamespace:
        return SimpleNamespace(content=extract(str(messages[-1].content), self._room, text_tokens))


def _compacted(messages: list[Held], budget: int) -> list[Held]:
    return _folded(messages, budget, 0, None)[0]


def _searched(messages: list[Held], budget: int) -> list[Held]:
    database = SqliteDb(db_url="sqlite://")  # in memory
    folded, compaction = _folded(messages, budget, min(FOUND_MOST, budget // 4), database)
    tools = compaction.tools_for(SESSION, database) if compaction else None
    question = next((message for message in reversed(messages) if message.role == "user"), None)
    if not tools or question is None:
        return folded
    found = tools[0]("|".join(_WORD.findall(str(question.content))))
    while found and total([*_write(folded, []), {"role": "user", "content": found}]) > budget:
        found = found[: int(0.9 * len(found))]
    return [*folded, Held(role="user", content=found)] if found else folded


def _folded(messages: list[Held], budget: int, kept_back: int, database: Any) -> tuple[list[Held], Compaction | None]:
    if _counted(messages) <= budget:
        return messages, None
    room = room_for_summary(budget)
    system, _ = split_system(_write(messages, []))
    compaction = Compaction(
        model=_Summarizer(room),
        on_context_overflow=True,
        uncompacted_tokens=max(1, budget - room - budget // HEADROOM - kept_back - total(system)),
        compacted_token_budget=room,
        token_counter=_counted,
    )
    record = compaction.compact(messages, session_id=SESSION, db=database)
    return (messages if record is None else compaction.apply_record(messages, record)), compaction


def _counted(messages: list[Held], _: Any = None) -> int:
    return total(_write(messages, []))


def _read(messages: list[Message]) -> list[Held]:
    return [Held(**{field: message[field] for field in FIELDS if message.get(field)}) for message in messages]


def _write(messages: list[Held], _: list[Message]) -> list[Message]:
    return [
        {"role": message.role, "content": message.content}
        | {field: value for field in FIELDS[2:] if (value := getattr(message, field))}
        for message in messages
    ]


STRATEGIES = {
    "compact": Fitting(read=_read, fit=_compacted, write=_write),
    "search": Fitting(read=_read, fit=_searched, write=_write),
}
