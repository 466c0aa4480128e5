"""The body of a success, read as what it is: a stream of events, a whole answer, or an error after all.

The content type is not asked: servers that answer whole, or with a page, often name the type of a stream.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator

from everlong.core import Json
from everlong.errors import ProviderError
from everlong.wire import BYTE_ORDER_MARK, Events, Reply, ReplyReader, as_error, classify

__all__ = ["replies_in"]

LARGEST_ANSWER = 64 * 1024 * 1024  # bytes of an answer that is not streamed
START = 4_096  # bytes that are kept of a body that is neither
#: What JSON and pages begin with, and no stream of events.
WHOLE = (b"{", b"[", b"<")


async def replies_in(chunks: AsyncIterator[bytes], answer: ReplyReader) -> AsyncGenerator[Reply, None]:
    """The pieces of an answer. Raises ProviderError for an error, and where the end is missing."""
    events, start, body, seen = Events(), b"", bytearray(), False
    async for chunk in chunks:
        if len(start) < START and not seen:
            start = (start + chunk).removeprefix(BYTE_ORDER_MARK).lstrip()[:START]
        if start.startswith(WHOLE) and not seen:
            body += chunk
            if len(body) > LARGEST_ANSWER:
                raise ProviderError(f"the answer has more than {LARGEST_ANSWER:,} bytes")
            continue
        for event in events.feed(chunk):
            seen = True
            for reply in _taken(answer, event):
                yield reply
    for last in [*_whole(bytes(body)), *events.close()]:
        seen = True
        for reply in _taken(answer, last):
            yield reply
    if not answer.complete and not events.done:
        raise _no_answer(start, seen=seen)


def _whole(body: bytes) -> Iterator[Json]:
    """The objects of a body that is JSON; nothing of one that is not."""
    try:
        raw = json.loads(body.decode("utf-8-sig", "replace")) if body else []
    except (ValueError, RecursionError):
        return
    yield from raw if isinstance(raw, list) else [raw]


def _taken(answer: ReplyReader, event: Json) -> list[Reply]:
    if not isinstance(event, dict):
        return []
    if event.get("error") or "error" in (event.get("object"), event.get("type")):
        raise as_error(classify(event))
    return answer.take(event)


def _no_answer(start: bytes, *, seen: bool) -> ProviderError:
    if start and (not seen or start.startswith(WHOLE)):
        return as_error(classify(start.decode("utf-8", "replace")))
    return ProviderError("the stream broke off before its end")
