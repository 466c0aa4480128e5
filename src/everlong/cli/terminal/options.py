"""Options that several commands share, and options that still accept old spellings."""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from everlong.core import token_count

__all__ = [
    "LateChoice",
    "TokenCount",
    "TokenCounts",
    "WithOldSpelling",
    "model_option",
    "pick_option",
    "preset_option",
    "sample_option",
]


class WithOldSpelling(click.Option):
    """An option that also accepts `old` spellings, which the help does not show."""

    def __init__(self, declarations: list[str], *, old: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__([*declarations, *old], **settings)
        self.old = old

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the line of the help with only the current spellings."""
        every = self.opts
        self.opts = [name for name in every if name not in self.old]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every


#: -m is the message in `everlong chat`; for the model it is an old spelling.
model_option = click.option(
    "--model",
    "model",
    cls=WithOldSpelling,
    old=("-m",),
    default="",
    metavar="NAME",
    help="Count tokens as this model does (default: the model named in FILE).",
)
sample_option = click.option("--sample", is_flag=True, help="Use the built-in sample conversation instead of FILE.")
pick_option = click.option(
    "--pick",
    default="1",
    metavar="N|ID",
    help="Which conversation to use if FILE holds several: its number or its id (default: 1).",
)


class LateChoice(click.ParamType[str]):
    """A choice among names that are read only when needed, because most runs do not load their package."""

    def __init__(self, name: str, place: str) -> None:
        self.name = name
        self.place = place

    @property
    def choice(self) -> click.Choice[str]:
        """The choice among the current names."""
        module, _, attribute = self.place.partition(":")
        names = getattr(import_module(module), attribute)
        return click.Choice(names if isinstance(names, tuple) else sorted(names))

    @property
    def choices(self) -> Sequence[str]:
        """The names, for suggestions."""
        return self.choice.choices

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return the names, for the help."""
        return self.choice.get_metavar(param, ctx)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name; raise a usage error that lists the names if it is unknown."""
        return self.choice.convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with this text."""
        return self.choice.shell_complete(ctx, param, incomplete)


class TokenCount(click.IntRange):
    """A number of tokens: 200000, 200_000, 200,000, 200k or 0.2M."""

    name = "tokens"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; raise a usage error if the text is not one or the number is too small."""
        count = token_count(value) if isinstance(value, str) else value
        if count is None:
            self.fail(f"{value!r} is not a number of tokens; write it as 200000, 200k or 1.5M.", param, ctx)
        return super().convert(count, param, ctx)


class TokenCounts(click.ParamType[tuple[int, ...]]):
    """Numbers of tokens separated by commas, each once, the smallest first. Example: "16k,8000" -> (8000, 16000)"""

    name = "tokens"

    def __init__(self, *, min: int) -> None:
        self.count = TokenCount(min=min)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the numbers; raise a usage error for one that is not valid. "64,000" is one number, "500,800" two."""
        if not isinstance(value, str):
            return value
        pieces = re.sub(r"(?<=[0-9]),(?=0[0-9]{2}(?![0-9]))", "_", value).split(",")
        counts = {self.count.convert(piece, param, ctx) for piece in pieces if piece.strip()}
        if not counts:
            self.fail("give numbers of tokens separated by commas, such as 64k,200k.", param, ctx)
        return tuple(sorted(counts))


class PresetName(LateChoice):
    """The name of a preset, or `module:NAME` for a preset of the user's own."""

    def __init__(self) -> None:
        super().__init__("NAME", "everlong.compress:PRESET_NAMES")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name; raise a usage error for an unknown one. `module:NAME` is looked up later."""
        return value if isinstance(value, str) and ":" in value else super().convert(value, param, ctx)


preset_option = click.option(
    "--preset",
    type=PresetName(),
    help="The preset that decides what to keep, or your own as module:NAME (default: auto).",
)
