"""Ask a person whether a tool may act. No answer in time means no.

If processes share a store, the question and its answer are kept in it: the person may use another process.
"""

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from everlong.agent import Action, Answer
from everlong.core import JsonObject, JsonText
from everlong.engine import Threads
from everlong.errors import EverlongError, Refused
from everlong.web.fields import invalid, stored_object
from everlong.web.live.site import Site

__all__ = ["Approvals"]

KIND = "app question"  # of the facts
SECONDS = 600.0  # until a missing answer counts as no


@dataclass(frozen=True, slots=True, eq=False)
class _Approval:
    """A question that waits for its answer."""

    action: Action
    answer: "asyncio.Future[Answer]"


class Approvals:
    """The questions of tools that wait for a person, in any process. Belongs to one event loop."""

    def __init__(self, site: Site, threads: Threads, *, seconds: float = SECONDS) -> None:
        self._hub = site.hub
        self._relay = site.relay
        self._threads = threads
        self._seconds = seconds
        self._waiting: dict[str, _Approval] = {}
        #: Questions of other processes in threads that pages here have open: by thread, then by name.
        self._elsewhere: dict[str, dict[str, JsonObject]] = {}

    async def approve(self, action: Action) -> Answer:
        """Ask the person about an action in its thread and return the answer. `Permissions` calls this."""
        name = uuid4().hex
        approval = _Approval(action, asyncio.get_running_loop().create_future())
        self._waiting[name] = approval
        event = _event(name, action)
        if self._relay.shared:
            asked = {"thread": action.thread, "process": self._relay.process, "event": event}
            await asyncio.to_thread(self._threads.keep_fact, KIND, name, json.dumps(asked))
        self._hub.publish(action.thread, event)
        try:
            return await asyncio.wait_for(approval.answer, self._seconds)
        except TimeoutError:
            return Answer.NO
        finally:
            del self._waiting[name]
            self._hub.publish(action.thread, {"type": "answered", "id": name})
            if self._relay.shared:
                with suppress(EverlongError):
                    await asyncio.to_thread(self._threads.drop_fact, KIND, name)

    async def answer(self, thread: str, name: str, given: str) -> None:
        """Accept a person's answer, one of those that the question offers. In all processes, only the first counts."""
        approval = self._waiting.get(name)
        if approval is not None and approval.action.thread == thread:
            if approval.answer.done():
                raise _no_question()
            if given not in approval.action.answers:
                raise _not_offered(approval.action.answers)
            approval.answer.set_result(Answer(given))
            return
        if not self._relay.shared:
            raise _no_question()
        await asyncio.to_thread(self._keep_answer, thread, name, given)
        self._relay.call("answer", thread, id=name)

    def _keep_answer(self, thread: str, name: str, given: str) -> None:
        """Keep the answer to a question of another process, which takes it from the store."""
        refusals: list[Refused] = []

        def change(value: JsonText | None) -> JsonText | None:
            asked = stored_object(value or "{}")
            event = asked.get("event")
            offered = event.get("answers") if isinstance(event, dict) else None
            waits = asked.get("thread") == thread and "answer" not in asked and isinstance(offered, list)
            fits = waits and isinstance(offered, list) and given in offered
            refusals[:] = [] if fits else [_not_offered(offered) if waits else _no_question()]
            return json.dumps({**asked, "answer": given}) if fits else value

        self._threads.change_fact(KIND, name, change)
        for refusal in refusals:
            raise refusal

    async def take_answers(self, _thread: str = "", _fields: JsonObject | None = None) -> None:
        """Accept the answers that arrived at other processes."""
        for name, approval in list(self._waiting.items()):
            kept = await asyncio.to_thread(self._threads.fact, KIND, name)
            given = stored_object(kept or "{}").get("answer")
            if given in tuple(approval.action.answers) and not approval.answer.done():
                approval.answer.set_result(Answer(str(given)))

    async def look(self, thread: str) -> None:
        """Read the questions of other processes in a thread, for a page that opens it here."""
        if not self._relay.shared:
            return
        kept = await asyncio.to_thread(self._threads.facts, KIND)
        asked = {name: stored_object(value) for name, value in kept.items() if name not in self._waiting}
        self._elsewhere[thread] = {
            name: event
            for name, fields in asked.items()
            if fields.get("thread") == thread and "answer" not in fields and isinstance(event := fields["event"], dict)
        }

    def process_event(self, thread: str, event: JsonObject) -> None:
        """Process an event of another process in a thread that a page here has open."""
        match event:
            case {"type": "ask", "id": str() as name}:
                self._elsewhere.setdefault(thread, {})[name] = event
            case {"type": "answered", "id": str() as name}:
                self._elsewhere.get(thread, {}).pop(name, None)
            case _:
                pass

    def waiting(self, thread: str) -> list[JsonObject]:
        """Return the open questions of a thread as events, for a page that just opened it."""
        here = [_event(name, one.action) for name, one in self._waiting.items() if one.action.thread == thread]
        return [*here, *self._elsewhere.get(thread, {}).values()]

    def forget(self, thread: str) -> None:
        """Drop the questions that a dead process left in a thread. Reads and writes the store."""
        for name, value in self._threads.facts(KIND).items():
            if stored_object(value).get("thread") == thread and name not in self._waiting:
                self._threads.drop_fact(KIND, name)
                self._hub.publish(thread, {"type": "answered", "id": name})


def _not_offered(answers: object) -> Refused:
    return invalid(f"answer must be one of {', '.join(map(str, answers if isinstance(answers, Iterable) else ()))}")


def _no_question() -> Refused:
    return Refused("this request was already answered", status=404, kind="no_question")


def _event(name: str, action: Action) -> JsonObject:
    """Return a question as an event. Its texts are already made visible: they hide nothing."""
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
