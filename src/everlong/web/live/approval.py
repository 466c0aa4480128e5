"""Ask a person whether a tool may act. No answer in time means no."""

import asyncio
from dataclasses import dataclass
from uuid import uuid4

from everlong.agent import Action, Answer
from everlong.core import JsonObject
from everlong.errors import Refused
from everlong.web.fields import invalid
from everlong.web.live.hub import Hub

__all__ = ["Approvals"]

SECONDS = 600.0  # until no answer is a no


@dataclass(frozen=True, slots=True, eq=False)
class _Approval:
    """A question that waits for its answer."""

    action: Action
    answer: "asyncio.Future[Answer]"


class Approvals:
    """The questions of tools that wait for a person. Belongs to one event loop."""

    def __init__(self, hub: Hub, *, seconds: float = SECONDS) -> None:
        self._hub = hub
        self._seconds = seconds
        self._waiting: dict[str, _Approval] = {}

    async def approve(self, action: Action) -> Answer:
        """Ask the person in whose thread the action is and return the answer. Permissions call it."""
        name = uuid4().hex
        approval = _Approval(action, asyncio.get_running_loop().create_future())
        self._waiting[name] = approval
        self._hub.publish(action.thread, _event(name, action))
        try:
            return await asyncio.wait_for(approval.answer, self._seconds)
        except TimeoutError:
            return Answer.NO
        finally:
            del self._waiting[name]
            self._hub.publish(action.thread, {"type": "answered", "id": name})

    def answer(self, thread: str, name: str, given: str) -> None:
        """Accept a person's answer: one of those that the question offers."""
        approval = self._waiting.get(name)
        if approval is None or approval.action.thread != thread or approval.answer.done():
            raise Refused("this question no longer waits for an answer", status=404, kind="no_question")
        if given not in approval.action.answers:
            raise invalid(f"answer must be one of {', '.join(approval.action.answers)}")
        approval.answer.set_result(Answer(given))

    def waiting(self, thread: str) -> list[JsonObject]:
        """Return the open questions of a thread as events, for a page that just opened it."""
        return [_event(name, one.action) for name, one in self._waiting.items() if one.action.thread == thread]


def _event(name: str, action: Action) -> JsonObject:
    """Return a question as an event. All its texts are visible already: nothing in them is hidden, nothing acts."""
    return {
        "type": "ask",
        "id": name,
        "tool": action.tool,
        "kind": action.kind,
        "subject": action.subject,
        "details": action.details,
        "hint": action.hint,
        "pattern": action.pattern,
        "hidden": action.hidden,
        "answers": [answer.value for answer in action.answers],
    }
