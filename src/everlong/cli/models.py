"""`everlong models`: windows, output limits and prices, each with its source."""

import json
from collections.abc import Sequence
from dataclasses import asdict

import click

from everlong.cli.terminal import amount, console, pairs, table
from everlong.errors import InputError
from everlong.windows import Entry, Window, bundled, window

__all__ = ["models_command"]

LISTED = 40  # rows shown of a long list


@click.command("models")
@click.argument("name", required=False)
@click.option("--provider", default="", help="Where the model is used: its own figures win.")
@click.option("--find", "text", default="", help="List every entry with this text in its name or provider.")
@click.option("--all", "everything", is_flag=True, help="Do not shorten the list.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def models_command(name: str | None, provider: str, text: str, everything: bool, as_json: bool) -> None:
    """Show the window, output limit and prices of the model NAME with their source, or search the registry."""
    if name is not None:
        _tell(window(name, provider=provider), as_json=as_json)
        return
    entries = bundled().find(text or provider)
    if not entries:
        raise InputError(f"no model or provider with {text or provider!r} in its name")
    _list(entries, everything=everything, as_json=as_json)


def _tell(found: Window, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(found), ensure_ascii=False, indent=2))
        return
    out = console()
    source = f"{found.source}, {found.table} of {found.date}" if found.date else found.source
    rows = [("window", f"{amount(found.context)} ({source})")]
    if not found.known:
        rows = [("window", f"{amount(found.context)} assumed: nothing in the registry says how large it is")]
    if found.prompt != found.context:
        rows.append(("prompt at most", amount(found.prompt)))
    if found.matched:
        rows.append(("matched", f"{found.provider}/{found.matched}"))
    rows.append(("output at most", "unknown" if found.output is None else amount(found.output)))
    rows += [
        (f"{kind.replace('_', ' ')}, $ a million", f"{price:g}")
        for kind, price in asdict(found.prices).items()
        if price is not None
    ]
    out.print(f"[bold]{found.model}[/bold]")
    out.print(pairs(rows))
    if found.conflicts:
        claims = ", ".join(f"{who} {amount(tokens)}" for who, tokens in found.conflicts[:6])
        out.print(f"Others say: {claims}" + (" …" if len(found.conflicts) > 6 else ""), style="dim")


def _list(entries: Sequence[Entry], *, everything: bool, as_json: bool) -> None:
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
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
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
