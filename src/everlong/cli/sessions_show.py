"""`everlong sessions show`: everything that was said, with the compactions marked where they take effect."""

import json
from collections.abc import Container, Sequence
from dataclasses import asdict
from typing import assert_never

import click

from everlong.cli.sessions_drawing import Shown, draw_session
from everlong.cli.sessions_options import (
    Setting,
    row_at,
    session_command,
    stored_in,
    the_thread,
    thread_json,
)
from everlong.cli.streams import print_json
from everlong.cli.terminal import console
from everlong.core import Message, Point, Recalled, Row, Thread, Withdrawal, encode
from everlong.engine import Threads
from everlong.errors import InputError

__all__ = ["show_command"]

SHOWN = 40  # messages


@click.command("show", short_help="Show a session, whatever was compacted.")
@click.argument("session", metavar="ID")
@click.option("--last", default=SHOWN, type=click.IntRange(min=0), help=f"The last so many messages, 0: all ({SHOWN}).")
@click.option("--before", metavar="POINT", help="As it was before this compaction: the number or id of a point.")
@click.option("--full", is_flag=True, help="Do not shorten long texts.")
@session_command
def show_command(setting: Setting, session: str, last: int, before: str | None, full: bool) -> None:
    """Show a session: every message is there, whatever was compacted. ID may be the beginning of an id."""
    with stored_in(setting) as store:
        thread = the_thread(store, session)
        stop = None if before is None else _point(store, thread, before)
        shown = _shown(store, thread, last, stop)
    if setting.json:
        print_json(_as_json(shown))
    else:
        draw_session(shown, console(), setting.say, full=full)


def _point(store: Threads, thread: Thread, name: str) -> int:
    """The order of the point that a person means."""
    row = row_at(store, thread, name)
    if not isinstance(row.entry, Point):
        points = ", ".join(str(point.order) for point, _ in store.points(thread.id))
        raise InputError(
            f"row {name} is no compaction; " + (f"there are points {points}" if points else "there is none")
        )
    return row.order


def _shown(store: Threads, thread: Thread, last: int, stop: int | None) -> Shown:
    pins = store.pins(thread.id)
    if stop is None:
        tail = store.last(thread.id, last) if last else []
        start = tail[0].order if tail and len(tail) < thread.messages else 0
        rows, points = tuple(store.read(thread.id, start)), tuple(store.points(thread.id))
        return Shown(thread, rows, thread.messages - _messages(rows), points, pins)
    rows = tuple(store.read(thread.id, 0, stop))
    withdrawn = {row.entry.point for row in rows if isinstance(row.entry, Withdrawal)}
    points = tuple((row, row.order not in withdrawn) for row in rows if isinstance(row.entry, Point))
    spoken = [at for at, row in enumerate(rows) if isinstance(row.entry, Message)]
    start = spoken[-last] if 0 < last < len(spoken) else 0
    pins = tuple(pin for pin in pins if pin.order is None or pin.order < stop)
    return Shown(thread, rows[start:], len(spoken) - _messages(rows[start:]), points, pins, stop)


def _messages(rows: Sequence[Row]) -> int:
    return sum(isinstance(row.entry, Message) for row in rows)


def _as_json(shown: Shown) -> dict[str, object]:
    standing = {row.order for row, stands in shown.points if stands}
    return thread_json(shown.thread) | {
        "before": shown.before,
        "earlier": shown.earlier,
        "pins": [asdict(pin) for pin in shown.pins],
        "rows": [_row_json(row, standing) for row in shown.rows],
    }


def _row_json(row: Row, standing: Container[int]) -> dict[str, object]:
    fields: dict[str, object] = {"order": row.order, "id": row.id, "appended": row.time}
    match row.entry:
        case Message() as message:
            return fields | {"kind": "message", "text": message.text, "message": json.loads(encode(message))}
        case Point() as point:
            said = {"summary": [json.loads(encode(one)) for one in point.summary], "stands": row.order in standing}
            figures = {"tokens_before": point.tokens_before, "tokens_after": point.tokens_after}
            return fields | {"kind": "point", "boundary": point.boundary, "reason": point.reason} | said | figures
        case Withdrawal(withdrawn):
            return fields | {"kind": "withdrawal", "point": withdrawn}
        case Recalled(before, message):
            return fields | {"kind": "recalled", "before": before, "message": json.loads(encode(message))}
        case _:
            assert_never(row.entry)
