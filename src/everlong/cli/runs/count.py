"""`everlong count`: how many tokens a conversation has, and where they are."""

import json

import click

from everlong.cli.terminal.files import Picked, read_picked
from everlong.cli.terminal.tables import amount, console, percent, table
from everlong.cli.terminal.text import one_line
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.engine import TokenMap, counter_for, map_tokens
from everlong.windows import Window, window

__all__ = ["run"]


def run(file: str | None, model: str, pick: str, sample: bool, as_json: bool, language: Language) -> None:
    """Count a conversation and print where its tokens are."""
    say, picked = Words(language, "count"), read_picked(file, sample=sample, pick=pick)
    say.report_picked(picked.number, picked.of)
    document = picked.document
    say.report_skipped(document.warnings)
    say.report_model(model or document.model)
    counter = counter_for(model or document.model)
    weights = map_tokens(document.messages, counter, document.tools)
    limits = window(counter.model)
    at_most = round(weights.total * (1 + counter.vocabulary.spread))
    if as_json:
        click.echo(json.dumps(_as_json(weights, limits, at_most, picked), indent=2))
    else:
        _print(weights, limits, at_most, say)


def _as_json(weights: TokenMap, limits: Window, at_most: int, picked: Picked) -> dict[str, object]:
    return {
        "conversation": {"picked": picked.number, "of": picked.of},
        "model": weights.model,
        "tokens": weights.total,
        "exact": weights.exact,
        "at_most": at_most,
        "vocabulary": weights.vocabulary,
        "messages": len(weights.messages),
        "tool_schemas": weights.schemas,
        "by_role": {role.value: tokens for role, tokens, _ in weights.by_role},
        "by_kind": dict(weights.by_kind),
        "by_tool": {tool.name: tool.call_tokens + tool.result_tokens for tool in weights.by_tool},
        "window": {"tokens": limits.context, "source": limits.source, "known": limits.known},
    }


def _print(weights: TokenMap, limits: Window, at_most: int, say: Words) -> None:
    from rich.text import Text  # noqa: PLC0415 - only where it is seen

    out = console()
    if not weights.messages and not weights.schemas:
        out.print(say("empty"))
        return
    rows = [
        (say.name(role.value), amount(messages), amount(tokens), percent(tokens, weights.total))
        for role, tokens, messages in weights.by_role
    ]
    if weights.schemas:
        rows.append((say.name("schemas"), "", amount(weights.schemas), percent(weights.schemas, weights.total)))
    out.print(table(("", say("column_messages"), say("column_tokens"), say("share")), rows))
    total = amount(weights.total)
    how = say("exact") if weights.exact else say("estimated", n=amount(at_most))
    named = one_line(weights.model) or say("unknown_model")
    line = Text(say("of_model", total=total, model=named, how=how, vocabulary=weights.vocabulary))
    line.highlight_words([total], "bold")
    out.print(line)
    source = say("source_registry", date=limits.date) if limits.known else say("source_default")
    share = percent(at_most, limits.context)
    out.print(say("of_window", share=share, n=amount(limits.context), source=source), style="dim")
