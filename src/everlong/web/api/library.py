"""Endpoints of the library: folders, export and import of threads, and the tree of a thread's branches."""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from typing import IO
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from everlong.core import Json, JsonObject, Message, Role, Thread
from everlong.errors import NoThread, Refused
from everlong.store import FORMATS, archive_of, export_name, exported
from everlong.web.api.endpoint import NO_STORE, ApiRequest, too_large
from everlong.web.api.threads import ThreadEndpoints, is_listed, is_own
from everlong.web.app import AppState
from everlong.web.fields import flag, invalid, optional_text, required_text
from everlong.web.state.rows import full_text
from everlong.web.state.settings import OWNER

__all__ = ["LibraryEndpoints"]

LARGEST_IMPORT = 512 * 1024 * 1024  # bytes; an archive with pictures is large, its conversations are not
IN_MEMORY = 16 * 1024 * 1024  # bytes of an upload in memory; a larger one is on disk until it has been read
MOST_CHOSEN = 1_000  # threads that are exported or changed together
MOST_NAME = 200  # characters of the name of a file
LOSSLESS = "everlong"  # the format that leaves nothing out
FIRST_WORDS = 120  # characters
MOST_NODES = 500  # branches of one tree
LOOKED_AHEAD = 20  # rows in which the first words of a branch are searched
TYPES = {".md": "text/markdown; charset=utf-8", ".json": "application/json", ".jsonl": "application/jsonl"}
LINES = {"content-type": "application/x-ndjson", "x-accel-buffering": "no", **NO_STORE}


class LibraryEndpoints:
    """Endpoints that organise, export and import threads."""

    def __init__(self, app: AppState, threads: ThreadEndpoints) -> None:
        self._app = app
        self._threads = threads

    # Folders

    async def add_folder(self, request: ApiRequest) -> Json:
        """Make a folder."""
        return {"name": await asyncio.to_thread(self._app.shelf.add, required_text(request.body, "name"))}

    async def rename_folder(self, request: ApiRequest) -> Json:
        """Rename a folder, with all threads in it."""
        old, new = required_text(request.body, "name"), required_text(request.body, "new")
        return {"name": await asyncio.to_thread(self._app.shelf.rename, old, new)}

    async def remove_folder(self, request: ApiRequest) -> Json:
        """Remove a folder; its threads stay."""
        name = request.query("name") or required_text(request.body, "name")
        return {"threads": await asyncio.to_thread(self._app.shelf.remove, name)}

    async def change_many(self, request: ApiRequest) -> Json:
        """Archive, move, pin or delete several threads; those that no longer exist are skipped."""
        names = _chosen(request.body.get("threads"))
        archived, pinned = flag(request.body, "archived"), flag(request.body, "pinned")
        folder, delete = optional_text(request.body, "folder"), flag(request.body, "delete") or False
        changed = 0
        for name in names:
            thread = await asyncio.to_thread(self._known, name)
            if thread is None:
                continue
            changed += 1
            if delete:
                await self._threads.delete(thread.id)
                continue
            if folder is not None or pinned is not None:
                thread = await asyncio.to_thread(partial(self._app.shelf.put, thread, folder=folder, pinned=pinned))
            if archived is not None:
                await asyncio.to_thread(partial(self._app.threads.change, name, archived=archived, at=thread.updated))
        return {"changed": changed}

    def _known(self, name: str) -> Thread | None:
        try:
            return self._app.known(name)
        except NoThread:
            return None

    # Files

    async def export(self, request: ApiRequest) -> "Json | Response":
        """Export a thread as a file: Everlong's own JSON, Markdown, or a file of another program.

        Everlong's own loses nothing: a conversation with versions is an archive of all of them.
        """
        thread = await asyncio.to_thread(self._app.known, request.thread)
        fmt = _format(request)
        family = [member.thread for member in self._app.versions.of(thread.id).members]
        if fmt == LOSSLESS and len(family) > 1:
            return await self._archive(await asyncio.to_thread(self._exportable, family), fmt, request)
        write = partial(exported, self._app.threads, thread.id, fmt, language=self._language(request))
        return _download(await asyncio.to_thread(write), export_name(thread, fmt))

    async def export_many(self, request: ApiRequest) -> "Json | Response":
        """Export the chosen threads, or all of them, as one archive, which is sent while it is written."""
        fmt = _format(request)
        names = _chosen([*request.http.query_params.getlist("thread")])
        return await self._archive(await asyncio.to_thread(self._exportable, names), fmt, request)

    async def _archive(self, threads: list[Thread], fmt: str, request: ApiRequest) -> Response:
        pieces = archive_of(self._app.threads, threads, fmt, language=self._language(request))
        headers = _as_file(f"everlong-{datetime.now(UTC):%Y-%m-%d}-{fmt}.zip")
        return StreamingResponse(pieces, media_type="application/zip", headers=headers)

    def _exportable(self, names: list[str]) -> list[Thread]:
        """Return the named threads, or all, oldest first, so that a branch comes after its parent."""
        listed = self._app.threads.threads(owner=OWNER, archived=None)
        chosen = [thread for thread in listed if is_own(thread) and (not names or thread.id in names)]
        return sorted(chosen, key=lambda thread: thread.created)

    def _language(self, request: ApiRequest) -> str:
        return request.query("language") or self._app.settings.language or "en"

    async def bring_in(self, request: ApiRequest) -> "Json | Response":
        """Import the file in the body, and report the progress, one event per line."""
        if self._app.imports.busy:
            raise Refused("another file is being imported; wait until it is finished", status=409, kind="importing")
        name = request.query("name")[:MOST_NAME] or "import"
        file = await _upload(request.http)
        return StreamingResponse(_lines(self._app.imports.run(file, name), file), headers=LINES)

    # Branches

    async def family(self, request: ApiRequest) -> Json:
        """Return the tree of a thread's branches: what branched off where, and its first words there."""
        thread = await asyncio.to_thread(self._app.known, request.thread)
        return await asyncio.to_thread(self._tree, thread)

    def _tree(self, thread: Thread) -> JsonObject:
        own = {each.id: each for each in self._app.threads.threads(owner=OWNER, archived=None) if is_own(each)}
        root, seen = thread.id, {thread.id}
        while (above := own[root].parent[0] if root in own else "") in own and above not in seen:
            root = above
            seen.add(root)
        children: dict[str, list[Thread]] = {}
        for each in sorted(own.values(), key=lambda each: each.created):
            children.setdefault(each.parent[0], []).append(each)
        nodes: list[Json] = []
        waiting = [own.get(root, thread)]
        while waiting and len(nodes) < MOST_NODES:
            each = waiting.pop(0)
            nodes.append(self._node(each, "" if each.id == root else each.parent[0]))
            waiting += children.get(each.id, [])
        return {"root": root, "nodes": nodes}

    def _before(self, thread: str, order: int) -> str:
        """Return the first words of the last message before an order: the point from which a branch continues."""
        rows = list(self._app.threads.read(thread, max(0, order - LOOKED_AHEAD), order))
        texts = (row.entry.text for row in reversed(rows) if isinstance(row.entry, Message))
        return _first_words(next((text for text in texts if text.strip()), ""))

    def _node(self, thread: Thread, parent: str) -> JsonObject:
        start = thread.parent[1] if parent else 0
        rows = self._app.threads.read(thread.id, start, start + LOOKED_AHEAD)
        said = (row for row in rows if isinstance(row.entry, Message) and row.entry.role in (Role.USER, Role.ASSISTANT))
        first = next((row for row in said if isinstance(row.entry, Message) and row.entry.text.strip()), None)
        words = "" if first is None or not isinstance(first.entry, Message) else full_text(first.entry)
        return {
            "id": thread.id,
            "title": thread.title,
            "parent": parent or None,
            "order": start,
            "first": None if first is None else first.order,
            "words": _first_words(words),
            "after": self._before(thread.id, start),
            "role": first.entry.role.value if first is not None and isinstance(first.entry, Message) else "",
            "messages": thread.messages,
            "updated": thread.updated.isoformat(),
            "archived": thread.archived,
            "listed": is_listed(thread),
        }


def _first_words(text: str) -> str:
    return " ".join(text[: 4 * FIRST_WORDS].split())[:FIRST_WORDS]


def _format(request: ApiRequest) -> str:
    fmt = request.query("format") or FORMATS[0]
    if fmt not in FORMATS:
        raise invalid(f"format must be one of {', '.join(FORMATS)}")
    return fmt


def _chosen(value: Json) -> list[str]:
    """Return the names of chosen threads. Raises Refused if it is not a list of names, or if there are too many."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise invalid("threads must be a list of ids")
    if len(value) > MOST_CHOSEN:
        raise invalid(f"at most {MOST_CHOSEN:,} threads at a time")
    return list(dict.fromkeys(map(str, value)))


def _download(content: bytes, name: str) -> Response:
    kind = next((kind for suffix, kind in TYPES.items() if name.endswith(suffix)), "application/octet-stream")
    return Response(content, media_type=kind, headers=_as_file(name))


def _as_file(name: str) -> dict[str, str]:
    """Return headers that make a browser save the answer under a name in any script."""
    plain = name.encode("ascii", "ignore").decode() or "thread"
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"
    return {"content-disposition": disposition, "x-content-type-options": "nosniff", **NO_STORE}


async def _upload(request: Request) -> IO[bytes]:
    """Return the body as a file; a large one is on disk, without a name. Raises Refused if it is too large."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > LARGEST_IMPORT:
        raise too_large(LARGEST_IMPORT)
    file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by whoever reads it
    read = 0
    async for part in request.stream():
        read += len(part)
        if read > LARGEST_IMPORT:
            file.close()
            raise too_large(LARGEST_IMPORT)
        await asyncio.to_thread(file.write, part)
    file.seek(0)
    return file


async def _lines(events: AsyncIterator[JsonObject], file: IO[bytes]) -> AsyncIterator[bytes]:
    try:
        async for event in events:
            yield json.dumps(event).encode() + b"\n"
    finally:
        file.close()
