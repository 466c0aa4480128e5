"""Commands that pages name exist, with the options that they are shown with."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from everlong.cli.main import program
from tests.docs.pages import PAGES, ROOT, Page, read_page

INLINE = re.compile(r"(?<!`)`((?:python -m )?everlong [^`\n]+)`(?!`)")
LINE = re.compile(r"(?:^|\$ |[|(;&] ?|\bexec )((?:python -m )?everlong .*)$", re.MULTILINE)
#: What follows is another program's: a pipe, a redirection, a comment, another command.
END = re.compile(r"\s(?:\||&&|&|;|>|<|2>|#)(?:\s|$)")


def command_lines(page: Page) -> Iterator[str]:
    shells = [block.code.replace("\\\n", " ") for block in page.blocks if block.language in ("sh", "console", "bash")]
    for text in shells:
        yield from LINE.findall(text)
    yield from INLINE.findall(re.sub(r"^( *)```.*?^ *```", "", page.text, flags=re.MULTILINE | re.DOTALL))


def problem(line: str) -> str:
    """What is wrong with a command line; "" if nothing is. What a page leaves open (…, CAPITALS) may be anything."""
    line = END.split(line.removeprefix("python -m ").strip())[0].rstrip(")")
    try:
        words = shlex.split(line)[1:]
    except ValueError:
        return "its quotes do not match"
    command: click.Command = program
    while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        if words[0] not in command.commands:
            return f"there is no command {words[0]}"
        command = command.commands[words.pop(0)]
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}
    client = command.name == "wrap"
    for word in words:
        if word == "--" or (client and re.fullmatch(r"[a-z]+", word)):
            break  # what follows is the client's
        if re.fullmatch(r"--?[a-z][\w-]*(?:=.*)?", word) and word.partition("=")[0] not in known:
            return f"{command.name} has no option {word}"
    return ""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_and_options_exist(path: Path) -> None:
    wrong = {line: said for line in command_lines(read_page(path)) if (said := problem(line))}
    assert not wrong


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("everlong serve --port 1 | head", ""),
        ("everlong sesions list", "there is no command sesions"),
        ("everlong lab replay --prise x", "replay has no option --prise"),
        ("everlong wrap --quiet claude --resume", ""),
        ("everlong sessions …", ""),
    ],
)
def test_a_wrong_command_is_noticed(line: str, said: str) -> None:
    assert problem(line) == said
