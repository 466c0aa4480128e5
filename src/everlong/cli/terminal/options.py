"""Options that several commands take, and how the old spelling of an option goes on working unseen."""

from typing import Any

import click

__all__ = ["WithOldSpelling", "model_option", "pick_option", "sample_option"]


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
