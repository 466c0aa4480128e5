"""A cache as Anthropic describes its own: kept up to marks, and found from a mark at most 20 blocks behind its end."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from everlong.llm.scripted.script import ReceivedRequest

__all__ = ["Billed", "MarkedCache", "marks_of"]

MARK = "cache_control"
LOOKED_BACK = 20
READ, WRITE = 0.1, 1.25  # prices, the plain one is 1


@dataclass(frozen=True)
class Billed:
    """Bytes of one request by what they cost: read from the cache, written to it, neither."""

    read: int
    written: int
    plain: int

    @property
    def total(self) -> int:
        return self.read + self.written + self.plain

    @property
    def cost(self) -> float:
        return READ * self.read + WRITE * self.written + self.plain


@dataclass
class MarkedCache:
    """What was kept so far; nothing is ever forgotten."""

    kept: set[bytes] = field(default_factory=set)

    def bill(self, asked: ReceivedRequest) -> Billed:
        """What a request reads and writes."""
        sizes, prefixes, marks = [0], [b""], []
        for where, block in blocks_of(json.loads(asked.body)):
            mark = block.pop(MARK, None)
            said = json.dumps([where, block], sort_keys=True).encode()
            sizes.append(sizes[-1] + len(said))
            prefixes.append(sha256(prefixes[-1] + said).digest())
            if mark:
                marks.append(len(prefixes) - 1)
        looked_at = {at for mark in marks for at in range(max(1, mark - LOOKED_BACK), mark + 1)}
        read = max((at for at in looked_at if prefixes[at] in self.kept), default=0)
        written = max(marks, default=0)
        self.kept |= {prefixes[at] for at in marks}
        end = max(read, written)
        return Billed(sizes[read], sizes[end] - sizes[read], sizes[-1] - sizes[end])

    def bills(self, requests: Sequence[ReceivedRequest]) -> list[Billed]:
        return [self.bill(asked) for asked in requests]


def blocks_of(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every block in the order in which it is read, and where it stands."""
    yield from (("tools", tool) for tool in body.get("tools", ()))
    yield from (("system", block) for block in _as_blocks(body.get("system", [])))
    for number, message in enumerate(body["messages"]):
        yield from ((f"{message['role']} {number}", block) for block in _as_blocks(message["content"]))


def marks_of(body: dict[str, Any] | bytes) -> list[str]:
    """Where the marks are: "tools", "system", and of messages their number."""
    value = json.loads(body) if isinstance(body, bytes) else body
    return [where.rpartition(" ")[2] for where, block in blocks_of(value) if block.get(MARK)]


def _as_blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
