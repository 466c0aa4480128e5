"""`everlong lab replay`: what sessions cost, what they would have cost, and what would have been lost."""

import os

import click

from everlong.cli.lab_options import DATA, HALF, HTML, JOBS, JSON, LANGUAGE, WORK_FILES, tokens_listed
from everlong.cli.maps.wording import language_from
from everlong.lab import PAUSES

__all__ = ["replay_command"]

WINDOWS = "64000,128000"
#: What a page shows unless told otherwise.
PAGE_THRESHOLDS = (0.4, 0.55, 0.7, 0.85, 0.95)


def _shares(_: click.Context, __: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    """Example: ".7,0.4" -> (0.4, 0.7)"""
    if value is None:
        return None
    try:
        return tuple(sorted({float(piece) for piece in value.split(",") if piece.strip()}))
    except ValueError:
        raise click.BadParameter("shares with commas between them, such as .4,.7") from None


@click.command("replay", short_help="What sessions cost, and would have cost.")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@DATA
@click.option("--files", metavar="NAME,NAME", help=f"Files in agents/ of the data folder (default: {WORK_FILES}).")
@HALF
@click.option(
    "--window",
    "windows",
    default=WINDOWS,
    callback=tokens_listed,
    metavar="N,N",
    help=f"Tokens that a request and its answer may take (default: {WINDOWS}).",
)
@click.option("--model", metavar="NAME", help="Counts and prices as for this model (default: the one most used).")
@click.option("--prices", metavar="TABLE|FILE", help="Prices and cache rules by name or file (default: the model's).")
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="What to play; may be repeated.")
@click.option(
    "--pauses",
    type=click.Choice(PAUSES),
    default=PAUSES[0],
    help="Pauses between requests: as recorded, none, or before every user turn.",
)
@click.option(
    "--front",
    type=click.IntRange(min=0),
    default=12_000,
    metavar="N",
    help="Tokens of system text and tools before every request (default: 12000).",
)
@click.option(
    "--reply",
    type=click.IntRange(min=1),
    default=8_000,
    metavar="N",
    help="Tokens kept free for the answer (default: 8000).",
)
@click.option("--longest", type=click.IntRange(min=1), default=None, metavar="N", help="Only the N longest.")
@click.option(
    "--thresholds", callback=_shares, metavar="N,N", help="Also auto at these thresholds (default: some with --html)."
)
@click.option("--no-reading", is_flag=True, help="What was lost is not read again.")
@JOBS
@JSON
@HTML
@LANGUAGE
def replay_command(paths: tuple[str, ...], **options: object) -> None:
    """What sessions cost, what they would have cost, and what would have been lost.

    PATH is a file, a folder, - for standard input, or claude-code, codex, pi or nanobot: the places where these keep
    sessions. Without PATH the data folder is replayed. Every request is made as a policy would send it, and paid for
    by a provider's prices and cache rules. No model is called and nothing is sent.
    """
    from everlong.cli.lab_replaying import Asked, replay  # noqa: PLC0415 - only a run needs the engine

    if paths and (options["data"] or options["files"]):
        raise click.UsageError("--data and --files name the data folder; PATH is replayed instead of it")
    usual = PAGE_THRESHOLDS if options["html"] is not None else ()
    given = options.pop("thresholds")
    asked = Asked(
        thresholds=usual if given is None else given,  # type: ignore[arg-type]
        longest=options.pop("longest") or 0,  # type: ignore[arg-type]
        language=str(options.pop("language") or language_from(os.environ)),
        reading=not options.pop("no_reading"),
        **options,  # type: ignore[arg-type]
    )
    replay(paths, asked)
