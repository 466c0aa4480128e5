"""The verdict on a run: what must hold whatever was done to the processes, counted at the clients and at the provider.

- No error reaches a client. A connection may die only with the process at its other end.
- No message is lost: what a client sent stands in the request that the provider got, or the answer's headers account
  for it.
- No prefix break without a compaction: a request begins with the bytes of the one before, unless it reports one.
  Nobody compacts what is far from the window.
- Nothing is larger than the window. No summary stands in a request twice.
"""

import asyncio
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

from tests.chaos.clients import Conversation, Exchange, tag
from tests.chaos.cluster import Run
from tests.chaos.log import Log
from tests.chaos.upstream import Forwarded, Upstream

__all__ = ["Verdict"]

MOST_SHOWN = 20
OURS = "x-everlong-"
DYING = 10.0  # seconds in which a process that was told to end may still be found alive
ONE_IN = 7  # requests, of which one is asked about at the end
EARLY = 0.55  # of the window: below it nothing has to be compacted
#: What stands in place of messages that left begins so.
BACKGROUND = "<background-"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A request as the provider got it, which of the client's messages are not in it word for word, and its size."""

    forwarded: Forwarded
    missing: frozenset[int]
    size: str


@dataclass(frozen=True, slots=True)
class AskedAbout:
    """A request that any replica must explain at the end: its id, its key, who answered it and when."""

    request: str
    key: str
    run: Run
    time: float
    #: A break of the prefix for which it must tell a compaction: the head of its answer had been sent before.
    change: str = ""


@dataclass
class Verdict:
    """Hears of every answer, compares it with what the provider got, and says at the end what was wrong."""

    upstream: Upstream
    log: Log
    seed: int
    #: What went wrong, by kind, and the first of each in words.
    wrongs: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    #: Requests with edits, one in a few.
    asked_about: list[AskedAbout] = field(default_factory=list)
    _last: dict[int, _Seen] = field(default_factory=dict)
    #: Of each conversation the requests that were answered last: name, replica, tokens, compactions told.
    _told: dict[int, deque[str]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=8)))
    #: Set at each answer, for whoever waits for progress.
    progress: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def answered(self, exchange: Exchange) -> None:
        """Judge an answer."""
        self.counts["answered"] += 1
        self.counts["retried"] += bool(exchange.before)
        if exchange.status != 200:
            said = exchange.body[:300].decode(errors="replace")
            self.fault("error", f"{exchange.name} by {exchange.run.name}: status {exchange.status}: {said}")
        elif exchange.headers.get(OURS + "managed") != "yes":
            self.fault("unmanaged", f"{exchange.name}: {exchange.headers.get(OURS + 'managed')}")
        else:
            self._compare(exchange)
        for name in (*exchange.before, exchange.name):
            self.upstream.forwarded.pop(name, None)
        async with self.progress:
            self.progress.notify_all()

    async def died(self, run: Run, name: str, error: Exception, *, begun: bool) -> None:
        """Judge a connection that died: its process must have been ended by us, and a stream outlives a signal."""
        self.counts["connections died"] += 1
        if not run.ending:  # the system may close a killed process' sockets before it says that it is gone
            with_patience = asyncio.get_running_loop().time() + DYING
            while not run.ending and asyncio.get_running_loop().time() < with_patience and run.process.poll() is None:
                await asyncio.sleep(0.05)
        if not run.ending:
            self.fault("connection", f"{name}: {run.name} lives, and its connection died: {error!r}")
        elif run.ending == "replaced" and begun:
            self.fault("stream", f"{name}: {run.name} was told to end, and broke an answer: {error!r}")

    def wrong(self, line: str) -> None:
        """Note an answer that is not whole."""
        self.fault("answer", line)

    def fault(self, kind: str, line: str) -> None:
        """Note what is wrong."""
        self.wrongs[kind] += 1
        self.log.note(f"WRONG, {kind}: {line}")
        if self.wrongs[kind] <= MOST_SHOWN:
            self.shown.append(f"{kind}: {line}")

    def finish(self, conversations: list[Conversation]) -> None:
        """Judge what is left at the end."""
        for one in conversations:
            if len(one.texts) == 0:
                self.fault("unfinished", f"conversation {one.number} never began")
        if self.upstream.refused:
            self.fault("window", f"{self.upstream.refused} requests of clients were larger than the window")

    def report(self) -> str:
        """Return the figures in one line."""
        self.counts["summaries asked"] = self.upstream.summaries_asked
        self.counts["refused for clients"] = self.upstream.refused
        self.counts["refused for summaries"] = self.upstream.refused_own
        return ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))

    def expect_nothing_wrong(self) -> None:
        """Raise with everything that one needs to find the cause."""
        if self.wrongs:
            kinds = ", ".join(f"{count} × {kind}" for kind, count in self.wrongs.most_common())
            raise AssertionError(
                f"{kinds} (seed {self.seed}; {self.report()})\n"
                + "\n".join(self.shown)
                + f"\n\nWhat was done:\n{self.log.tail()}"
            )

    def _compare(self, exchange: Exchange) -> None:
        sent = [one for one in self.upstream.forwarded.get(exchange.name, ()) if not one.refused]
        if not sent:
            self.fault("answer", f"{exchange.name}: answered, and the provider never heard of it")
            return
        body = sent[-1].body.decode()
        missing = frozenset(at for at, text in exchange.conversation.texts.items() if text not in body)
        now, number = (
            _Seen(sent[-1], missing, exchange.headers.get(OURS + "tokens-before", "")),
            exchange.conversation.number,
        )
        before = self._last.get(number)
        self._last[number] = now
        compactions = exchange.headers.get(OURS + "compactions", "?")
        self._told[number].append(
            f"{exchange.name} {exchange.run.name} {now.forwarded.tokens} of {now.size} ({compactions})"
        )
        twice = [summary for summary, times in Counter(now.forwarded.summaries).items() if times > 1]
        if twice:
            self.fault("summary", f"{exchange.name}: summaries {twice} stand in one request twice")
        self._accounted(exchange, now, body)
        if before is not None:
            self._unchanged(exchange, before, now)
        if missing and self.counts["answered"] % ONE_IN == 0:
            self._ask_about(exchange)

    def _ask_about(self, exchange: Exchange, change: str = "") -> None:
        request, time = exchange.headers[OURS + "request"], asyncio.get_running_loop().time()
        self.asked_about.append(AskedAbout(request, exchange.conversation.key, exchange.run, time, change))

    def _accounted(self, exchange: Exchange, now: _Seen, body: str) -> None:
        """Expect the newest message word for word, and of messages that are not there a word in their place."""
        if max(exchange.conversation.texts) in now.missing:
            self.fault("lost", f"{exchange.name}: the newest message does not stand in the request")
        gone = [at for at in now.missing if tag(exchange.conversation.number, at) not in body]
        edits = int(exchange.headers.get(OURS + "edits", len(now.missing)))
        # What a text of ours stands for is told once; without one every message that left is told of.
        if (now.missing and not edits) or (gone and BACKGROUND not in body and edits < len(now.missing)):
            line = f"{len(now.missing)} messages are missing, {len(gone)} without a trace; {edits} edits are told"
            self.fault("lost", f"{exchange.name}: {line}")

    def _unchanged(self, exchange: Exchange, before: _Seen, now: _Seen) -> None:
        """Expect that it begins with the bytes of the one before, unless a compaction is told."""
        told = int(exchange.headers.get(OURS + "compactions", -1))
        self.counts["compactions"] += max(0, told)
        if before.size and now.size and int(now.size) < int(before.size):
            self.fault("lost", f"{exchange.name}: the gateway saw {now.size} tokens, {before.size} the time before")
        if now.forwarded.begins_with(before.forwarded):
            if now.missing > before.missing:
                self.fault("lost", f"{exchange.name}: {sorted(now.missing - before.missing)} are missing from now on")
            return
        self.counts["prefix breaks"] += 1
        # A request whose process died may have compacted: the next attempt goes on with the same bytes.
        tried = [one for name in exchange.before for one in self.upstream.forwarded.get(name, ()) if not one.refused]
        small = before.forwarded.tokens
        if told > 0 or any(now.forwarded.begins_with(one) and one.tokens < small for one in tried):
            if small < EARLY * self.upstream.window:
                self.fault("early", f"{exchange.name} by {exchange.run.name}: compacted at {_change(before, now)}")
                self.shown.append("\n".join(self._told[exchange.conversation.number]))
            return
        self.counts["changed without shrinking"] += now.forwarded.tokens >= small
        if told < 0:  # the head of the answer had to be sent before anything was known
            self._ask_about(exchange, f"{exchange.name} by {exchange.run.name}: {_change(before, now)}")
            return
        tries = f"; tried before: {', '.join(exchange.before)}" if exchange.before else ""
        self.fault(
            "prefix", f"{exchange.name} by {exchange.run.name}, told {told} compactions: {_change(before, now)}{tries}"
        )


def _change(before: _Seen, now: _Seen) -> str:
    one, other = before.forwarded, now.forwarded
    pairs = zip(one.messages, other.messages, strict=False)
    same = next((at for at, (old, new) in enumerate(pairs) if old != new), min(len(one.messages), len(other.messages)))
    head = "" if one.head == other.head else "another head; "
    return (
        f"{head}message {same} of {len(one.messages)} is another now, of {len(other.messages)}; "
        f"{one.tokens} → {other.tokens} tokens; summaries {one.summaries} → {other.summaries}"
    )
