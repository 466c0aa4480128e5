"""Questions that wait for a person: a tool is about to act. Without an answer in time the answer is no."""

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import uuid4

from everlong.core import JsonObject
from everlong.errors import Refused
from everlong.web.live.hub import Hub

__all__ = ["CURRENT_THREAD", "Approvals"]

SECONDS = 600.0
LONGEST = 20_000  # characters of what is to be allowed
#: The thread whose turn the running task belongs to.
CURRENT_THREAD: ContextVar[str] = ContextVar("everlong_thread")


@dataclass(frozen=True, slots=True, eq=False)
class _Approval:
    thread: str
    tool: str
    what: str
    answer: "asyncio.Future[bool]"


class Approvals:
    """What is being asked. Belongs to one event loop."""

    def __init__(self, hub: Hub, *, seconds: float = SECONDS) -> None:
        self._hub = hub
        self._seconds = seconds
        self._waiting: dict[str, _Approval] = {}
        self._always: set[tuple[str, str]] = set()

    async def approve(self, tool: str, what: str) -> bool:
        """Ask the person in whose thread this runs; called by an agent."""
        thread = CURRENT_THREAD.get("")
        if (thread, tool) in self._always:
            return True
        name = uuid4().hex
        question = _Approval(thread, tool, what[:LONGEST], asyncio.get_running_loop().create_future())
        self._waiting[name] = question
        self._hub.publish(thread, _shown(name, question))
        try:
            return await asyncio.wait_for(question.answer, self._seconds)
        except TimeoutError:
            return False
        finally:
            del self._waiting[name]
            self._hub.publish(thread, {"type": "answered", "id": name})

    def answer(self, thread: str, name: str, *, yes: bool, always: bool) -> None:
        """What the person said. `always` holds for this tool in this thread, until the server ends."""
        question = self._waiting.get(name)
        if question is None or question.thread != thread or question.answer.done():
            raise Refused("nothing waits for that answer any more", status=404, kind="no_question")
        if yes and always:
            self._always.add((thread, question.tool))
        question.answer.set_result(yes)

    def waiting(self, thread: str) -> list[JsonObject]:
        """What is being asked in a thread, for who comes new."""
        return [_shown(name, one) for name, one in self._waiting.items() if one.thread == thread]


def _shown(name: str, question: _Approval) -> JsonObject:
    return {"type": "ask", "id": name, "tool": question.tool, "what": question.what}
