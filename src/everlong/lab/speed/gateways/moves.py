"""Conversations that move between the processes of a gateway: how much of their prefix a provider's cache still has.

Every request uses a new connection, so any process may get it. The upstream counts how often a request does not begin
with the messages of the previous one in its conversation; how often that did not make it smaller (then it was not a
compaction, but a process that did not know of one); and how many summaries were requested. Counts are reliable on a
busy machine.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from threading import Lock, Thread

from everlong.lab.environments import HERE, SERVER, SERVER_POSTGRES, Environment
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.gateways.parties import SERVED, SQLITE, Party, RunningGateway, run_gateway
from everlong.lab.speed.gateways.processes import resident_megabytes, tree
from everlong.lab.speed.gateways.requests import MODEL, Connection, Conversation, Refusal
from everlong.lab.speed.tables import Table, figure
from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Window

__all__ = ["Breaks", "run"]

WORKERS = (1, 2, 4)
HEADER = "x-lab-conversation"
HOST = b"\r\nhost: "
FIRST_SEED = 500
LARGEST_RESULT = 1_000  # tokens
SUMMARY = json.dumps({"context": "An agent reads files and answers questions about them."})


@dataclass(frozen=True, slots=True)
class Size:
    """The number of conversations, the requests of each, the window in tokens, and how many run at once."""

    conversations: int
    requests: int
    window: int
    tokens: int
    at_once: int


SIZE = Size(conversations=30, requests=45, window=30_000, tokens=60_000, at_once=8)
QUICK_SIZE = Size(conversations=3, requests=12, window=6_000, tokens=9_000, at_once=3)


@dataclass(slots=True)
class Breaks:
    """What the upstream saw of all conversations of one gateway."""

    requests: int = 0
    errors: int = 0
    breaks: int = 0
    grown: int = 0
    summaries: int = 0
    #: The digests of the messages of each conversation's last request, and its tokens.
    last: dict[str, tuple[list[bytes], int]] = field(default_factory=dict)

    def answer(self, asked: ReceivedRequest) -> Answer:
        """Compare a request with the previous one in its conversation, and answer it."""
        name = asked.headers.get(HEADER)
        if name is None:
            self.summaries += 1
            return Answer(text=SUMMARY)
        self.requests += 1
        messages = [blake2b(json.dumps(one).encode()).digest() for one in json.loads(asked.body)["messages"]]
        before, tokens = self.last.get(name, ([], 0))
        if messages[: len(before)] != before:
            self.breaks += 1
            self.grown += asked.tokens >= tokens
        self.last[name] = (messages, asked.tokens)
        return Answer(text="Noted.")


def run(bench: Bench) -> list[Table]:
    """Run the conversations through gateways with one and more processes; return one table."""
    size = QUICK_SIZE if bench.quick else SIZE
    conversations = [_conversation(bench, size, FIRST_SEED + number) for number in range(size.conversations)]
    rows: dict[str, tuple[Breaks, float]] = {}
    for party, fresh in _parties(bench):
        name = party.title + ("" if fresh else ", connections kept")
        bench.report(f"moves: {name}")
        place = _place(bench, party.environment)
        found = None if place is None else _measure(bench, party, place, size, conversations, fresh=fresh)
        if found is not None:
            rows[name] = found
    return [_table(size, rows)] if rows else []


def _parties(bench: Bench) -> list[tuple[Party, bool]]:
    """The gateways, and whether each request uses a new connection."""
    two = _party(2, "SQLite", SERVER, SQLITE)
    if bench.quick:
        return [(two, True)]
    found = [(_party(count, "SQLite", SERVER, SQLITE), True) for count in WORKERS]
    if bench.postgres:
        found.append((_party(2, "Postgres", SERVER_POSTGRES, (*SERVED, "{postgres}")), True))
    return [*found, (two, False)]


def _party(workers: int, store: str, environment: Environment, arguments: tuple[str, ...]) -> Party:
    return Party(f"{workers} {store}", environment, arguments=(*arguments, "--workers", str(workers)))


def _place(bench: Bench, environment: Environment) -> Environment | None:
    if not bench.peers:
        return HERE
    return environment if bench.environments.installed(environment) else None


def _conversation(bench: Bench, size: Size, seed: int) -> list[bytes]:
    """Return the requests of a conversation, each with the conversation's name."""
    read = Conversation.read(str(bench.stored(size.tokens, seed, largest=LARGEST_RESULT)))
    named = b"\r\n%b: %d%b" % (HEADER.encode(), seed, HOST)
    wanted = read.asks[: size.requests]
    return [read.request(count, streamed=False).replace(HOST, named, 1) for count in wanted]


def _measure(
    bench: Bench, party: Party, place: Environment, size: Size, conversations: Sequence[list[bytes]], *, fresh: bool
) -> tuple[Breaks, float] | None:
    breaks = Breaks()
    server = ScriptedServer(breaks.answer, window=Window(size.window, told=True), models=(MODEL,))
    server.model.remembers = 8
    with server, run_gateway(bench, party, place, server.port) as gateway:
        if gateway is None:
            return None
        _talk(gateway, breaks, list(conversations), size.at_once, fresh=fresh)
        processes = max(1, len(tree(gateway.process)) - 1)
        return breaks, (resident_megabytes(gateway.process) or 0.0) / processes


def _talk(gateway: RunningGateway, breaks: Breaks, left: list[list[bytes]], at_once: int, *, fresh: bool) -> None:
    """Run all conversations, some at once, each request after the answer to the previous one."""
    mine = Lock()

    def client() -> None:
        while True:
            with mine:
                if not left:
                    return
                requests = left.pop()
            connection = Connection(gateway.port)
            for request in requests:
                try:
                    connection.ask(request)
                except Refusal:
                    with mine:
                        breaks.errors += 1
                if fresh:
                    connection.close()
            connection.close()

    clients = [Thread(target=client) for _ in range(at_once)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()


def _table(size: Size, rows: dict[str, tuple[Breaks, float]]) -> Table:
    cells = tuple(
        (
            name,
            f"{breaks.requests:,} / {breaks.errors}",
            figure(breaks.breaks / size.conversations),
            str(breaks.grown),
            str(breaks.summaries),
            figure(megabytes),
        )
        for name, (breaks, megabytes) in rows.items()
    )
    head = ("workers, store", "requests / errors", "prefix breaks a conversation", "without shrinking", "summaries")
    note = (
        f"{size.conversations} growing conversations of {size.requests} requests, {size.at_once} at once, a window of "
        f"{size.window:,} tokens, a new connection for each request. A break: a request that does not begin with the "
        "messages of the one before; with one worker each is a compaction."
    )
    data = {name: asdict(breaks) | {"last": None, "megabytes": megabytes} for name, (breaks, megabytes) in rows.items()}
    return Table("Conversations that move between workers", (*head, "MB a worker"), cells, (note,), data)
