"""The page of the commands: every command with its help, arguments, options and defaults."""

import re
from collections.abc import Iterator
from textwrap import dedent

import click

from everlong.cli.groups import RANGE
from everlong.cli.main import program
from reference_pages.markdown import code, escaped, generated, table

__all__ = ["PAGE", "commands_page", "marked", "options_named"]

PAGE = "cli.md"
#: The pages that explain a command, and those below it.
GUIDES = {
    "everlong chat": ("the agent in the terminal", "../app/chat.md"),
    "everlong doctor": ("behind the gateway", "../gateway/wrap.md"),
    "everlong fit": ("fit", "../how-to/fit.md"),
    "everlong count": ("counting", "../concepts/counting.md"),
    "everlong jobs": ("Postgres", "../operate/postgres.md"),
    "everlong keys": ("keys and limits", "../gateway/keys.md"),
    "everlong lab": ("the lab", "../lab/README.md"),
    "everlong lab replay": ("replay", "../lab/replay.md"),
    "everlong lab speed": ("benchmarks", "../lab/benchmarks.md"),
    "everlong lab capacity": ("scale", "../operate/scale.md"),
    "everlong lab clients": ("clients", "../clients/README.md"),
    "everlong lab claude-sessions": ("Claude Code's sessions", "../clients/claude-code-sessions.md"),
    "everlong lab adapters": ("adapters", "../adapters/README.md"),
    "everlong mcp": ("MCP", "../how-to/mcp.md"),
    "everlong migrate": ("operations", "../operate/README.md"),
    "everlong serve": ("the gateway", "../gateway/README.md"),
    "everlong sessions": ("stores", "../how-to/stores.md"),
    "everlong worker": ("Postgres", "../operate/postgres.md"),
    "everlong wrap": ("wrap", "../gateway/wrap.md"),
}
INTRODUCTION = """\
`python -m everlong` is the same program, and every command has `--help`. Exit codes: 0 on success, 1 for input that
cannot be used (with one line that says what to do), 2 for wrong usage. If a name does not exist, the command suggests
the nearest one. It also reports variables `EVERLONG_…` that nothing reads.

`FILE` is a file in any of the [formats](formats.md), or `-` for standard input. If it holds several conversations, the
command says so and uses the first one; `--pick` chooses another.

Variables and files that set the same values are listed in [settings](settings.md).

## Completion

`eval "$(everlong --completion bash)"` in `~/.bashrc` makes Tab complete commands, options, models, presets,
sessions, providers, clients, formats and files. In `~/.zshrc`, write `zsh` instead of `bash`. For fish, use
`everlong --completion fish | source`.

```console
$ everlong --completion bash
_everlong_completion() {…complete -o nosort -F _everlong_completion everlong…
```
"""


def commands_page() -> str:
    """Return the page of all commands."""
    lines = [generated("the commands of `everlong`"), "# Commands", "", *INTRODUCTION.split("\n")]
    root = click.Context(program, info_name="everlong")
    rows = [
        (f"[{code(name)}](#{name.replace(' ', '-')})", escaped(command.get_short_help_str(200)))
        for name, command, _ in walk(program, root)
    ]
    lines += ["## All commands", "", *table(("command", ""), rows)]
    lines += ["Options of `everlong` itself:", "", *_option_table(program, root)]
    for name, command, context in walk(program, root):
        lines += [f"## {name}" if name.count(" ") == 1 else f"### {name}", "", *_command_lines(command, context)]
    return "\n".join(lines).rstrip() + "\n"


def walk(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield every command below a group with its whole name, in the order of the help."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        yield inner.command_path, command, inner
        if isinstance(command, click.Group):
            yield from walk(command, inner)


def _command_lines(command: click.Command, context: click.Context) -> list[str]:
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    usage = " ".join([context.command_path, "[OPTIONS]", *pieces])
    lines = ["```text", usage, "```", "", *_help_lines(command.help or "")]
    examples = getattr(command, "examples", ())
    if examples:
        lines += ["```sh", *examples, "```", ""]
    if context.command_path in GUIDES:
        title, page = GUIDES[context.command_path]
        lines += [f"Guide: [{title}]({page}).", ""]
    if isinstance(command, click.Group):
        names = (f"{context.command_path} {name}" for name in command.list_commands(context))
        return [
            *lines,
            "Commands: " + ", ".join(f"[{code(name)}](#{name.replace(' ', '-')})" for name in names) + ".",
            "",
        ]
    return [*lines, *_option_table(command, context)]


def _help_lines(text: str) -> list[str]:
    """Return the help of a command. A block that keeps its line breaks (after \\b) is a block of text here too."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        rows = paragraph.split("\n")
        if rows[0].strip() == "\b":
            lines += ["```sh", *dedent("\n".join(rows[1:])).split("\n"), "```", ""]
        else:
            lines += [marked(" ".join(row.strip() for row in rows)), ""]
    return lines


def marked(text: str) -> str:
    """Return a text of the program as Markdown: options, variables and what stands in backticks are code."""
    pieces = re.split(r"(`[^`]+`|(?<![\w-])--[a-z][\w-]*|\bEVERLONG_[A-Z_]+\b)", text)
    shown = (piece if at % 2 == 0 else code(piece.strip("`")) for at, piece in enumerate(pieces))
    return "".join(escaped(piece) if at % 2 == 0 else piece for at, piece in enumerate(shown))


def _option_table(command: click.Command, context: click.Context) -> list[str]:
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or not isinstance(parameter, click.Option) or "--help" in parameter.opts:
            continue
        names, said = record[0], RANGE.sub("", record[1])
        default = _default(parameter, context)
        if default:  # it has a column of its own
            said = re.sub(rf"(?: \(default:? {re.escape(default)}\)|, {re.escape(default)} by default)", "", said)
            said = re.sub(r"\[default: [^;\]]*(?:; )?", "[", said).replace("[]", "")
        rows.append((code(names), default and code(default), marked(re.sub(r"\s+", " ", said).strip())))
    return table(("option", "default", ""), rows) if rows else []


def _default(option: click.Option, context: click.Context) -> str:
    """Return the default of an option where the program has one value for everyone."""
    value = option.get_default(context, call=False)
    if option.is_flag or not isinstance(value, str | int | float | tuple) or value in ("", ()):
        return ""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def options_named(path: str) -> dict[str, str]:
    """Return the options of a command by the name of their parameter, as they are written. Example: port -> --port"""
    command: click.Command = program
    for name in path.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None, path
        command = found
    return {each.name: each.opts[0] for each in command.params if isinstance(each, click.Option) and each.name}
