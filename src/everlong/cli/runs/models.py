"""`everlong models`: windows, output limits and prices, each with its source; what a window costs and keeps."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime

import click

from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, pairs, table
from everlong.cli.words.english import ENGLISH
from everlong.cli.words.wording import Words
from everlong.engine import DEFAULT_SETTINGS, outlook_of
from everlong.errors import InputError
from everlong.extras import expect_extras
from everlong.llm import cache_folder, last_try, registry_now
from everlong.windows import Entry, Registry, Window, window

__all__ = ["run"]

LISTED = 40  # rows shown of a long list
say = Words(ENGLISH, "general")  # the command has no --lang yet


def run(name: str | None, provider: str, text: str, everything: bool, fetch: bool, as_json: bool) -> None:
    """Print what the registry has about a model, or the matching entries."""
    if fetch:
        console(stderr=True).print(_refresh(), style="dim")
    registry = registry_now(cache_folder(os.environ))
    if name is not None:
        found = window(name, provider=provider, registry=registry)
        if not found.known:
            click.echo(_unknown(name, registry), err=True)
        _print_window(found, as_json=as_json)
    else:
        entries = registry.find(text or provider)
        if not entries:
            meant = registry.meant(text or provider)
            hint = f"; did you mean {meant}?" if meant else ""
            raise InputError(f"no model or provider contains {text or provider!r}{hint}")
        _print_list(entries, everything=everything, as_json=as_json)
    if not as_json:
        console().print(_ages(registry, datetime.now(UTC)), style="dim")


def _unknown(name: str, registry: Registry) -> str:
    meant = registry.meant(name)
    return f"the registry has no model {name!r}" + (f"; did you mean {meant}?" if meant else "")


def _refresh() -> str:
    """Download a table now and return what was done. Raises InputError if none could be downloaded."""
    import asyncio  # noqa: PLC0415 - 30 ms that only a fetch pays

    expect_extras("downloading tables", "llm")
    from everlong.llm import RefreshSettings, refresh  # noqa: PLC0415 - an extra that reading tables does not need

    if RefreshSettings.from_environment(os.environ).offline:
        raise InputError("EVERLONG_OFFLINE is set: unset it to download the tables")
    done = asyncio.run(refresh(None, cache_folder(os.environ), now=datetime.now(UTC)))
    if not done.table:
        raise InputError(done.said)
    return done.said


def _ages(registry: Registry, now: datetime) -> str:
    """Return the sources of the figures and their age.

    Example: "Tables: models.dev of 2026-07-02 (136 days old), litellm of 2026-11-09 (6 days old); never refreshed"
    """
    newest: dict[str, str] = {}
    for name, day in registry.snapshots:
        newest[name] = max(day, newest.get(name, ""))
    tables = [f"{name} of {day} ({_days_old(day, now)})" for name, day in sorted(newest.items(), reverse=True)]
    tried = last_try(cache_folder(os.environ))
    if tried.at is None:
        last = "never refreshed (--refresh downloads newer ones)"
    elif tried.failure:
        last = f"the refresh on {tried.at.date().isoformat()} failed (--refresh tries again)"
    else:
        last = f"refreshed on {tried.at.date().isoformat()}"
    return f"Tables: {', '.join(tables)}; {last}"


def _days_old(day: str, now: datetime) -> str:
    days = max(0, (now.date() - date.fromisoformat(day)).days)
    return "today" if days == 0 else f"{amount(days)} day{'s' * (days > 1)} old"


def _print_window(found: Window, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
        return
    out = console()
    source = f"{found.source}, {found.table} of {found.date}" if found.date else found.source
    rows = [("window", f"{amount(found.context)} ({source})")]
    if not found.known:
        rows = [("window", f"{amount(found.context)} (assumed: the registry does not have this model)")]
    if found.prompt != found.context:
        rows.append(("largest prompt", amount(found.prompt)))
    if found.matched:
        rows.append(("matched", f"{found.provider}/{found.matched}"))
    rows.append(("output limit", "unknown" if found.output is None else amount(found.output)))
    rows += [
        (f"{kind.replace('_', ' ')}, $ per million", f"{price:g}")
        for kind, price in asdict(found.prices).items()
        if price is not None
    ]
    expected = outlook_of(DEFAULT_SETTINGS, found)
    if expected is not None:
        cost, kept = map(str, expected.percents)
        rows.append((f"threshold {100 * DEFAULT_SETTINGS.threshold_share:.0f} %", say("outlook", cost=cost, kept=kept)))
    out.print(found.model, style="bold")
    out.print(pairs(rows))
    if expected is not None:
        out.print(say("outlook_measured"), style="dim")
    if found.conflicts:
        claims = ", ".join(f"{who} {amount(tokens)}" for who, tokens in found.conflicts[:6])
        out.print(f"Other sources: {claims}" + (" …" if len(found.conflicts) > 6 else ""), style="dim")


def _print_list(entries: Sequence[Entry], *, everything: bool, as_json: bool) -> None:
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
    out.print(
        table(
            ("model", "window", "output", "source"),
            (
                (
                    f"{entry.provider}/{entry.id}",
                    amount(entry.window),
                    amount(entry.output) if entry.output else "–",
                    f"{entry.origin} {entry.date}",
                )
                for entry in shown
            ),
        )
    )
    if len(shown) < len(entries):
        out.print(
            f"{amount(len(entries) - len(shown))} more; --all shows them, --find TEXT narrows the list", style="dim"
        )
