"""The option `--local` for commands that can use a model on this machine, and the extras that options need."""

from collections.abc import Iterator

import click

__all__ = ["extras_for", "local_option"]

#: None if it is not given, "" for the small model, else the file.
local_option = click.option(
    "--local",
    metavar="[FILE.gguf]",
    is_flag=False,
    flag_value="",
    help="Answer with a model on this machine, without a key: this GGUF file, or a small model that is downloaded "
    "once (90 MB).",
)


def extras_for(local: str | None, store: str | None) -> Iterator[str]:
    """Yield the extras that these options need in addition to the command's own."""
    if local is not None:
        yield "local"
    if store:
        from everlong.store import is_remote  # noqa: PLC0415 - help needs none of it

        if is_remote(store):
            yield "postgres"
