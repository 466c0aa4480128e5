"""The body that is forwarded: the client's own, with other messages only where the engine's view differs.

An unchanged message is the client's own, with its cache marks; a changed or added message is written by the wire
format. Both are in canonical form: a process that reads a compaction from the store sends the same bytes as the process
that made it. Every other field stays byte for byte. If a client sets no cache marks, they are added in the few places
that are worth one. If a client sets marks itself, it gets no others. They stay where it set them, by position, because
equal messages are one object here, and no more of them than the provider accepts.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import cast

from everlong.core import History, Json, JsonObject, Message, Role, positions_of
from everlong.engine import Prepared, breakpoints
from everlong.gateway.chains.continuation import Continuation
from everlong.gateway.conversations.canonical import Unit, in_one_form
from everlong.gateway.conversations.conversation import Conversation, Transcript
from everlong.gateway.conversations.sketches import Sketched
from everlong.gateway.request import ModelRequest, Piece, decoded, encoded, pieces_of_list, pieces_of_object
from everlong.wire import CacheMarks

__all__ = [
    "forwarded_body",
    "keeps_marks",
    "marked_front",
    "marked_members",
    "marks_itself",
    "past_the_head",
    "rendered",
    "sketched_body",
    "torn_runs",
    "wants_marks",
]

UNCERTAIN = 16  # this many tokens of a prompt, plus one in this many, may be counted wrongly
SYSTEM_ROLE = b'"system"'


def wants_marks(request: ModelRequest, transcript: Transcript) -> bool:
    """Whether the format has cache marks and the client has set none."""
    marks = request.format.marks
    if marks is None or marks.field in request.fields:
        return False
    front = any(_key(marks) in bytes(request.fields.get(name, b"")) for name in (request.format.api.system, "tools"))
    return not front and all(unit.sent is unit.plain for unit in (*transcript.leading, *transcript.units))


def marks_itself(request: ModelRequest) -> bool:
    """Whether the client may have set marks: a quick check before its messages are read."""
    marks = request.format.marks
    return marks is not None and _key(marks) in request.body


def _key(marks: CacheMarks) -> bytes:
    """The name of a mark as written in JSON; inside a text its quotes would be escaped."""
    return b'"%s"' % marks.field.encode()


def marked_front(marks: CacheMarks, field: str, fields: Mapping[str, Piece], seconds: float) -> dict[str, bytes]:
    """Return the field before the messages with a mark at its end: the system text (in `field`), else the tools."""
    system = bytes(fields.get(field, b"")).strip()
    if system[:1] == b'"' and marks.may_bear({"type": "text", "text": decoded(system)}):
        system = b'[{"type":"text","text":%s}]' % system
    mark = marks.mark(seconds)
    marked = _list_marked(marks, system, mark)
    if marked is not None:
        return {field: marked}
    tools = _list_marked(marks, bytes(fields.get("tools", b"")).strip(), mark, tools=True)
    return {} if tools is None else {"tools": tools}


def marked_members(marks: CacheMarks, members: Sequence[bytes], places: Sequence[int], seconds: float) -> list[bytes]:
    """Return the messages with marks at these places, or at the nearest earlier message that may have one."""
    marked, mark = list(members), marks.mark(seconds)
    for place in places:
        for at in range(place, -1, -1):
            borne = marked[at] is not members[at] or _member_marked(marks, members[at], mark)
            if isinstance(borne, bytes):
                marked[at] = borne
            if borne:
                break
    return marked


def _member_marked(marks: CacheMarks, member: bytes, mark: JsonObject) -> bytes | None:
    fields = dict(pieces_of_object(member))
    if bytes(fields.get("role", b"")) == SYSTEM_ROLE:
        return None
    content = _list_marked(marks, bytes(fields.get("content", b"")), mark)
    if content is None:
        return None
    fields["content"] = content
    return b"{" + b",".join(encoded(name) + b":" + raw for name, raw in fields.items()) + b"}"


def _list_marked(marks: CacheMarks, raw: bytes, mark: JsonObject, *, tools: bool = False) -> bytes | None:
    """Return the list with a mark on the last member that may have one; None if no member may."""
    if raw[:1] != b"[":
        return None
    bears = marks.tool_may_bear if tools else marks.may_bear
    members = [bytes(piece) for piece in pieces_of_list(raw, "content")]
    last = next((at for at in range(len(members) - 1, -1, -1) if bears(decoded(members[at]))), None)
    if last is None:
        return None
    # The mark goes first, where sorting would put it, and no other byte changes.
    members[last] = b"{%s:%s,%s" % (_key(marks), encoded(mark), members[last].lstrip()[1:])
    return b"[" + b",".join(members) + b"]"


def forwarded_body(
    request: ModelRequest,
    transcript: Transcript,
    conversation: Conversation,
    prepared: Prepared,
    continuation: Continuation | None = None,
) -> bytes:
    """Return the body to send for a prepared request, without what its provider stores."""
    view = prepared.request.messages
    in_field = len(transcript.head) - sum(len(unit.messages) for unit in transcript.leading)
    messages, others = past_the_head(request, view, conversation.opening[:in_field])
    own = _own(messages, transcript, conversation)
    members = list(_members(request, messages, own))
    sent = [member for member, _ in members]
    caching, marks = prepared.request.caching, request.format.marks
    if caching is not None and marks is not None and wants_marks(request, transcript):
        others |= marked_front(marks, request.format.api.system, {**request.fields, **others}, caching.seconds)
        head = len(view) - len(messages)
        ends = [head + until for _, until in members]
        counts = breakpoints(prepared.request) if _likely_continues(request, messages) else ()
        sent = marked_members(marks, sent, [bisect_right(ends, count) - 1 for count in counts], caching.seconds)
    elif marks is not None:
        sent = _with_clients_marks(marks, members, own, marks.most - _marks_in_front(marks, request, others))
    if continuation is not None:
        sent, named = continuation.narrowed(request, transcript, conversation, messages, members)
        others |= named
    return request.written(sent, others | request.changed(_settings(request, prepared)))


def keeps_marks(request: ModelRequest, sketched: Sketched) -> bool:
    """Whether the client's cache marks stay unchanged: it has set none, or no more than the provider accepts."""
    marks = request.format.marks
    found = 0 if marks is None else request.body.count(_key(marks))
    if marks is None or not found:
        return True
    front = any(_key(marks) in bytes(request.fields.get(name, b"")) for name in (request.format.api.system, "tools"))
    return found <= marks.most and (sketched.marked or front or marks.field in request.fields)


def sketched_body(request: ModelRequest, sketched: Sketched, prepared: Prepared) -> bytes:
    """Return the body of a request that is sent in full: the same bytes as `forwarded_body` would return."""
    sent, others = sketched.messages, dict[str, bytes]()
    caching, marks = prepared.request.caching, request.format.marks
    if caching is not None and marks is not None and not marks_itself(request):
        others = marked_front(marks, request.format.api.system, request.fields, caching.seconds)
        places = sketched.places if request.tools or sketched.answered else []
        sent = marked_members(marks, [bytes(raw) for raw in sent], places, caching.seconds)
    return request.written(sent, others)


def _likely_continues(request: ModelRequest, messages: Sequence[Message]) -> bool:
    """Whether another request of this conversation is likely to follow.

    A mark adds a quarter to the price of what it covers, and saves more than that whole price in the next request, so
    it pays if more than 22 of 100 requests are followed by another. A single question without tools may be the last
    one.
    """
    return bool(request.tools) or any(message.role is Role.ASSISTANT for message in messages)


def _own(view: Sequence[Message], transcript: Transcript, conversation: Conversation) -> list[Unit | None]:
    """Return the client's unit for each message of the view; None for a message that was changed or added."""
    at = len(conversation.opening) - sum(len(unit.messages) for unit in transcript.leading)
    said = [
        *zip(conversation.opening[at:], transcript.leading, strict=False),
        *((one[0], unit) for one, unit in zip(conversation.messages, transcript.units, strict=False) if len(one) == 1),
    ]
    # Equal messages of a client are the same object.
    found = positions_of(view, [message for message, _ in said], key=id)
    # A message that was moved is sent without its marks.
    units = [None if place is None else said[place.at][1] for place in found]
    return [
        _unmarked(unit) if unit and place and place.moved else unit for unit, place in zip(units, found, strict=True)
    ]


def _unmarked(unit: Unit) -> Unit:
    return replace(unit, sent=unit.plain)


def _with_clients_marks(
    marks: CacheMarks, members: Sequence[tuple[bytes, int]], own: Sequence[Unit | None], room: int
) -> list[bytes]:
    """The messages with the client's marks, at most `room` of them; the last ones stay.

    A message that was written again, because the provider wants it joined with its neighbours, gets its mark back.
    """
    sent, ends = [member for member, _ in members], [until for _, until in members]
    for count in range(len(own), 0, -1):
        unit = own[count - 1]
        if unit is None or unit.sent is unit.plain:
            continue
        at, key = bisect_left(ends, count), _key(marks) + b":"
        borne = unit.sent.count(key) - unit.plain.count(key)
        if sent[at] is unit.sent:
            sent[at] = unit.sent if borne <= room else unit.plain
        elif sent[at] is members[at][0] and room > 0:
            sent[at], borne = _member_marked(marks, sent[at], _last_mark(marks, unit)) or sent[at], 1
        room -= 0 if sent[at] is unit.plain else borne
    return sent


def _last_mark(marks: CacheMarks, unit: Unit) -> JsonObject:
    content = cast(JsonObject, decoded(unit.sent)).get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    found = (mark for block in reversed(blocks) if isinstance(mark := block.get(marks.field), dict))
    return next(found, None) or marks.mark(0)


def _marks_in_front(marks: CacheMarks, request: ModelRequest, others: Mapping[str, bytes]) -> int:
    """How many marks the system text, the tools and the request itself have."""
    names = (request.format.api.system, "tools", marks.field)
    raw = {name: piece for name in names if (piece := others.get(name, request.fields.get(name))) is not None}
    if not any(_key(marks) in bytes(piece) for piece in raw.values()) and marks.field not in raw:
        return 0
    front = {name: decoded(piece) for name, piece in raw.items()}
    key = _key(marks) + b":"
    return encoded(front).count(key) - encoded(marks.remove(front)).count(key)


def past_the_head(request: ModelRequest, view: History, head: History) -> tuple[History, dict[str, bytes]]:
    """Return the view without system text from the separate field, and that field if its text has changed."""
    if not request.format.api.system:
        return view, {}
    untouched = len(view) >= len(head) and all(view[at] is message for at, message in enumerate(head))
    after = len(head) if untouched else 0
    end = after
    # System text in the head's place is the head, repaired. Later system text also belongs to it, unless it comes from
    # the client's list.
    while end < len(view) and view[end].role is Role.SYSTEM and (end < len(head) or view[end].origin != request.fmt):
        end += 1
    if untouched and end == after:
        return view[after:], {}
    written = request.format.write_history(view[:end])
    return view[end:], {request.format.api.system: encoded(written.get(request.format.api.system))}


def _members(request: ModelRequest, view: Sequence[Message], own: Sequence[Unit | None]) -> Iterator[tuple[bytes, int]]:
    """Yield the objects to send, each with its end position in the view."""
    ours: list[Message] = []
    torn = {at for start, stop in torn_runs(request, view) for at in range(start, stop)}
    for count, (message, unit) in enumerate(zip(view, own, strict=True)):
        if unit is None or count in torn:
            ours.append(message)
            continue
        if ours:
            yield from rendered(request, ours, count - len(ours))
            ours = []
        yield unit.sent, count + 1
    if ours:
        yield from rendered(request, ours, len(view) - len(ours))


def torn_runs(request: ModelRequest, view: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each run of messages that the provider wants as one.

    The reason is their calls or results, or an empty message. These are written again; neighbours with only text stay
    as the client sent them, unless turns must alternate.
    """
    rules, start = request.format.rules, 0
    if not rules.voices and not rules.joined:
        return
    for voice, run in groupby(view, key=lambda message: rules.voices.get(message.role, message.role)):
        members = list(run)
        if len(members) > 1 and (rules.voices or (voice in rules.joined and not all(map(_stands_alone, members)))):
            yield start, start + len(members)
        start += len(members)


def _stands_alone(message: Message) -> bool:
    return not message.calls and not message.results and bool(message.text.strip())


def rendered(request: ModelRequest, messages: Sequence[Message], before: int) -> Iterator[tuple[bytes, int]]:
    """Yield the messages of a run as they are sent, each with its end position in the view.

    Leading system text is written into the list, because it is not at the beginning of the conversation.
    """
    while messages and messages[0].role is Role.SYSTEM:
        before += 1
        for member in request.format.write_message(messages[0]):
            yield encoded(in_one_form(request.format, member)), before
        messages = messages[1:]
    if not messages:
        return
    marks = request.format.marks
    if marks is not None:
        body, ends = marks.write_history(messages)
    else:  # without cache marks, nobody needs the end positions
        body, ends = request.format.write_history(tuple(messages)), []
    members = cast("list[JsonObject]", body[request.format.api.messages])
    for member, end in zip(members, ends or [len(messages)] * len(members), strict=True):
        yield encoded(in_one_form(request.format, member)), before + end


def _settings(request: ModelRequest, prepared: Prepared) -> dict[str, Json]:
    """Settings that differ from the client's: the limit of the answer, and the window if requests set it."""
    allowed, api = prepared.request.max_tokens, request.format.api
    settings: dict[str, Json] = {}
    if allowed is not None and allowed != request.max_tokens and (request.max_tokens is not None or prepared.remedies):
        settings[request.length_field] = allowed
    if api.window:
        window = prepared.window.context
        # Request the window that was used for counting. An answer beyond its end would push out the beginning.
        settings[api.window] = max(window, prepared.call.asked or 0)
        if request.max_tokens is None:
            kept = prepared.tokens // UNCERTAIN + UNCERTAIN
            settings[request.length_field] = max(1, window - prepared.tokens - kept)
        settings |= {name: value for name, value in api.uncut.items() if name not in request.fields}
    return settings
