"""Ask a person whether a tool may act. No answer in time means no."""

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import uuid4

from everlong.core import JsonObject
from everlong.errors import Refused
from everlong.web.live.hub import Hub

__all__ = ["CURRENT_THREAD", "Approvals"]

SECONDS = 600.0  # until no answer is a no
LONGEST = 20_000  # characters of the description of an action
#: The thread whose turn the running task belongs to.
CURRENT_THREAD: ContextVar[str] = ContextVar("everlong_thread")


@dataclass(frozen=True, slots=True, eq=False)
class _Approval:
    """A question that waits for its answer."""

    thread: str
    tool: str
    action: str
    answer: "asyncio.Future[bool]"


class Approvals:
    """The questions of tools that wait for a person. Belongs to one event loop."""

    def __init__(self, hub: Hub, *, seconds: float = SECONDS) -> None:
        self._hub = hub
        self._seconds = seconds
        self._waiting: dict[str, _Approval] = {}
        self._always: set[tuple[str, str]] = set()

    async def approve(self, tool: str, action: str) -> bool:
        """Ask the person in whose thread this runs and return the answer. Agents call it."""
        thread = CURRENT_THREAD.get("")
        if (thread, tool) in self._always:
            return True
        name = uuid4().hex
        approval = _Approval(thread, tool, action[:LONGEST], asyncio.get_running_loop().create_future())
        self._waiting[name] = approval
        self._hub.publish(thread, _event(name, approval))
        try:
            return await asyncio.wait_for(approval.answer, self._seconds)
        except TimeoutError:
            return False
        finally:
            del self._waiting[name]
            self._hub.publish(thread, {"type": "answered", "id": name})

    def answer(self, thread: str, name: str, *, yes: bool, always: bool) -> None:
        """Accept a person's answer. `always` allows this tool in this thread until the server ends."""
        approval = self._waiting.get(name)
        if approval is None or approval.thread != thread or approval.answer.done():
            raise Refused("this question no longer waits for an answer", status=404, kind="no_question")
        if yes and always:
            self._always.add((thread, approval.tool))
        approval.answer.set_result(yes)

    def waiting(self, thread: str) -> list[JsonObject]:
        """Return the open questions of a thread as events, for a page that just opened it."""
        return [_event(name, approval) for name, approval in self._waiting.items() if approval.thread == thread]


def _event(name: str, approval: _Approval) -> JsonObject:
    return {"type": "ask", "id": name, "tool": approval.tool, "what": approval.action}
