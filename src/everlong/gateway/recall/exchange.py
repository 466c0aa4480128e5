"""The recall tool in one exchange: offered, answered here, and never seen by the client.

The model's call is hidden from the answer and its result put into a request that goes on; when the client sends the
answer again, what it did not see is put back, so that the prefix stays what it was.
"""

from dataclasses import dataclass, field

from everlong.core import CallId, Json, Message
from everlong.engine import Engine, Finished
from everlong.errors import EverlongError
from everlong.gateway.conversations.opaque import Find
from everlong.gateway.raw_json import decoded, encoded
from everlong.gateway.recall.bodies import hidden_body, joined_body
from everlong.gateway.recall.editor import Shown
from everlong.gateway.recall.history import Round, beside, continued, put_back
from everlong.gateway.recall.stream import ContinuedFilter, RecallFilter
from everlong.gateway.recall.text import recall_text
from everlong.gateway.recall.tool import answered, may_offer, recall_calls, wanted, with_recall_tool, without_recall
from everlong.gateway.request import ModelRequest

__all__ = ["RecallExchange", "with_earlier", "with_tool"]

MAX_ROUNDS = 4  # answers of one request that may ask for more
MOST_CHARACTERS = 24_000  # of one result


def with_earlier(asked: ModelRequest, find: Find) -> ModelRequest:
    """The request with what earlier answers recalled and the client was not shown."""
    messages: list[Json] = [decoded(raw) for raw in asked.messages]
    whole = put_back(asked.fmt, messages, find)
    if whole is not messages:
        asked = asked.with_messages([encoded(message) for message in whole])
    before = asked.value("previous_response_id")
    name = continued(before, find) if isinstance(before, str) else before
    return asked if name == before else asked.with_fields({"previous_response_id": encoded(name)})


def with_tool(asked: ModelRequest) -> ModelRequest:
    """The request with the tool; the same where it must not have it, or has one of that name."""
    others: dict[str, Json] = {name: asked.value(name) for name in ("tool_choice", "n", "functions", "background")}
    if asked.partial or not may_offer(others):
        return asked
    said = asked.value("tools")
    tools = said if isinstance(said, list) else []
    more = with_recall_tool(asked.fmt, tools)
    return asked if more is tools else asked.with_tools(more)


@dataclass(slots=True)
class RecallExchange:
    """What was recalled while one request was answered."""

    fmt: str
    rounds: list[Round] = field(default_factory=list)
    _shown: Shown | None = None
    _body: bytes | None = None

    def filter(self) -> RecallFilter:
        """What the stream of the next answer goes through."""
        return RecallFilter(self.fmt) if self._shown is None else ContinuedFilter(self.fmt, self._shown)

    def streamed(self, hiding: RecallFilter) -> None:
        """A stream is over; the next one, if there is one, goes on from here."""
        self._shown = hiding.shown

    def told(self, body: bytes) -> bytes:
        """A plain answer for the client: without our calls, together with the answers before it."""
        return hidden_body(self.fmt, body) if self._body is None else joined_body(self.fmt, self._body, body)

    def plain(self, body: bytes) -> None:
        """A plain answer that is not the last."""
        self._body = self.told(body) if self._body is not None else body

    def goes_on(self, finished: Finished | None) -> bool:
        """Whether the answer calls our tool and nothing else, and may still go on."""
        if finished is None or len(self.rounds) + 1 >= MAX_ROUNDS:
            return False
        return bool(recall_calls(finished.message)) and not without_recall(finished.message).calls

    async def results(self, engine: Engine, thread: str, message: Message) -> dict[CallId, str]:
        """What the calls of our tool in an answer bring."""
        results = {}
        for call in recall_calls(message):
            try:
                found = await engine.recall(thread, wanted(call))
                results[call.id] = recall_text(found, MOST_CHARACTERS)
            except EverlongError as error:
                results[call.id] = str(error)
        return results

    def continued(self, asked: ModelRequest, round_: Round) -> ModelRequest:
        """The request that goes on with an answer and its results."""
        self.rounds.append(round_)
        more = answered(self.fmt, round_.message, round_.results)
        return asked.with_messages([*asked.messages, *(encoded(member) for member in more)])

    def kept(self, last: Round) -> dict[str, str]:
        """What must be remembered for the client's next request."""
        return beside(self.fmt, [*self.rounds, last])
