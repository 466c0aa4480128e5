"""The endpoints inside one thread: its rows and context, turns and compactions, pins and what is recalled."""

import asyncio
from contextlib import suppress
from functools import partial

from starlette.responses import Response, StreamingResponse

from everlong.core import Json, Message
from everlong.engine import text_title
from everlong.errors import InputError, Refused
from everlong.web.answering import Asked
from everlong.web.desk import LIVE, Desk
from everlong.web.fields import flag, needed_text, number, optional_text, wrong
from everlong.web.reading import MOST_ROWS
from everlong.web.rows import LONGEST, words_of
from everlong.web.saying import said_message
from everlong.web.threads import ThreadList

__all__ = ["Talking"]

PAGE = 100  # rows
LONGEST_FOCUS = 4_000
LONGEST_PIN = 20_000
EVENT_STREAM = {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}


class Talking:
    """What a person does in a thread."""

    def __init__(self, desk: Desk, listed: ThreadList) -> None:
        self._desk = desk
        self._listed = listed

    async def _known(self, asked: Asked) -> str:
        return (await asyncio.to_thread(self._desk.known, asked.thread)).id

    async def rows(self, asked: Asked) -> Json:
        """A page of rows."""
        thread = await self._known(asked)
        call = None
        with suppress(Refused):  # without a model nobody knows what it would be sent
            call = (await self._desk.agents.ready(thread)).call
        page = partial(
            self._desk.reading.page,
            thread,
            before=asked.count("before", None),
            limit=asked.count("limit", PAGE, MOST_ROWS) or PAGE,
            point=asked.count("point", None),
            call=call,
        )
        return await asyncio.to_thread(page)

    async def why(self, asked: Asked) -> Json:
        """What became of a message."""
        thread = await self._known(asked)
        ready = await self._desk.agents.ready(thread)
        return await asyncio.to_thread(self._desk.reading.why, thread, asked.order(), ready.call)

    async def original(self, asked: Asked) -> "Json | Response":
        """What a reference names, byte for byte."""
        thread = await self._known(asked)
        found = await asyncio.to_thread(self._desk.threads.original, thread, asked.named("ref"))
        if found is None:
            raise Refused("there is no such original", status=404, kind="no_original")
        return Response(found, media_type="text/plain; charset=utf-8", headers={"cache-control": "no-store"})

    async def context(self, asked: Asked) -> Json:
        """How full the window is."""
        return await self._desk.showing.context(await self._known(asked))

    async def events(self, asked: Asked) -> "Json | Response":
        """The stream of what happens."""
        thread = await self._known(asked)
        desk = self._desk
        await desk.showing.follow(thread)
        last = asked.request.headers.get("last-event-id", "") or asked.query("last")

        def hello(behind: bool) -> list[dict[str, Json]]:
            return [*desk.turns.hello(thread, behind), *desk.questions.waiting(thread)]

        await desk.compactions.resume(thread)
        return StreamingResponse(desk.hub.listen(thread, last[:80], hello), headers=EVENT_STREAM)

    async def live(self, asked: Asked) -> "Json | Response":
        """The stream of what goes through the gateway."""
        last = asked.request.headers.get("last-event-id", "")
        return StreamingResponse(self._desk.hub.listen(LIVE, last[:80], lambda _: []), headers=EVENT_STREAM)

    async def turn(self, asked: Asked) -> Json:
        """Something is said."""
        thread = await self._known(asked)
        await self._desk.turns.say(thread, said_message(asked.said))
        return {}

    async def stop(self, asked: Asked) -> Json:
        """Stop the turn that runs."""
        return {"stopped": self._desk.turns.stop(await self._known(asked))}

    async def retry(self, asked: Asked) -> Json:
        """Answer again what was said last."""
        await self._desk.turns.again(await self._known(asked))
        return {}

    async def regenerate(self, asked: Asked) -> Json:
        """Another answer to what was said last, on a branch; the thread with the old one is archived, not changed."""
        desk = self._desk
        kept = await asyncio.to_thread(desk.known, asked.thread)
        if desk.turns.running(kept.id):
            raise Refused("a turn runs already", status=409, kind="running")
        said = await desk.turns.asked(kept.id)
        if said is None:
            raise Refused("nothing was said yet", status=409, kind="nothing_said")
        branch = await self._listed.branched(kept, said[0] + 1, kept.title or text_title(said[1].text))
        await desk.turns.again(branch.id)
        await asyncio.to_thread(partial(desk.threads.change, kept.id, archived=True))
        desk.hub.publish(kept.id, {"type": "moved", "thread": branch.id})
        return self._listed.shown(branch)

    async def compact(self, asked: Asked) -> Json:
        """A summary now."""
        thread = await self._known(asked)
        await self._desk.compactions.compact(thread, optional_text(asked.said, "focus", most=LONGEST_FOCUS) or "")
        return {}

    async def undo(self, asked: Asked) -> Json:
        """Withdraw the newest compaction."""
        if not await self._desk.compactions.undo(await self._known(asked)):
            raise Refused("there is no compaction to undo", status=409, kind="nothing_to_undo")
        return {}

    async def answer(self, asked: Asked) -> Json:
        """What a person says to a question of a tool."""
        thread = await self._known(asked)
        yes = flag(asked.said, "yes")
        if yes is None:
            raise wrong("yes is true or false")
        always = flag(asked.said, "always") or False
        self._desk.questions.answer(thread, needed_text(asked.said, "id"), yes=yes, always=always)
        return {}

    async def pins(self, asked: Asked) -> Json:
        """What is pinned."""
        pins = await asyncio.to_thread(self._desk.threads.pins, await self._known(asked))
        return [{"id": pin.id, "order": pin.order, "text": pin.text} for pin in pins]

    async def pin(self, asked: Asked) -> Json:
        """Keep a message, or a text."""
        thread = await self._known(asked)
        order, text = number(asked.said, "order"), optional_text(asked.said, "text", most=LONGEST_PIN) or ""
        if order is not None:
            row = await asyncio.to_thread(self._desk.reading.row, thread, order)
            if not isinstance(row.entry, Message):
                raise wrong("only messages can be pinned")
        pin = await self._desk.engine.pin(thread, order, text.strip())
        self._desk.showing.refresh(thread)
        return {"id": pin.id}

    async def unpin(self, asked: Asked) -> Json:
        """Let it go."""
        thread = await self._known(asked)
        await self._desk.engine.unpin(thread, asked.named("pin"))
        self._desk.showing.refresh(thread)
        return {}

    async def recall(self, asked: Asked) -> Json:
        """What a reference names, or what answers some words."""
        thread = await self._known(asked)
        try:
            found = await self._desk.engine.recall(thread, needed_text(asked.said, "words"))
        except InputError as error:
            raise wrong(str(error)) from None
        hits: list[Json] = [
            {
                "order": hit.row.order,
                "role": hit.row.entry.role.value,
                "text": words_of(hit.row.entry)[:LONGEST],
                "score": hit.score,
            }
            for hit in found.hits
            if isinstance(hit.row.entry, Message)
        ]
        original = None if found.original is None else found.original.decode("utf-8", "replace")
        return {"hits": hits, "original": original}
