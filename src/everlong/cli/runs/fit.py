"""`everlong fit`: a conversation brought under a budget, in the format it came in."""

from dataclasses import asdict
from typing import Any

from everlong.cli.terminal.files import Picked, read_picked, write_output
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, percent, table
from everlong.cli.terminal.text import one_line
from everlong.cli.variables import engine_budget, engine_settings
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.core import Edit
from everlong.engine import Fitted, counter_for, fit_document
from everlong.wire import write

__all__ = ["run"]

LISTED = 12  # kinds of edits shown


def run(  # noqa: PLR0913 - one parameter an option
    file: str | None,
    budget: int | None,
    output: str | None,
    model: str,
    preset: str | None,
    pick: str,
    sample: bool,
    as_json: bool,
    language: Language,
) -> None:
    """Bring a conversation under its budget, write it and print the report."""
    say, picked = Words(language, "count"), read_picked(file, sample=sample, pick=pick)
    say.report_picked(picked.number, picked.of)
    document = picked.document
    say.report_skipped(document.warnings)
    say.report_model(model or document.model)
    settings = engine_settings(preset)
    fitted = fit_document(
        document,
        model=model,
        budget=engine_budget(model or document.model, settings) if budget is None else budget,
        preset="off" if settings.mode == "off" else settings.rules,
        semantic=settings.semantic,
    )
    before = counter_for(model or document.model).messages(document.messages) + fitted.tokens - fitted.view.tokens
    if output is not None:
        write_output(write(fitted.document), output)
    to_stderr = output == "-"
    if as_json:
        print_json(_as_json(fitted, before, picked), err=to_stderr)
    else:
        _print(fitted, before, say, to_stderr=to_stderr)


def _as_json(fitted: Fitted[Any], before: int, picked: Picked) -> dict[str, object]:
    return {
        "conversation": {"picked": picked.number, "of": picked.of},
        "budget": fitted.budget,
        "tokens_before": before,
        "tokens": fitted.tokens,
        "messages_before": len(fitted.view.history),
        "messages": len(fitted.view.messages),
        "edits": [asdict(edit) | {"action": edit.action.value} for edit in fitted.edits],
    }


def _print(fitted: Fitted[Any], before: int, say: Words, *, to_stderr: bool) -> None:
    from rich.text import Text  # noqa: PLC0415 - only where it is seen

    out = console(stderr=to_stderr)
    sizes = {"before": amount(before), "after": amount(fitted.tokens)}
    line = Text(say("fitted", **sizes, share=percent(fitted.tokens, fitted.budget), n=amount(fitted.budget)))
    line.highlight_words(list(sizes.values()), "bold")
    out.print(line)
    came, sent = say.many("messages", len(fitted.view.history)), amount(len(fitted.view.messages))
    if not fitted.edits:
        out.print(say("unchanged", came=came, n=sent))
        return
    out.print(say("changed", came=came, n=sent, edits=say.many("edits", len(fitted.edits))))
    groups: dict[tuple[str, str, str], list[Edit]] = {}
    for edit in fitted.edits:
        groups.setdefault((edit.step, edit.action.value, edit.reason), []).append(edit)
    ordered = sorted(groups.items(), key=lambda row: -sum(abs(edit.saved) for edit in row[1]))
    rows = [
        (
            one_line(say.reason(reason)),
            step,
            say(action),
            amount(len(edits)),
            amount(sum(edit.before for edit in edits)),
            amount(sum(edit.after for edit in edits)),
        )
        for (step, action, reason), edits in ordered[:LISTED]
    ]
    head = ("column_why", "head_step", "head_what", "head_edits", "column_before", "column_after")
    out.print(table([say(name) for name in head], rows))
    if len(ordered) > LISTED:
        out.print(say.many("more_kinds", len(ordered) - LISTED), style="dim")
