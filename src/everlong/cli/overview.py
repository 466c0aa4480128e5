"""What `everlong` and `everlong --help` print: where to start, then every command by purpose."""

from collections.abc import Iterator, Mapping

import click

from everlong.cli.groups import CommandGroup
from everlong.cli.words.language import Language
from everlong.cli.words.wording import LANGUAGES, Words, language_of

__all__ = ["Program"]

#: Starting points by what people have, in the order of the help. Each has a title, a command or import, and a sentence.
DOORS = ("code", "agent", "client", "bill")
#: The commands that `everlong` without arguments suggests.
FIRST = {"demo": "everlong demo", "wrap": "everlong wrap claude", "replay": "everlong lab replay claude-code"}
COMMAND = 8  # characters of the longest command name
OPTIONS = {
    "lang": "--lang [en|zh]",
    "completion": "--completion [bash|zsh|fish]",
    "version": "--version",
    "help": "-h, --help",
}


class Program(CommandGroup):
    """The program itself. Its help is in the language of `--lang` or of the locale."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `--lang` before `--help` prints anything, whichever comes first."""
        code = self.make_parser(ctx).parse_args(list(args))[0].get("language")
        named = next((language for language in LANGUAGES if language.code == code), None)
        if named is not None:
            ctx.meta[Language.__name__] = named
            if isinstance(ctx.obj, dict):
                ctx.obj[Language.__name__] = named  # for an error that ends the program
        return super().parse_args(ctx, args)

    def start(self, ctx: click.Context) -> str:
        """Return what `everlong` prints without arguments: what it is, three commands to try, and where the rest is."""
        say = Words(language_of(ctx), "program")
        rows = _rows({command: say(f"try_{name}") for name, command in FIRST.items()})
        return "\n".join((say("tagline"), "", *rows, "", say("start_help")))

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write where to start, the commands by purpose, and the options."""
        say = Words(language_of(ctx), "program")
        lines = [say("usage"), "", say("tagline"), "", say("doors")]
        for name in DOORS:
            lines.append(f"  {say(f'door_{name}')} → {say(f'door_{name}_command')}")
            lines.append(f"      {say(f'door_{name}_line')}")
        for purpose in dict.fromkeys(row.purpose for row in self.rows):
            names = [row.name for row in self.rows if row.purpose == purpose]
            lines += ["", say(f"purpose_{purpose}"), *_rows({name: say(f"command_{name}") for name in names}, COMMAND)]
        lines += ["", say("options"), *_rows({spelt: say(f"option_{name}") for name, spelt in OPTIONS.items()})]
        formatter.write("\n".join((*lines, "", say("each_help"), say("completion_use"), "")))


def _rows(texts: Mapping[str, str], width: int = 0) -> Iterator[str]:
    """Return names and texts in two columns. Click would measure Chinese text wrongly."""
    width = max(width, *map(len, texts))
    return (f"  {name:{width}}  {text}" for name, text in texts.items())
