"""`everlong sessions list` and `search`: which sessions there are, and where something was said."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.sessions.options import (
    SessionOptions,
    find_thread,
    is_old_branch,
    session_command,
    session_store,
    store_exists,
    thread_json,
)
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, print_listing
from everlong.cli.terminal.text import one_line
from everlong.cli.words.wording import Words
from everlong.core import Hit, Message, Thread
from everlong.relevance import terms_of, words_of
from everlong.store import query_terms, texts_of
from everlong.wire import SESSION_PROGRAMS

__all__ = ["list_command", "search_command", "short_ids", "when"]

LISTED = 30
LONG_ID = 24  # characters, as in our own ids; longer ids are shortened to a unique beginning
SHORT_ID = 8
SHORTEST_TITLE = 16
EXCERPT = 220  # characters
LOOKED_AT = 200_000  # characters of a message that are searched for an excerpt
MOST_PLACES = 400  # places of query words in one message
SAYS_MUCH = 1.0  # weight of a term that is worth marking; single Chinese characters weigh less


@click.command(
    "list",
    cls=ExampleCommand,
    examples=(
        "everlong sessions list",
        "everlong sessions list --all --limit 0",
    ),
)
@click.option("--owner", default=None, metavar="NAME", help="List only the sessions of this owner.")
@click.option("--archived", is_flag=True, help="List only archived sessions.")
@click.option("--all", "everything", is_flag=True, help="List archived sessions as well.")
@click.option(
    "--limit",
    default=LISTED,
    type=click.IntRange(min=0),
    metavar="N",
    help=f"List at most N sessions; 0 lists all (default: {LISTED}).",
)
@session_command
def list_command(options: SessionOptions, owner: str | None, archived: bool, everything: bool, limit: int) -> None:
    """List the stored sessions, most recently changed first."""
    known: list[Thread] = []
    if store_exists(options.url) or not options.own:
        with session_store(options.url) as store:
            known = store.threads(archived=None)
    wanted = (True, False) if everything else (archived,)
    threads = [thread for thread in known if owner in (None, thread.owner) and thread.archived in wanted]
    if options.json:
        print_json([thread_json(thread) for thread in threads[: limit or None]])
        return
    if not threads:
        click.echo(options.say("none"))
        click.echo(options.say("none_hint", programs=options.say("list_comma").join(SESSION_PROGRAMS)), err=True)
        return
    _draw(threads, short_ids([thread.id for thread in known]), limit or len(threads), options.say)


def _draw(threads: Sequence[Thread], ids: Mapping[str, str], limit: int, say: Words) -> None:
    from rich.text import Text  # noqa: PLC0415 - only where it is seen

    out = console()
    shown = threads[:limit]
    owners = any(thread.owner for thread in shown)
    now = datetime.now(UTC)
    heads = [say("title"), say("head_messages"), say("head_points"), say("head_changed")]
    heads += [*([say("head_owner")] if owners else []), say("head_id")]
    rows = []
    for thread in shown:
        title = Text(one_line(thread.title) or say("untitled"), style="" if thread.title else "dim")
        if thread.archived:
            title = Text(f"{say('archived')}  ", style="dim").append_text(title)
        figures = (amount(thread.messages), amount(thread.standing) if thread.standing else "")
        more = (when(thread.updated, now, say), *([one_line(thread.owner)] if owners else []))
        rows.append((title, *map(Text, (*figures, *more)), Text(one_line(ids[thread.id]), style="cyan")))
    print_listing(out, heads, rows, title=0, left=int(owners))
    if len(shown) < len(threads):
        out.print(say.many("list_more", len(threads) - len(shown)), style="dim")


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Return each id of a store in its shortest unique form. Example: two UUIDs -> their first eight characters"""
    ordered = sorted(ids)
    shortened: dict[str, str] = {}
    for at, name in enumerate(ordered):
        after = (other for other in islice(ordered, at + 1, None) if not is_old_branch(other, name))
        neighbours = [*ordered[max(0, at - 1) : at], *islice(after, 1)]
        length = SHORT_ID
        while length < len(name) and any(other.startswith(name[:length]) for other in neighbours):
            length += 1
        shortened[name] = name if len(name) <= LONG_ID else name[:length]
    return shortened


def when(moment: datetime, now: datetime, say: Words) -> str:
    """Return how long ago a moment was, or its day if that is long ago. Example: 90 minutes -> "1 h ago" """
    minutes = int((now - moment).total_seconds() // 60)
    if minutes < 1:
        return say("now")
    for unit, length, most in (("minutes_ago", 1, 60), ("hours_ago", 60, 24), ("days_ago", 1_440, 7)):
        if minutes < length * most:
            return say.many(unit, minutes // length)
    return moment.astimezone().strftime("%Y-%m-%d")


@click.command(
    "search",
    cls=ExampleCommand,
    examples=(
        'everlong sessions search "delivery date"',
        "everlong sessions search 交货日期 --in harbour",
    ),
)
@click.argument("query")
@click.option("--in", "inside", metavar="ID", help="Search only this session.")
@click.option("--owner", default=None, metavar="NAME", help="Search only the sessions of this owner.")
@click.option(
    "--limit", default=10, type=click.IntRange(min=1), metavar="N", help="Show at most N messages (default: 10)."
)
@session_command
def search_command(options: SessionOptions, query: str, inside: str | None, owner: str | None, limit: int) -> None:
    """Search all messages for QUERY, in English or Chinese, also those that were compacted."""
    with session_store(options.url) as store:
        thread = None if inside is None else find_thread(store, inside).id
        hits = store.search(query, thread=thread, owner=owner, limit=limit)
        threads = {name: store.thread(name) for name in dict.fromkeys(hit.thread for hit in hits)}
    if options.json:
        print_json([_hit_json(hit, threads[hit.thread], query) for hit in hits])
        return
    if not hits:
        click.echo(options.say("not_found"))
        return
    for name, session in threads.items():
        _draw_hits([hit for hit in hits if hit.thread == name], session, query, options.say)
    console().print(options.say.many("found", len(hits)), style="dim")


def _hit_json(hit: Hit, thread: Thread, query: str) -> dict[str, object]:
    message = hit.row.entry
    return {
        "session": hit.thread,
        "title": thread.title,
        "order": hit.row.order,
        "id": hit.row.id,
        "role": message.role.value if isinstance(message, Message) else "",
        "time": _said_at(hit),
        "score": round(hit.score, 4),
        "excerpt": excerpt(message, query)[0] if isinstance(message, Message) else "",
    }


def _said_at(hit: Hit) -> datetime:
    message = hit.row.entry
    return message.time if isinstance(message, Message) and message.time else hit.row.time


def _draw_hits(hits: Sequence[Hit], thread: Thread, query: str, say: Words) -> None:
    from rich.padding import Padding  # noqa: PLC0415 - only where it is seen
    from rich.text import Text  # noqa: PLC0415

    out = console()
    name = one_line(thread.id)
    head = Text(one_line(thread.title) or say("untitled"), style="bold")
    head.truncate(max(SHORTEST_TITLE, out.width - len(name) - 2), overflow="ellipsis")
    out.print(head.append(f"  {name}", style="not bold cyan"), soft_wrap=True)
    for hit in hits:
        message = hit.row.entry
        if not isinstance(message, Message):
            continue
        text, marks = excerpt(message, query)
        line = Text(f"{hit.row.order:>5}  {say.name(message.role.value)}  ", style="dim")
        line.append(_said_at(hit).astimezone().strftime("%Y-%m-%d %H:%M"))
        out.print(Padding(line, (0, 0, 0, 1), expand=False))
        shown = Text(text)
        for start, stop in marks:
            shown.stylize("bold yellow", start, stop)
        out.print(Padding(shown, (0, 0, 0, 8), expand=False))
    out.print()


def excerpt(message: Message, query: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the best part of a message for a query, on one line, and the places of the query's words in it."""
    text = one_line("\n".join(texts_of(message))[:LOOKED_AT])
    places = _places(text, query)
    start = max(places, key=lambda place: (_worth(text, places, place[0]), -place[0]), default=(0, 0))[0]
    first = max(0, start - EXCERPT // 4)
    if first:
        space = text.find(" ", first, start)
        first = space + 1 if space >= 0 else first
    stop = min(len(text), first + EXCERPT)
    front = "…" if first else ""
    shown = front + text[first:stop] + ("…" if stop < len(text) else "")
    moved = len(front) - first
    return shown, [(a + moved, b + moved) for a, b in places if a >= first and b <= stop]


def _places(text: str, query: str) -> list[tuple[int, int]]:
    """Return the places of the query's words in the text, in any form."""
    terms = query_terms(query)
    telling = {term for term, weight in terms.items() if weight >= SAYS_MUCH} or set(terms)
    words = {word for word in words_of(text) if any(term in telling for term, _ in terms_of(word))}
    if not words:
        return []
    either = "|".join(_whole(word) for word in sorted(words, key=len, reverse=True))
    return [match.span() for match in islice(re.finditer(either, text), MOST_PLACES)]


def _whole(word: str) -> str:
    """Return a pattern for a whole word; in scripts without spaces, a word may be inside other text."""
    return rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])" if word.isascii() else re.escape(word)


def _worth(text: str, places: Sequence[tuple[int, int]], start: int) -> int:
    """Return how many different query words an excerpt from this place would contain."""
    return len({text[a:b].lower() for a, b in places if start <= a and b <= start + EXCERPT * 3 // 4})
