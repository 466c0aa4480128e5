"""`everlong fit`: a conversation brought under a budget, in the format it came in."""

from dataclasses import asdict

import click

from everlong.cli.terminal.files import Picked, read_picked, write_output
from everlong.cli.terminal.options import model_option, pick_option, sample_option
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, percent, table
from everlong.compress import PRESET_NAMES
from everlong.core import Edit
from everlong.engine import DEFAULT_SETTINGS, Fitted, counter_for, fit_document
from everlong.wire import write

__all__ = ["fit_command"]

LISTED = 12  # kinds of edits shown


@click.command("fit")
@click.argument("file", required=False, metavar="FILE")
@click.option(
    "--budget", "-b", type=click.IntRange(min=1), help="Tokens for messages and tool schemas (default: the window)."
)
@click.option("--output", "-o", "output", metavar="OUT", help="Write the conversation here (- for standard output).")
@model_option
@click.option(
    "--preset", default=DEFAULT_SETTINGS.preset, type=click.Choice(PRESET_NAMES), help="How to choose what stays."
)
@pick_option
@sample_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def fit_command(  # noqa: PLR0913 - one parameter an option
    file: str | None,
    budget: int | None,
    output: str | None,
    model: str,
    preset: str,
    pick: str,
    sample: bool,
    as_json: bool,
) -> None:
    """Bring the conversation in FILE (- for standard input) under a budget; same format out, with a report.

    The report goes to standard output, or to standard error when the conversation itself goes there. Of a file with
    many conversations the first is taken, or the one that --pick names, and that one alone is written.
    """
    picked = read_picked(file, sample=sample, pick=pick)
    document = picked.document
    fitted = fit_document(document, model=model, budget=budget, preset=preset)
    before = counter_for(model or document.model).messages(document.messages) + fitted.tokens - fitted.view.tokens
    if output is not None:
        write_output(write(fitted.document), output)
    to_stderr = output == "-"
    if as_json:
        print_json(_as_json(fitted, before, picked), err=to_stderr)
    else:
        _print(fitted, before, to_stderr=to_stderr)


def _as_json(fitted: Fitted, before: int, picked: Picked) -> dict[str, object]:
    return {
        "conversation": {"picked": picked.number, "of": picked.of},
        "budget": fitted.budget,
        "tokens_before": before,
        "tokens": fitted.tokens,
        "messages_before": len(fitted.view.history),
        "messages": len(fitted.view.messages),
        "edits": [asdict(edit) | {"action": edit.action.value} for edit in fitted.edits],
    }


def _print(fitted: Fitted, before: int, *, to_stderr: bool) -> None:
    out = console(stderr=to_stderr)
    figures = f"[bold]{amount(before)}[/bold] → [bold]{amount(fitted.tokens)}[/bold] tokens"
    out.print(f"{figures}, {percent(fitted.tokens, fitted.budget)} of {amount(fitted.budget)}")
    came = len(fitted.view.history)
    kept = f"{amount(came)} message{'s' * (came != 1)} in, {amount(len(fitted.view.messages))} out"
    if not fitted.edits:
        out.print(f"{kept}; it fits, nothing was changed")
        return
    out.print(f"{kept}, {len(fitted.edits)} edits")
    groups: dict[tuple[str, str, str], list[Edit]] = {}
    for edit in fitted.edits:
        groups.setdefault((edit.step, edit.action.value, edit.reason), []).append(edit)
    ordered = sorted(groups.items(), key=lambda row: -sum(abs(edit.saved) for edit in row[1]))
    rows = [
        (
            reason,
            step,
            action,
            amount(len(edits)),
            amount(sum(edit.before for edit in edits)),
            amount(sum(edit.after for edit in edits)),
        )
        for (step, action, reason), edits in ordered[:LISTED]
    ]
    out.print(table(("why", "step", "what", "edits", "before", "after"), rows))
    if len(ordered) > LISTED:
        out.print(f"and {len(ordered) - LISTED} more kinds; --json lists every edit with its reference", style="dim")
