"""Requests that ask their provider to compact the conversation: what they mean, and the answer if we compact it."""

from collections.abc import Sequence
from dataclasses import replace
from time import time
from typing import cast

from everlong.core import JsonObject
from everlong.gateway.exchange.response import Headers, ResponseWriter
from everlong.gateway.request import ModelRequest, Piece, decoded, encoded
from everlong.wire import Compaction, sse_bytes

__all__ = ["as_the_model_reads", "asks_for_compaction", "send_compacted", "without_asking"]

JSON_TYPE = (b"content-type", b"application/json")
EVENTS_TYPE = (b"content-type", b"text/event-stream")


def as_the_model_reads(request: ModelRequest, *, managed: bool) -> ModelRequest:
    """Return the request with its messages from the last compaction on; everything before it is dropped.

    If the request is not `managed`, only a compaction that nobody else can read, because we wrote it, is read.
    """
    compaction = request.format.server.compaction
    if compaction is None or not (managed or compaction.ours) or compaction.sign not in request.body:
        return request
    messages = _objects(request.messages)
    if messages is None:
        return request
    read = compaction.read(messages)
    return request if read is messages else request.with_messages([encoded(message) for message in read])


def without_asking(request: ModelRequest) -> ModelRequest:
    """Return the request without the fields that ask the provider to compact."""
    compaction = request.format.server.compaction
    asked = (
        {} if compaction is None else {name: left for name, left in compaction.fields.items() if name in request.fields}
    )
    for name, left in asked.items():
        value = request.value(name)
        rest = left(value)
        if rest is None and value is not None:
            fields = {each: raw for each, raw in request.fields.items() if each != name}
            request = replace(request, fields=fields, original=b"")
        elif rest != value:
            request = request.with_fields({name: encoded(rest)})
    return request


def asks_for_compaction(request: ModelRequest) -> bool:
    """Whether the request asks for its compacted conversation, not for an answer."""
    if request.address.surface.compacts:
        return True
    compaction = request.format.server.compaction
    if compaction is None or not compaction.trigger or not request.messages:
        return False
    last = bytes(request.messages[-1])
    value = decoded(last) if compaction.trigger.encode() in last else None
    return isinstance(value, dict) and value.get("type") == compaction.trigger


async def send_compacted(
    writer: ResponseWriter, request: ModelRequest, asked: Sequence[Piece], body: bytes, headers: Headers
) -> None:
    """Send the compacted conversation from a body, in the shape that the client asked for.

    `asked` are the messages as the client sent them: some of them are sent back.
    """
    compaction = cast(Compaction, request.format.server.compaction)
    assert compaction.sealed is not None, "a format whose clients ask for compactions"
    assert compaction.answer is not None
    assert compaction.response is not None
    assert compaction.events is not None
    written = cast(JsonObject, decoded(body))
    items = cast("list[JsonObject]", written[request.format.api.messages])
    source = _objects([*asked, *request.messages]) or ()
    answer = compaction.answer(compaction.sealed(items, source), request.model, int(time()))
    if request.address.surface.compacts:
        await writer.send_whole(200, [JSON_TYPE, *headers], encoded(answer))
        return
    response = compaction.response(answer)
    if not request.stream:
        await writer.send_whole(200, [JSON_TYPE, *headers], encoded(response))
        return
    if not writer.begun:
        await writer.begin(200, [EVENTS_TYPE, *headers])
    for name, event in compaction.events(response):
        await writer.write(sse_bytes(name, encoded(event).decode()))
    await writer.end()


def _objects(pieces: Sequence[Piece]) -> list[JsonObject] | None:
    values = [decoded(piece) for piece in pieces]
    return cast("list[JsonObject]", values) if all(isinstance(value, dict) for value in values) else None
