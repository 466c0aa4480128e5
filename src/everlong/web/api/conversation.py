"""Endpoints inside one thread: rows and context, turns, compactions, approvals, changes of files, pins and recall."""

import asyncio
from contextlib import suppress
from functools import partial

from starlette.responses import Response

from everlong.agent import unified_diff
from everlong.core import Json, JsonObject, Message, Thread
from everlong.engine import text_title
from everlong.errors import InputError, Refused
from everlong.web.api.attachments import user_message
from everlong.web.api.endpoint import NO_STORE, ApiRequest
from everlong.web.api.threads import ThreadEndpoints
from everlong.web.app import AppState
from everlong.web.fields import flag, invalid, number, optional_text, required_text
from everlong.web.live.sent import is_message_name
from everlong.web.state.rows import LONGEST, full_text
from everlong.web.state.view import MOST_ROWS

__all__ = ["ConversationEndpoints"]

DEFAULT_ROWS = 100
LONGEST_FOCUS = 4_000  # characters
LONGEST_PIN = 20_000
LONGEST_DIFF = 200_000


class ConversationEndpoints:
    """Endpoints of what a person does in a thread."""

    def __init__(self, app: AppState, threads: ThreadEndpoints) -> None:
        self._app = app
        self._threads = threads

    async def _thread(self, request: ApiRequest) -> str:
        """Return the thread in the path. Raises NoThread if the app has no such thread."""
        return (await asyncio.to_thread(self._app.known, request.thread)).id

    async def rows(self, request: ApiRequest) -> Json:
        """Return a page of rows."""
        thread = await self._thread(request)
        call = None
        with suppress(Refused):  # without a model, the next request is unknown
            call = (await self._app.agents.for_thread(thread)).call
        page = partial(
            self._app.view.page,
            thread,
            before=request.count("before", None),
            limit=request.count("limit", DEFAULT_ROWS, MOST_ROWS) or DEFAULT_ROWS,
            point=request.count("point", None),
            call=call,
        )
        return await asyncio.to_thread(page)

    async def why(self, request: ApiRequest) -> Json:
        """Return the status of a message and the reasons for it."""
        thread = await self._thread(request)
        call = (await self._app.agents.for_thread(thread)).call
        return await asyncio.to_thread(self._app.view.why, thread, request.order, call)

    async def kept(self, request: ApiRequest) -> Json:
        """Return what a compaction left of the messages that it covers."""
        return await asyncio.to_thread(self._app.view.kept, await self._thread(request), request.order)

    async def original(self, request: ApiRequest) -> "Json | Response":
        """Return the original behind a reference, byte for byte."""
        thread = await self._thread(request)
        original = await asyncio.to_thread(self._app.threads.original, thread, request.path_name("ref"))
        if original is None:
            raise Refused("the original is not stored", status=404, kind="no_original")
        return Response(original, media_type="text/plain; charset=utf-8", headers=NO_STORE)

    async def context(self, request: ApiRequest) -> Json:
        """Return how full the window is."""
        return await self._app.updates.context(await self._thread(request))

    async def turn(self, request: ApiRequest) -> Json:
        """Send a user message: at the end, or as another version of the message at `instead_of`.

        A message with an `id` is stored once, however often it is sent.
        """
        thread = await asyncio.to_thread(self._app.known, request.thread)
        message, name = user_message(request.body), _message_name(request.body)
        order = number(request.body, "instead_of")
        if order is not None:
            thread = await self._version(thread, order, message)
        await self._app.turns.say(thread.id, message, name)
        return {"thread": thread.id}

    async def stop(self, request: ApiRequest) -> Json:
        """Stop the running turn."""
        return {"stopped": await self._app.turns.stop(await self._thread(request))}

    async def retry(self, request: ApiRequest) -> Json:
        """Retry a failed answer: the text before it broke off stays as a version."""
        app = self._app
        thread = await asyncio.to_thread(app.known, request.thread)
        _, message = await app.turns.question(thread.id)
        last = (await asyncio.to_thread(app.threads.last, thread.id, 1))[-1]
        if isinstance(last.entry, Message) and last.entry.ending:
            thread = await self._version(thread, last.order, message)
        await app.turns.again(thread.id)
        return {"thread": thread.id}

    async def go_on(self, request: ApiRequest) -> Json:
        """Write the rest of the last answer, which broke off."""
        await self._app.turns.go_on(await self._thread(request))
        return {}

    async def regenerate(self, request: ApiRequest) -> Json:
        """Answer a user message again: the last one, or the one before `order`. The old answer stays a version.

        With `model` another model answers, from here on.
        """
        app, model = self._app, optional_text(request.body, "model")
        thread = await asyncio.to_thread(app.known, request.thread)
        order, message = await app.turns.question(thread.id, number(request.body, "order"))
        if model:
            app.models.chosen(model)  # before anything changes: its source may be gone
        version = await self._version(thread, order + 1, message)
        if model:
            version = await self._threads.speak_with(version, model)
        await app.turns.again(version.id)
        return self._threads.shown(version)

    async def _version(self, thread: Thread, order: int, message: Message) -> Thread:
        """Create a version with only the rows before an order; pages that show the old version move to it."""
        if await self._app.turns.busy(thread.id):
            raise Refused("a turn is already running", status=409, kind="running")
        version = await self._threads.version(thread, order, thread.title or text_title(message.text))
        self._app.hub.publish(thread.id, {"type": "moved", "thread": version.id})
        return version

    async def compact(self, request: ApiRequest) -> Json:
        """Start a summary now."""
        thread = await self._thread(request)
        await self._app.compactions.compact(thread, optional_text(request.body, "focus", most=LONGEST_FOCUS) or "")
        return {}

    async def cancel_compaction(self, request: ApiRequest) -> Json:
        """Cancel the summary that is being written; nothing changes."""
        thread = await self._thread(request)
        if thread in self._app.turns.elsewhere.compacting:
            self._app.site.relay.call("cancel", thread)
        elif not self._app.compactions.cancel(thread):
            raise Refused("no summary of this thread is being written", status=409, kind="not_compacting")
        return {}

    async def undo(self, request: ApiRequest) -> Json:
        """Undo the newest compaction."""
        if not await self._app.compactions.undo(await self._thread(request)):
            raise Refused("there is no compaction to undo", status=409, kind="nothing_to_undo")
        return {}

    async def answer(self, request: ApiRequest) -> Json:
        """Allow or forbid what a tool is about to do: once, thread, always or no."""
        thread = await self._thread(request)
        given = required_text(request.body, "answer")
        await self._app.approvals.answer(thread, required_text(request.body, "id"), given)
        return {}

    async def changes(self, request: ApiRequest) -> Json:
        """Return the files that tools changed in this thread and that can be restored, the newest change first."""
        listed = await asyncio.to_thread(self._app.changes.listed, await self._thread(request))
        return [
            {
                "id": change.id,
                "call": change.call,
                "tool": change.tool,
                "path": change.path,
                "time": change.time,
                "new": change.new,
                "kept": change.kept,
            }
            for change in listed
        ]

    async def diff(self, request: ApiRequest) -> Json:
        """Return a change of a file as a unified diff; null if it is no longer known."""
        read = partial(self._app.changes.sides, await self._thread(request), request.path_name("change"))
        sides = await asyncio.to_thread(read)
        if sides is None:
            return {"diff": None, "cut": False}
        diff = await asyncio.to_thread(unified_diff, *(side.decode("utf-8", "replace") for side in sides))
        return {"diff": diff[:LONGEST_DIFF], "cut": len(diff) > LONGEST_DIFF}

    async def restore(self, request: ApiRequest) -> Json:
        """Restore a file as it was before a change; with `force`, even if it was changed since."""
        thread, force = await self._thread(request), flag(request.body, "force") or False
        try:
            restore = partial(self._app.changes.restore, thread, request.path_name("change"), force=force)
            change = await asyncio.to_thread(restore)
        except InputError as error:
            raise Refused(str(error), status=409, kind="not_restored") from None
        return {"path": change.path, "removed": change.new}

    async def pins(self, request: ApiRequest) -> Json:
        """Return the pins."""
        pins = await asyncio.to_thread(self._app.threads.pins, await self._thread(request))
        return [{"id": pin.id, "order": pin.order, "text": pin.text} for pin in pins]

    async def pin(self, request: ApiRequest) -> Json:
        """Pin a message or a text."""
        thread = await self._thread(request)
        order, text = number(request.body, "order"), optional_text(request.body, "text", most=LONGEST_PIN) or ""
        if order is not None:
            row = await asyncio.to_thread(self._app.view.row, thread, order)
            if not isinstance(row.entry, Message):
                raise invalid("only messages can be pinned")
        pin = await self._app.engine.pin(thread, order, text.strip())
        self._app.updates.refresh(thread)
        return {"id": pin.id}

    async def unpin(self, request: ApiRequest) -> Json:
        """Remove a pin."""
        thread = await self._thread(request)
        await self._app.engine.unpin(thread, request.path_name("pin"))
        self._app.updates.refresh(thread)
        return {}

    async def recall(self, request: ApiRequest) -> Json:
        """Find messages by words, or the original behind a reference."""
        thread = await self._thread(request)
        try:
            recalled = await self._app.engine.recall(thread, required_text(request.body, "words"))
        except InputError as error:
            raise invalid(str(error)) from None
        hits: list[Json] = [
            {
                "order": hit.row.order,
                "role": hit.row.entry.role.value,
                "text": full_text(hit.row.entry)[:LONGEST],
                "score": hit.score,
            }
            for hit in recalled.hits
            if isinstance(hit.row.entry, Message)
        ]
        original = None if recalled.original is None else recalled.original.decode("utf-8", "replace")
        return {"hits": hits, "original": original}


def _message_name(body: JsonObject) -> str:
    name = optional_text(body, "id") or ""
    if name and not is_message_name(name):
        raise invalid("id must have 8 to 64 letters, digits or hyphens")
    return name
