"""What the tools answer: short plain text for a model, without the secrets in sessions."""

from collections.abc import Iterator
from datetime import datetime

from everlong.cli.mcp.shelf import Listed, Shelf
from everlong.cli.terminal.text import one_line
from everlong.core import Hit, Image, Message, Opaque, Point, Recalled, Row, Text, ToolCall, ToolResult
from everlong.engine import Engine, call_title, counter_for, map_tokens
from everlong.errors import InputError
from everlong.summarize import redacted

__all__ = ["list_text", "map_text", "recall_text", "search_text", "session_text"]

LONGEST = 40_000  # characters of an answer
LONGEST_MESSAGE = 6_000  # characters of one message that is read
EXCERPT = 600  # characters of a message that was found
TITLE = 100
MOST_LISTED, MOST_FOUND, MOST_READ = 100, 50, 200
HEAVIEST = 15
#: The model for counting if none is named; the shares are similar with others.
USUAL_MODEL = "gpt-4o"


def list_text(shelf: Shelf, program: str = "", limit: int = 20, skip: int = 0) -> str:
    """Return a line for each session: key, last change, messages, title."""
    _expect("limit", limit, 1, MOST_LISTED)
    _expect("skip", skip, 0)
    listed = shelf.sessions(program)
    shown = [shelf.described(one) for one in listed[skip : skip + limit]]
    lines = [_listed_line(one) for one in shown]
    rest = len(listed) - skip - len(shown)
    total = f"{len(listed)} session{'s' * (len(listed) != 1)}"
    lines.append(total + (f"; {rest} more with skip={skip + len(shown)}" if rest > 0 else ""))
    return _bounded("\n".join(lines))


def search_text(shelf: Shelf, query: str, session: str = "", program: str = "", limit: int = 10) -> str:
    """Return where something was said, best first: session, number of the message, an excerpt."""
    _expect("limit", limit, 1, MOST_FOUND)
    if not query.strip():
        raise InputError("query is empty: give a few words to look for")
    if session:
        store, thread = shelf.open(session)
        hits = [(session, hit) for hit in store.search(query, thread=thread.id, limit=limit)]
        looked = ""
    else:
        hits, some, every = shelf.search(query, program, limit)
        looked = f"searched the newest {some} of {every} sessions"
    found = [_hit_text(key, hit, EXCERPT) for key, hit in hits]
    return _bounded("\n\n".join((*(found or ["nothing found"]), *filter(None, [looked]))))


def recall_text(shelf: Shelf, session: str, what: str, limit: int = 5) -> str:
    """Return what a session says about something, word for word, or the original behind a reference."""
    _expect("limit", limit, 1, MOST_FOUND)
    store, thread = shelf.open(session)
    result = Engine(store).blocking.recall(thread.id, what, limit=limit)
    if result.original is not None:
        return _bounded(result.original.decode("utf-8", "replace"))
    rows = {row.order: row for hit in result.hits for row in (*hit.around, hit.row)}
    texts = [_row_text(rows[order], LONGEST_MESSAGE) for order in sorted(rows)]
    return _bounded("\n\n".join(filter(None, texts)) or f"found nothing about {what!r} in {session}")


def session_text(shelf: Shelf, session: str, start: int = 0, limit: int = 20) -> str:
    """Return the rows of a session from a number on, and how to read on."""
    _expect("limit", limit, 1, MOST_READ)
    _expect("start", start, 0)
    store, thread = shelf.open(session)
    head = f"{session} – {_title(thread.title)} – {thread.messages} messages, rows 0 to {max(0, thread.length - 1)}"
    texts, size, after = [head], len(head), start
    for row in store.read(thread.id, start, min(start + limit, thread.length)):
        text = _row_text(row, LONGEST_MESSAGE)
        if size + len(text) > LONGEST and after > start:
            break
        texts.append(text)
        size, after = size + len(text), row.order + 1
    if after < thread.length:
        texts.append(f"to read on: start={after}")
    return _bounded("\n\n".join(filter(None, texts)), LONGEST + LONGEST_MESSAGE)


def map_text(shelf: Shelf, session: str, model: str = "") -> str:
    """Return where the tokens of a session are: by kind, by role, by tool, and the heaviest messages."""
    store, thread = shelf.open(session)
    said = [(row.order, row.entry) for row in store.read(thread.id, 0) if isinstance(row.entry, Message)]
    weighed = map_tokens([message for _, message in said], counter_for(model or USUAL_MODEL))
    total = weighed.total or 1
    lines = [f"{session}: {weighed.total:,} tokens ({weighed.model}, {'exact' if weighed.exact else 'estimated'})"]
    lines += [f"{name}: {tokens:,} ({tokens / total:.0%})" for name, tokens in weighed.by_kind]
    lines += [f"{role.value}: {tokens:,} in {count} messages" for role, tokens, count in weighed.by_role]
    lines += [f"tool {one_line(tool.name)}: {tool.tokens:,} in {tool.calls} calls" for tool in weighed.by_tool]
    lines.append("largest messages:")
    for weight in weighed.heaviest[:HEAVIEST]:
        lines.append(f"  row {said[weight.index][0]}: {weight.tokens:,} {weight.role.value} {_title(weight.title)}")
    return _bounded("\n".join(lines))


# --- texts -----------------------------------------------------------------------------------------


def _listed_line(one: Listed) -> str:
    return f"{one.key}  {_when(one.changed)}  {one.messages} messages  {_title(one.title)}"


def _hit_text(key: str, hit: Hit, most: int) -> str:
    return f"{key}  {_row_text(hit.row, most)}"


def _row_text(row: Row, most: int) -> str:
    match row.entry:
        case Message() as message:
            text = "\n".join(filter(None, _part_texts(message)))
            return f"row {row.order}  {message.role.value}  {_when(message.time or row.time)}\n{_clipped(text, most)}"
        case Point() as point:
            summary = "\n".join(each.text for each in point.summary)
            return f"row {row.order}  compaction {_title(point.reason)}\n{_clipped(summary, most)}"
        case Recalled(_, message):
            return f"row {row.order}  recalled\n{_clipped(message.text, most)}"
        case _:
            return ""


def _part_texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        match part:
            case Text(text):
                yield text
            case ToolCall():
                yield f"→ {one_line(call_title(part))}"
            case ToolResult():
                yield f"{'failed: ' if part.failed else ''}{part.text}"
            case Image():
                yield "[picture]"
            case Opaque(kind):
                yield f"[{one_line(kind)}]"
            case _:
                pass  # thinking is not shown


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} more characters"


def _bounded(text: str, most: int = LONGEST) -> str:
    """The text without secrets, because it goes to another provider, and no longer than a model should read."""
    return redacted(_clipped(text, most))


def _title(text: str) -> str:
    return one_line(text)[:TITLE] or "(no title)"


def _when(time: datetime) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M")


def _expect(name: str, value: int, least: int, most: int | None = None) -> None:
    if value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"between {least} and {most}"
        raise InputError(f"{name} must be {limits}, not {value}")
