"""`everlong models`: windows, output limits and prices, each with its source; what a window costs and keeps."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime

import click

from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, pairs, table
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.engine import DEFAULT_SETTINGS, outlook_of
from everlong.errors import InputError
from everlong.extras import expect_extras
from everlong.llm import cache_folder, last_try, registry_now
from everlong.windows import Entry, Registry, Window, window

__all__ = ["run"]

LISTED = 40  # rows shown of a long list
CONFLICTS = 6  # other figures shown for a model


def run(  # noqa: PLR0913 - one parameter an option
    name: str | None, provider: str, text: str, everything: bool, fetch: bool, as_json: bool, language: Language
) -> None:
    """Print what the registry has about a model, or the matching entries."""
    say = Words(language, "models")
    if fetch:
        console(stderr=True).print(_refresh(say), style="dim")
    registry = registry_now(cache_folder(os.environ))
    if name is not None:
        found = window(name, provider=provider, registry=registry)
        if not found.known:
            click.echo(_with_near(("unknown", "unknown_near"), registry.meant(name), say, name=repr(name)), err=True)
        _print_window(found, say, as_json=as_json)
    else:
        wanted = text or provider
        entries = registry.find(wanted)
        if not entries:
            keys = ("nothing_found", "nothing_found_near")
            raise InputError(_with_near(keys, registry.meant(wanted), say, text=repr(wanted)))
        _print_list(entries, say, everything=everything, as_json=as_json)
    if not as_json:
        console().print(_ages(registry, datetime.now(UTC), say), style="dim")


def _with_near(keys: tuple[str, str], meant: str, say: Words, **values: str) -> str:
    """Return the first text, or the second one with the most similar name if there is one."""
    return say(keys[1], meant=meant, **values) if meant else say(keys[0], **values)


def _refresh(say: Words) -> str:
    """Download a table now and return what was done. Raises InputError if none could be downloaded."""
    import asyncio  # noqa: PLC0415 - 30 ms that only a fetch pays

    expect_extras("downloading tables", "llm")
    from everlong.llm import RefreshSettings, refresh  # noqa: PLC0415 - an extra that reading tables does not need

    if RefreshSettings.from_environment(os.environ).offline:
        raise InputError(say("offline"))
    done = asyncio.run(refresh(None, cache_folder(os.environ), now=datetime.now(UTC)))
    if not done.table:
        raise InputError(done.said)
    return done.said


def _ages(registry: Registry, now: datetime, say: Words) -> str:
    """Return the sources of the figures and their age.

    Example: "Tables: models.dev of 2026-07-02 (136 days old), litellm of 2026-11-09 (6 days old); never refreshed"
    """
    newest: dict[str, str] = {}
    for name, day in registry.snapshots:
        newest[name] = max(day, newest.get(name, ""))
    tables = (
        say("table_of", name=name, date=day, age=_age(day, now, say))
        for name, day in sorted(newest.items(), reverse=True)
    )
    tried = last_try(cache_folder(os.environ))
    if tried.at is None:
        last = say("never_refreshed")
    else:
        last = say("refresh_failed" if tried.failure else "refreshed", date=tried.at.date().isoformat())
    return say("tables", list=say("list_comma").join(tables), refresh=last)


def _age(day: str, now: datetime, say: Words) -> str:
    days = max(0, (now.date() - date.fromisoformat(day)).days)
    return say("today") if days == 0 else say.many("days_old", days)


def _print_window(found: Window, say: Words, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
        return
    out, size = console(), amount(found.context)
    source = say("from_table", n=size, table=found.table, date=found.date) if found.known else say("assumed", n=size)
    rows = [(say("row_window"), source)]
    if found.prompt != found.context:
        rows.append((say("row_prompt"), amount(found.prompt)))
    if found.matched:
        rows.append((say("row_matched"), f"{found.provider}/{found.matched}"))
    rows.append((say("row_output"), say("no_figure") if found.output is None else amount(found.output)))
    prices = asdict(found.prices).items()
    rows += [(say(f"price_{kind}"), f"{price:g}") for kind, price in prices if price is not None]
    expected = outlook_of(DEFAULT_SETTINGS, found)
    if expected is not None:
        cost, kept = map(str, expected.percents)
        threshold = say("row_threshold", share=f"{100 * DEFAULT_SETTINGS.threshold_share:.0f}")
        rows.append((threshold, say("outlook", cost=cost, kept=kept)))
    out.print(found.model, style="bold")
    out.print(pairs(rows))
    if expected is not None:
        out.print(say("outlook_measured"), style="dim")
    if found.conflicts:
        claims = say("list_comma").join(f"{who} {amount(tokens)}" for who, tokens in found.conflicts[:CONFLICTS])
        more = " …" if len(found.conflicts) > CONFLICTS else ""
        out.print(say("others_say", list=claims) + more, style="dim")


def _print_list(entries: Sequence[Entry], say: Words, *, everything: bool, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "provider": entry.provider,
                "id": entry.id,
                "context": entry.window,
                "output": entry.output,
                "prices": asdict(entry.prices),
                "source": entry.origin,
                "date": entry.date,
            }
            for entry in entries
        ]
        print_json(rows)
        return
    shown = entries if everything else entries[:LISTED]
    out = console()
    lines = (
        (
            f"{entry.provider}/{entry.id}",
            amount(entry.window),
            amount(entry.output) if entry.output else "–",
            f"{entry.origin} {entry.date}",
        )
        for entry in shown
    )
    out.print(table([say(f"column_{name}") for name in ("model", "window", "output", "source")], lines))
    if len(shown) < len(entries):
        out.print(say("more_models", n=amount(len(entries) - len(shown))), style="dim")
