"""The recall tool in one exchange: offered, answered here, and never seen by the client.

The model's call is hidden from the answer, and its result goes into a request that continues. When the client sends the
answer again, the hidden parts are put back, so that the prefix stays the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from everlong.core import CallId, Json, Message
from everlong.engine import Engine, Finished
from everlong.errors import EverlongError
from everlong.gateway.recall.history import Round, continued_response, notes_of, put_back
from everlong.gateway.recall.stream import RecallFilter, hidden_body, joined_body
from everlong.gateway.recall.text import recall_text
from everlong.gateway.recall.tool import (
    continuation,
    query_of,
    recall_calls,
    with_recall_tool,
    without_recall,
)
from everlong.gateway.request import ModelRequest, decoded, encoded
from everlong.wire import Find, Format, Shown

__all__ = ["RecallExchange", "with_earlier", "with_tool"]

MAX_ROUNDS = 4  # answers to one request that may call the tool
MAX_CHARACTERS = 24_000  # of one result


def with_tool(request: ModelRequest) -> ModelRequest:
    """Return the request with the tool; unchanged if it must not have the tool or has one with that name."""
    tool = request.format.server.tool
    if request.partial or not tool.may_offer({name: request.value(name) for name in tool.looked_at}):
        return request
    given = request.value("tools")
    tools = given if isinstance(given, list) else []
    more = with_recall_tool(request.format, tools)
    return request if more is tools else request.with_tools(more)


def with_earlier(request: ModelRequest, find: Find, contexts: Sequence[str] = ()) -> ModelRequest:
    """Return the request with what earlier answers recalled and the client was not shown.

    `contexts` names what comes before each message.
    """
    messages: list[Json] = [decoded(raw) for raw in request.messages]
    whole = put_back(request.format, messages, find, contexts)
    if whole is not messages:
        request = request.with_messages([encoded(message) for message in whole])
    held = request.format.server.held
    before = None if held is None else request.value(held.previous)
    name = continued_response(before, find) if isinstance(before, str) else before
    return request if held is None or name == before else request.with_fields({held.previous: encoded(name)})


@dataclass(slots=True)
class RecallExchange:
    """What was recalled while one request was answered."""

    format: Format
    #: The name of what comes before the answer.
    context: str = ""
    rounds: list[Round] = field(default_factory=list)
    _shown: Shown | None = None
    _body: bytes | None = None

    def filter(self) -> RecallFilter:
        """Return the filter for the stream of the next answer."""
        return RecallFilter(self.format.server.tool, self._shown)

    def end_stream(self, recall_filter: RecallFilter) -> None:
        """Record what the client saw; the next stream, if any, continues from there."""
        self._shown = recall_filter.shown

    def shown_body(self, body: bytes) -> bytes:
        """Return a plain answer for the client: without our calls, joined with the answers before it."""
        tool = self.format.server.tool
        return hidden_body(tool, body) if self._body is None else joined_body(tool, self._body, body)

    def hold_body(self, body: bytes) -> None:
        """Keep a plain answer that is not the last one."""
        self._body = self.shown_body(body) if self._body is not None else body

    def continues_after(self, finished: Finished | None) -> bool:
        """Whether the answer calls only our tool, and another answer may follow."""
        if finished is None or len(self.rounds) + 1 >= MAX_ROUNDS:
            return False
        return bool(recall_calls(finished.message)) and not without_recall(finished.message).calls

    async def results(self, engine: Engine, thread: str, message: Message) -> dict[CallId, str]:
        """Return the results of the calls of our tool in an answer."""
        results = {}
        for call in recall_calls(message):
            try:
                found = await engine.recall(thread, query_of(call))
                results[call.id] = recall_text(found, MAX_CHARACTERS)
            except EverlongError as error:
                results[call.id] = str(error)
        return results

    def continued(self, request: ModelRequest, round_: Round) -> ModelRequest:
        """Return the request that continues with an answer and its results."""
        self.rounds.append(round_)
        more = continuation(self.format, round_.message, round_.results)
        return request.with_messages([*request.messages, *(encoded(member) for member in more)])

    def notes(self, last: Round) -> dict[str, str]:
        """Return what must be remembered for the client's next request."""
        return notes_of(self.format, [*self.rounds, last], self.context)
