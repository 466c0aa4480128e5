"""Options that several commands take, and how the old spelling of an option goes on working unseen."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

__all__ = ["LateChoice", "WithOldSpelling", "model_option", "pick_option", "preset_option", "sample_option"]


class WithOldSpelling(click.Option):
    """An option that also takes `old` spellings, which no help shows."""

    def __init__(self, declarations: list[str], *, old: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__([*declarations, *old], **settings)
        self.old = old

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the line of the help with the current spellings alone."""
        every = self.opts
        self.opts = [name for name in every if name not in self.old]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every


#: -m is the message of `everlong chat`; for the model it is an old spelling.
model_option = click.option(
    "--model",
    "model",
    cls=WithOldSpelling,
    old=("-m",),
    default="",
    metavar="NAME",
    help="Count for this model (default: the one named in FILE).",
)
sample_option = click.option("--sample", is_flag=True, help="Use the sample conversation that ships with everlong.")
pick_option = click.option(
    "--pick", default="1", metavar="N|ID", help="Which conversation, if FILE holds several: its number or its id."
)


class LateChoice(click.ParamType[str]):
    """A choice among names that are read where they stand when they are needed: most runs do not load their package."""

    def __init__(self, name: str, place: str) -> None:
        self.name = name
        self.place = place

    @property
    def choice(self) -> click.Choice[str]:
        """The choice, with the names that there are."""
        module, _, attribute = self.place.partition(":")
        names = getattr(import_module(module), attribute)
        return click.Choice(names if isinstance(names, tuple) else sorted(names))

    @property
    def choices(self) -> Sequence[str]:
        """The names, for those who suggest one."""
        return self.choice.choices

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return the names, for the help."""
        return self.choice.get_metavar(param, ctx)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name; raise a usage error that lists the names if there is none such."""
        return self.choice.convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin so."""
        return self.choice.shell_complete(ctx, param, incomplete)


preset_option = click.option(
    "--preset",
    type=LateChoice("NAME", "everlong.compress:PRESET_NAMES"),
    help="How to choose what stays.",
)
