"""The provider: a scripted model that keeps of each request what the verdict needs, and refuses more than its window.

What a client asks for it writes into its messages: `[calls:2]` in a question or a result makes the model call a tool
and expects `[calls:1]` in the result. A client's requests bear a header with their name; what has none is the
gateway's own: a summary or a title.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from everlong.llm import Answer, ArrivalLimits, ReceivedRequest, ScriptedModel, ScriptedServer, Step, Window
from everlong.wire import format_named
from tests.gateway.resending import members

__all__ = ["NAME", "Forwarded", "Upstream", "request_name"]

NAME = "x-chaos-request"
CALLS = re.compile(r"\[calls:(\d+)\]")
TAG = re.compile(r"\[(\d+)\.(\d+)\]")
SUMMARY = re.compile(r"\[summary (\d+)\]")
WORDS = "the tide table lists when boats may leave the inner harbour and who keeps the light on the north pier"
PATIENCE = 600.0  # seconds; the machine may be slow, and this is not what is tested


def request_name(conversation: int, turn: int, attempt: int) -> str:
    """Return the name of one attempt of one request."""
    return f"{conversation}/{turn}/{attempt}"


@dataclass(frozen=True, slots=True)
class Forwarded:
    """One request as it arrived: digests of what comes before its messages and of each of them.

    `tags` are the client's messages of which something stands there, `summaries` the summaries, each as often as it
    stands there.
    """

    number: int
    head: bytes
    messages: tuple[bytes, ...]
    body: bytes
    tokens: int
    refused: bool
    summaries: tuple[int, ...]

    def begins_with(self, other: "Forwarded") -> bool:
        """Whether it begins with all that the other one has."""
        return self.head == other.head and self.messages[: len(other.messages)] == other.messages


class _Watched(ScriptedModel):
    """A scripted model that tells of each request before it answers."""

    __slots__ = ("watch",)
    watch: Callable[[ReceivedRequest, Step], None]

    def step(self, asked: ReceivedRequest) -> Step:
        """Return what is done with the request, and tell of it."""
        done = ScriptedModel.step(self, asked)
        self.watch(asked, done)
        return done


@dataclass
class Upstream:
    """What arrived: of clients by the request's name, newest last; of the gateways themselves as a count."""

    window: int
    between: float = 0.0
    forwarded: dict[str, list[Forwarded]] = field(default_factory=lambda: defaultdict(list))
    summaries_asked: int = 0
    #: Of clients and of gateways, refused as larger than the window.
    refused: int = 0
    refused_own: int = 0

    def serve(self) -> ScriptedServer:
        """Return the server, to be entered."""
        patient = ArrivalLimits(header=PATIENCE, body=PATIENCE, idle=PATIENCE, write=PATIENCE)
        server = ScriptedServer(models=("gpt-4o",), limits=patient)
        model = _Watched(self._answer, Window(self.window, told=True), remembers=8)
        model.watch = self._note
        server.model = model
        return server

    def _answer(self, asked: ReceivedRequest) -> Answer:
        if NAME not in asked.headers:
            self.summaries_asked += 1
            number = self.summaries_asked
            told = f"[summary {number}] A harbour master asks about tides; {len(asked.messages)} messages so far."
            return Answer(text=json.dumps({"context": told}))
        last = asked.messages[-1].text or "".join(result.text for result in asked.messages[-1].results)
        found = CALLS.search(last)
        turn = asked.headers[NAME].split("/")[1]
        if found and int(found[1]):
            calls = (("read_file", json.dumps({"path": f"tides/{turn}.txt"})),)
            return Answer(text=f"I look at table {turn}.", calls=calls, between=self.between)
        return Answer(text=f"Answer {turn}: {WORDS}.", between=self.between)

    def _note(self, asked: ReceivedRequest, done: Step) -> None:
        refused = not isinstance(done, Answer)
        name = asked.headers.get(NAME)
        if name is None:
            self.refused_own += refused
            return
        self.refused += refused
        api = format_named(asked.fmt).api
        raw = json.loads(asked.body)
        head = json.dumps([raw.get("tools"), raw.get(api.system) if api.system else None]).encode()
        summaries = tuple(int(number) for number in SUMMARY.findall(asked.body.decode()))
        parts = tuple(blake2b(part, digest_size=12).digest() for part in members(asked))
        self.forwarded[name].append(
            Forwarded(
                asked.number, blake2b(_unmarked(head)).digest(), parts, asked.body, asked.tokens, refused, summaries
            )
        )


def _unmarked(head: bytes) -> bytes:
    return re.sub(rb',? ?"cache_control": \{[^}]*\}', b"", head)
