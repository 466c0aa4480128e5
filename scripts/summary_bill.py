"""What summaries cost beside the conversations they are made for.

    python scripts/summary_bill.py DATA_DIR [--window 64000] [--transcripts 20] [--author]

Replays the longest transcripts of DATA_DIR (*.jsonl.gz, one JSON object a line with `id` and OpenAI `messages`): each
answer of a transcript is what the scripted model answers, so every request is the one that the engine would send. The
conversation's own model summarises on its cached prefix; with --author another one does, from a text. Prompt tokens
are added up by reason; those that were cached count a tenth.
"""

import asyncio
import gzip
import heapq
import json
from argparse import ArgumentParser
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from everlong.core.events import EventKind
from everlong.core.messages import History, Message, Role
from everlong.engine.authors import Author
from everlong.engine.calls import Call
from everlong.engine.conversing import converse
from everlong.engine.engine import Engine
from everlong.engine.replies import Finished, Reply, Request
from everlong.engine.summaries import Summaries
from everlong.llm.scripted.model import ScriptedModel
from everlong.llm.scripted.script import Answer
from everlong.store.memory import MemoryThreads
from everlong.wire.read import document_of
from everlong.wire.usage import Usage

CACHED_PRICE = 0.1
THREAD = "replay"
MODEL = "gpt-4o"
ASKED = ("Stop here and summarise", "请停在这里")
SUMMARY = json.dumps({"context": "The conversation goes on with the same work as before.", "done": [], "next": []})


class Replayed(ScriptedModel):
    """Answers what was answered then; summarises in one sentence."""

    answers: Iterator[Message]

    async def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        """The next answer of the transcript."""
        if any(sign in request.messages[-1].text for sign in ASKED):
            async for reply in super().stream(request):
                yield reply
            return
        asked = self.asked(request)
        message = next(self.answers)
        usage = Usage(prompt=asked.tokens, cached=min(asked.cached, asked.tokens), output=self.counter.message(message))
        yield Finished(message, usage, "calls" if message.calls else "stop")


@dataclass
class Bill:
    """Prompt tokens at their price, and calls, by reason."""

    tokens: dict[str, float] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str, tokens: float, calls: int) -> None:
        """One more row."""
        self.tokens[reason] = self.tokens.get(reason, 0.0) + tokens
        self.calls[reason] = self.calls.get(reason, 0) + calls

    def __str__(self) -> str:
        talk, summary = self.tokens.get("", 0.0), self.tokens.get("summary", 0.0)
        share = summary / talk if talk else 0.0
        return (
            f"conversation {talk:,.0f} in {self.calls.get('', 0)} calls, "
            f"summaries {summary:,.0f} in {self.calls.get('summary', 0)}: {share:.2%}"
        )


def longest(folder: Path, most: int) -> list[tuple[str, History]]:
    """The longest transcripts, by characters."""
    best: list[tuple[int, str, str]] = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                heapq.heappush(best, (len(line), path.name, line))
                best = heapq.nlargest(most, best) if len(best) > 2 * most else best
    found = []
    for _, _, line in heapq.nlargest(most, best):
        document = json.loads(line)
        found.append((str(document["id"]), document_of(document["messages"]).messages))
    return found


async def replay(messages: History, window: int, *, author: bool) -> Bill:
    """One transcript from its first message to its last answer."""
    model = Replayed(lambda _: Answer(text=SUMMARY))
    model.answers = (message for message in messages if message.role is Role.ASSISTANT)
    threads = MemoryThreads()
    threads.create(THREAD)
    engine = Engine(threads)
    writers = [Author(model=ScriptedModel(lambda _: Answer(text=SUMMARY), endpoint="author"), name=MODEL)]
    summaries = Summaries(engine, writers if author else (), own_model=not author)
    call = Call(model=MODEL, served=window)
    waiting: list[Message] = []
    for message in messages:
        if message.role is not Role.ASSISTANT:
            waiting.append(message)
            continue
        await engine.append(THREAD, waiting)
        waiting = []
        async for _ in converse(engine, model, THREAD, call):
            pass
        await summaries.drain()
    bill = Bill()
    for event in threads.events(THREAD, kinds=[EventKind.USAGE_RECORDED]):
        more = json.loads(event.data)
        prompt, cached = event.tokens_before or 0, int(more["cached"])
        bill.add(event.reason, prompt - cached + CACHED_PRICE * cached, int(more.get("calls", 1)))
    return bill


def main() -> None:
    """Replay and tell."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--window", type=int, default=64_000)
    parser.add_argument("--transcripts", type=int, default=20)
    parser.add_argument("--author", action="store_true", help="another model summarises, from a text")
    given = parser.parse_args()
    folder = given.data / "agents" if (given.data / "agents").is_dir() else given.data
    transcripts = longest(folder, given.transcripts)
    if not transcripts:
        parser.error(f"no transcripts (*.jsonl.gz) in {folder}; docs/lab.md describes their form")
    total = Bill()
    for name, messages in transcripts:
        bill = asyncio.run(replay(messages, given.window, author=given.author))
        print(f"{name}: {len(messages)} messages, {bill}", flush=True)
        for reason, tokens in bill.tokens.items():
            total.add(reason, tokens, bill.calls[reason])
    print(f"all, window {given.window:,}: {total}")


if __name__ == "__main__":
    main()
