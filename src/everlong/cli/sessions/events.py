"""`everlong sessions events` and `cost`: what happened to a session, and what it cost."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.sessions.options import SessionOptions, find_thread, session_command, session_store
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, table
from everlong.cli.terminal.text import one_line
from everlong.cli.words.wording import Words
from everlong.core import Event, EventKind, Json, starts
from everlong.engine import Saved, Spent, saved_on, spent_on
from everlong.llm import cache_folder, registry_now

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["COUNTED", "cost_command", "events_command", "print_cost"]

SHOWN = 40  # events
KINDS = tuple(kind.value for kind in EventKind)
#: The kinds of events from which cost and savings are computed.
COUNTED = (EventKind.USAGE_RECORDED, EventKind.CONTEXT_COMPRESSED, EventKind.CONTEXT_RESTORED)


@click.command(
    "events",
    cls=ExampleCommand,
    examples=(
        "everlong sessions events harbour",
        "everlong sessions events harbour --kind context.compressed --last 0",
    ),
)
@click.argument("session", metavar="ID")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS),
    metavar="KIND",
    help="Show only events of this kind; may be repeated (default: all).",
)
@click.option(
    "--last",
    default=SHOWN,
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show the last N events; 0 shows all (default: {SHOWN}).",
)
@session_command
def events_command(options: SessionOptions, session: str, kinds: Sequence[str], last: int) -> None:
    """Show the turns, compactions, summaries, overflows and model calls of the session ID, oldest first."""
    with session_store(options.url) as store:
        thread = find_thread(store, session)
        recorded = store.events(thread.id, kinds=kinds)
        unfinished = {event.id for event in store.unfinished(thread.id)}
    shown = recorded[-last:] if last else recorded
    if options.json:
        print_json([_event_json(event, event.id in unfinished) for event in shown])
        return
    if not shown:
        click.echo(options.say("no_events"))
        return
    out = console()
    if len(shown) < len(recorded):
        out.print(options.say.many("events_earlier", len(recorded) - len(shown)), style="dim italic")
    for event in shown:
        note = options.say("unfinished") if event.id in unfinished else ""
        _draw(event, note, options.say)


def _event_json(event: Event, unfinished: bool) -> dict[str, object]:
    """Return an event as JSON; for a start, also whether it finished."""
    ended = {"finished": not unfinished} if starts(event.kind) else {}
    return asdict(event) | {"kind": event.kind.value, "data": _data(event)} | ended


def _data(event: Event) -> Json:
    """Return the data of an event; text that is not JSON stays text."""
    try:
        return json.loads(event.data) if event.data else None
    except ValueError:
        return event.data


def _draw(event: Event, note: str, say: Words) -> None:
    from rich.text import Text  # noqa: PLC0415 - only where it is seen

    line = Text(event.time.astimezone().strftime("%Y-%m-%d %H:%M:%S  "), style="dim")
    line.append(f"{event.kind.value:<20}", style="not dim cyan")
    line.append("  " + " · ".join(filter(None, (*_facts(event, say), note))), style="not dim")
    console().print(line, soft_wrap=True)


def _facts(event: Event, say: Words) -> list[str]:
    before, after = event.tokens_before, event.tokens_after
    facts = [one_line(event.model)]
    compacted = _data(event)
    if isinstance(compacted, dict) and isinstance(compacted.get("messages"), int):
        facts.append(say.many("messages", int(str(compacted["messages"]))))
    elif event.messages_before is not None and event.messages_after is not None:
        facts.append(say("messages_changed", before=amount(event.messages_before), after=amount(event.messages_after)))
    if before is not None and after is not None:
        if event.kind is EventKind.USAGE_RECORDED:
            facts.append(say("tokens_used", prompt=amount(before), output=amount(after)))
        else:
            facts.append(say("tokens", before=amount(before), after=amount(after)))
    if event.cost is not None:
        facts.append(f"${_dollars(event.cost)}")
    facts.append(one_line(event.reason))
    return facts


@click.command(
    "cost",
    cls=ExampleCommand,
    examples=(
        "everlong sessions cost",
        "everlong sessions cost harbour --json",
    ),
)
@click.argument("session", metavar="[ID]", required=False)
@click.option("--owner", default=None, metavar="NAME", help="Count only the sessions of this owner.")
@session_command
def cost_command(options: SessionOptions, session: str | None, owner: str | None) -> None:
    """Show model calls, tokens and US dollars by model: of the session ID, or of all sessions."""
    if session is not None and owner is not None:
        raise click.UsageError("name a session ID or an --owner, not both")
    with session_store(options.url) as store:
        threads = [find_thread(store, session)] if session is not None else store.threads(owner=owner, archived=None)
        counted = [store.events(thread.id, kinds=COUNTED) for thread in threads]
    spent = spent_on(event for events in counted for event in events)
    registry = registry_now(cache_folder(os.environ))
    saved = [row for events in counted for row in saved_on(events, registry)]
    if options.json:
        models = [asdict(model) for model in spent]
        kept_out = {"requests": sum(row.requests for row in saved), "tokens": sum(row.tokens for row in saved)}
        total = asdict(_total(spent)) | {"model": None}
        print_json({"sessions": len(threads), "models": models, "total": total, "saved": kept_out})
    elif not spent:
        click.echo(options.say("no_cost"))
    else:
        print_cost(console(), spent, saved, options.say)


def _total(spent: Sequence[Spent]) -> Spent:
    total = Spent("")
    for model in spent:
        figures = {name: getattr(total, name) + getattr(model, name) for name in asdict(total) if name != "model"}
        total = replace(total, **figures)
    return total


def print_cost(out: "Console", spent: Sequence[Spent], saved: Sequence[Saved], say: Words) -> None:
    """Print calls, tokens and dollars by model, the share of summaries, and what compaction saved."""

    total = _total(spent)
    rows = [(one_line(model.model) or say("unnamed"), *_figures(model)) for model in spent]
    if len(spent) > 1:
        rows.append((say("total"), *_figures(total)))
    heads = ("head_model", "head_calls", "head_prompt", "head_cached", "head_output", "head_cost")
    out.print(table([say(head) for head in heads], rows))
    if total.summary_calls:
        out.print(say.many("for_summaries", total.summary_calls, cost=_dollars(total.summary_cost)), style="dim")
    if total.unpriced:
        out.print(say.many("unpriced", total.unpriced), style="dim")
    if any(row.requests for row in saved):
        out.print(_saved_line(saved, say), style="dim")


def _saved_line(saved: Sequence[Saved], say: Words) -> str:
    """Return what compaction saved in tokens, and in dollars if prices are known."""
    dollars = sum(row.dollars for row in saved)
    line = say.many("saved", sum(row.requests for row in saved), tokens=amount(sum(row.tokens for row in saved)))
    return f"{line}{say('saved_dollars', dollars=_dollars(dollars))}" if dollars else line


def _figures(spent: Spent) -> tuple[str, ...]:
    counted = (spent.calls, spent.prompt, spent.cached, spent.output)
    return (*map(amount, counted), _dollars(spent.cost) if spent.unpriced < spent.calls else "–")


def _dollars(cost: float) -> str:
    """Return dollars with enough digits. Example: 0.00123 -> 0.0012, 12.5 -> 12.50"""
    return f"{cost:.2f}" if abs(cost) >= 1 else f"{cost:.4f}"
