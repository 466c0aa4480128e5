"""Endpoints inside one thread: rows and context, turns, compactions, approvals, changes of files, pins and recall.

Also reads the user's message: text, pictures and text files, checked before anything is stored.
"""

import asyncio
import base64
import binascii
from contextlib import suppress
from functools import partial

from starlette.responses import Response

from everlong.core import Image, Json, JsonObject, Message, Part, Role, Text
from everlong.engine import text_title
from everlong.errors import InputError, Refused
from everlong.web.api.endpoint import NO_STORE, ApiRequest, event_stream, last_event
from everlong.web.api.threads import ThreadEndpoints
from everlong.web.app import AppState
from everlong.web.fields import flag, invalid, number, object_list, optional_text, required_text
from everlong.web.state.rows import LONGEST, full_text
from everlong.web.state.view import MOST_ROWS

__all__ = ["ConversationEndpoints"]

DEFAULT_ROWS = 100
LONGEST_FOCUS = 4_000  # characters
LONGEST_PIN = 20_000
LONGEST_MESSAGE = 4_000_000  # characters of one text
MOST_PICTURES, MOST_FILES = 20, 20
LARGEST_PICTURE = 10 * 1024 * 1024  # bytes
#: Pictures that models take, and how their bytes begin.
PICTURES: dict[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
ATTACHED_FILE = '<file name="{name}">\n{text}\n</file>'


class ConversationEndpoints:
    """Endpoints of what a person does in a thread."""

    def __init__(self, app: AppState, threads: ThreadEndpoints) -> None:
        self._app = app
        self._threads = threads

    async def _thread(self, request: ApiRequest) -> str:
        """Return the thread in the path. Raises NoThread if the app has none of that name."""
        return (await asyncio.to_thread(self._app.known, request.thread)).id

    async def rows(self, request: ApiRequest) -> Json:
        """Return a page of rows."""
        thread = await self._thread(request)
        call = None
        with suppress(Refused):  # without a model, nobody knows what it would be sent
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

    async def original(self, request: ApiRequest) -> "Json | Response":
        """Return the original behind a reference, byte for byte."""
        thread = await self._thread(request)
        original = await asyncio.to_thread(self._app.threads.original, thread, request.path_name("ref"))
        if original is None:
            raise Refused("there is no such original", status=404, kind="no_original")
        return Response(original, media_type="text/plain; charset=utf-8", headers=NO_STORE)

    async def context(self, request: ApiRequest) -> Json:
        """Return how full the window is."""
        return await self._app.updates.context(await self._thread(request))

    async def events(self, request: ApiRequest) -> "Json | Response":
        """Stream the events of the thread."""
        thread = await self._thread(request)
        app = self._app
        await app.updates.follow(thread)
        last = last_event(request) or request.query("last")[:80]

        def hello(behind: bool) -> list[JsonObject]:
            return [*app.turns.hello(thread, behind), *app.approvals.waiting(thread)]

        await app.compactions.resume(thread)
        return event_stream(app.hub.listen(thread, last, hello))

    async def turn(self, request: ApiRequest) -> Json:
        """Send a user message."""
        thread = await self._thread(request)
        await self._app.turns.say(thread, _user_message(request.body))
        return {}

    async def stop(self, request: ApiRequest) -> Json:
        """Stop the running turn."""
        return {"stopped": self._app.turns.stop(await self._thread(request))}

    async def retry(self, request: ApiRequest) -> Json:
        """Answer the last user message again."""
        await self._app.turns.again(await self._thread(request))
        return {}

    async def regenerate(self, request: ApiRequest) -> Json:
        """Answer the last user message again on a branch. The thread with the old answer is archived, not changed."""
        app = self._app
        thread = await asyncio.to_thread(app.known, request.thread)
        order, message = await app.turns.question(thread.id)
        title = thread.title or text_title(message.text)
        branch = await self._threads.branched(thread, order + 1, title)
        await app.turns.again(branch.id)
        await asyncio.to_thread(partial(app.threads.change, thread.id, archived=True))
        app.hub.publish(thread.id, {"type": "moved", "thread": branch.id})
        return self._threads.shown(branch)

    async def compact(self, request: ApiRequest) -> Json:
        """Start a summary now."""
        thread = await self._thread(request)
        await self._app.compactions.compact(thread, optional_text(request.body, "focus", most=LONGEST_FOCUS) or "")
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
        self._app.approvals.answer(thread, required_text(request.body, "id"), given)
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

    async def restore(self, request: ApiRequest) -> Json:
        """Make a file what it was before a change; with `force` also if somebody else changed it since."""
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


def _user_message(body: JsonObject) -> Message:
    """Return the user's message. Raises Refused if a part cannot be sent or there is none.

    Example: {"text": "look", "images": [{"media_type": "image/png", "data": "iVBO…"}]} -> a text and a picture
    """
    text = optional_text(body, "text", most=LONGEST_MESSAGE) or ""
    parts: list[Part] = [Text(text)] if text.strip() else []
    parts += [_file(row) for row in object_list(body, "files", most=MOST_FILES)]
    parts += [_picture(row) for row in object_list(body, "images", most=MOST_PICTURES)]
    if not parts:
        raise invalid("the message is empty")
    return Message(Role.USER, tuple(parts))


def _file(row: JsonObject) -> Text:
    name = " ".join((optional_text(row, "name") or "file").split()).replace('"', "'")
    text = optional_text(row, "text", most=LONGEST_MESSAGE) or ""
    if "\0" in text:
        raise invalid(f"{name[:80]!r} is not a text file")
    return Text(ATTACHED_FILE.format(name=name, text=text.rstrip("\n")))


def _picture(row: JsonObject) -> Image:
    kind = required_text(row, "media_type").lower()
    data = required_text(row, "data", most=2 * LARGEST_PICTURE)
    if kind not in PICTURES:
        raise Refused(f"a picture must be one of {', '.join(sorted(PICTURES))}", status=415, kind="picture")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("the picture is not base64") from None
    if len(content) > LARGEST_PICTURE:
        raise Refused(f"a picture may have at most {LARGEST_PICTURE:,} bytes", status=413, kind="too_large")
    if not content.startswith(PICTURES[kind]):
        raise Refused(f"the picture is not {kind}", status=415, kind="picture")
    return Image(data=data, media_type=kind)
