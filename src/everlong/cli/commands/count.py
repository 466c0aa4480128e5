"""`everlong count`: how many tokens a conversation has, and where they are."""

import json

import click

from everlong.cli.terminal.files import Picked, read_picked
from everlong.cli.terminal.options import model_option, pick_option, sample_option
from everlong.cli.terminal.tables import amount, console, percent, table
from everlong.engine import TokenMap, counter_for, map_tokens
from everlong.windows import Window, window

__all__ = ["count_command"]


@click.command("count")
@click.argument("file", required=False, metavar="FILE")
@model_option
@pick_option
@sample_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def count_command(file: str | None, model: str, pick: str, sample: bool, as_json: bool) -> None:
    """Count the tokens of the conversation in FILE (- for standard input), exactly where a tokenizer is known.

    FILE may be a request body or message list of OpenAI, Anthropic or Gemini, or a session file. Of a file with many
    conversations the first is counted, or the one that --pick names.
    """
    picked = read_picked(file, sample=sample, pick=pick)
    document = picked.document
    counter = counter_for(model or document.model)
    weights = map_tokens(document.messages, counter, document.tools)
    limits = window(counter.model)
    at_most = round(weights.total * (1 + counter.vocabulary.spread))
    if as_json:
        click.echo(json.dumps(_as_json(weights, limits, at_most, picked), indent=2))
    else:
        _print(weights, limits, at_most)


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


def _print(weights: TokenMap, limits: Window, at_most: int) -> None:
    out = console()
    if not weights.messages and not weights.schemas:
        out.print("No messages: the conversation is empty.")
        return
    rows = [
        (role.value, amount(messages), amount(tokens), percent(tokens, weights.total))
        for role, tokens, messages in weights.by_role
    ]
    if weights.schemas:
        rows.append(("tool schemas", "", amount(weights.schemas), percent(weights.schemas, weights.total)))
    out.print(table(("", "messages", "tokens", "share"), rows))
    how = "exact" if weights.exact else f"estimated, at most {amount(at_most)}"
    named = weights.model or "unknown model"
    out.print(f"[bold]{amount(weights.total)}[/bold] tokens for {named} ({how}; vocabulary {weights.vocabulary})")
    source = limits.source if limits.known else "assumed: the model is not in the registry"
    out.print(f"{percent(at_most, limits.context)} of its window of {amount(limits.context)} ({source})", style="dim")
