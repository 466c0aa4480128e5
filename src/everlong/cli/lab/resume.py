"""`everlong lab resume`: after a compaction, does the request still contain what the next recorded calls used?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.lab.options import (
    DATA,
    EVERY_SESSION,
    FILES,
    HALF,
    HTML,
    JOBS,
    JSON,
    names_listed,
    overheads_option,
    warn,
    windows_option,
)
from everlong.cli.lab.replay_table import draw
from everlong.cli.terminal.files import check_output, write_page
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, progress
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.errors import InputError
from everlong.lab import (
    NEXT_CALLS,
    RESUME_COLUMNS,
    WORK_STRATEGIES,
    GridPlan,
    ResumePlan,
    ResumeResult,
    Session,
    cells_of,
    data_folder,
    in_half,
    policy_named,
    published,
    resume_cells,
    resume_sessions,
    resume_source_cells,
    sessions_at,
    strategy_named,
    tariff_from,
)

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["resume_command"]

MODEL = "gpt-4o"
PRICES = "anthropic"
WINDOWS = "16000,32000,64000,128000"
OVERHEAD = "2000"
REPLY = 4_096
QUICK = 24  # one session in this many, none of the longest
OURS = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions:
    """The options of the command."""

    paths: tuple[str, ...]
    data: str | None
    files: str
    half: str
    windows: tuple[int, ...]
    overheads: tuple[int, ...]
    policies: tuple[str, ...]
    strategies: tuple[str, ...]
    calls: int
    way: str | None
    step: int
    quick: bool
    processes: int
    as_json: bool
    html: str | None
    language: Language


@click.command(
    "resume",
    cls=ExampleCommand,
    examples=(
        "everlong lab resume claude-code --window 64000",
        "everlong lab resume --data lab-data --quick",
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@DATA
@FILES
@HALF
@windows_option(WINDOWS)
@overheads_option(OVERHEAD)
@click.option(
    "--preset",
    "policies",
    multiple=True,
    metavar="NAME",
    help="The preset that compacts; may be repeated (default: auto).",
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    help="A strategy to compare with; may be repeated (default: the usual baselines).",
)
@click.option(
    "--calls",
    type=click.IntRange(min=1),
    default=NEXT_CALLS,
    metavar="N",
    help=f"Number of calls to check after each compaction (default: {NEXT_CALLS}).",
)
@click.option("--by", "way", type=click.Choice(["source"]), help="Add a table by the project of the sessions.")
@EVERY_SESSION
@click.option("--quick", is_flag=True, help=f"Use only every {QUICK}th session, and none of the longest.")
@JOBS
@JSON
@HTML
@language_option
def resume_command(**given: object) -> None:
    """Measure whether the agent can resume its work after a compaction.

    The engine replays the sessions. After each compaction the command checks the next recorded tool calls: are the
    paths, ids, names and replaced lines in their arguments still in the request? It also counts the calls that repeat
    one from before the compaction. The strategies get the same histories and as many tokens as the preset sent. No
    model is called, and nothing is sent anywhere.

    PATH is a file or folder with your own sessions, in any format that everlong reads, or the name of a program such
    as claude-code. Without PATH the data folder is used.
    """
    given |= {"policies": given["policies"] or (OURS,), "strategies": given["strategies"] or _usual()}
    options = ResumeOptions(**given)  # type: ignore[arg-type]
    say = Words(options.language, "resume")
    plan = _plan(options)
    with progress(say("finding"), None):
        sessions = _sessions(options)
    with progress(say("playing"), len(sessions) * len(cells_of(plan.grid))) as advance:
        results = resume_sessions(sessions, plan, options.processes, advance)
    _show(plan, sessions, results, options)


def _usual() -> tuple[str, ...]:
    return tuple(name for name in WORK_STRATEGIES if name != OURS)


def _plan(options: ResumeOptions) -> ResumePlan:
    """Return the plan. Raises InputError now for anything that would fail only after much work."""
    grid = GridPlan(
        policies=tuple(dict.fromkeys(policy_named(name).name for name in options.policies)),
        windows=options.windows,
        overheads=options.overheads,
        tariff=tariff_from(PRICES),
        model=MODEL,
        reply=REPLY,
    )
    if not cells_of(grid):
        raise InputError("every --overhead takes more than 70 % of every --window: name larger windows")
    strategies = tuple(dict.fromkeys(strategy_named(name).name for name in options.strategies))
    if options.html is not None:
        check_output(options.html)
    return ResumePlan(grid=grid, strategies=strategies, calls=options.calls)


def _sessions(options: ResumeOptions) -> list[Session]:
    """Return the sessions with calls, the longest first."""
    if options.paths:
        own = sessions_at(options.paths, warn, grown=True)
        found = [session for session in own if in_half({"id": session.facts.id}, options.half)]
        found.sort(key=lambda session: -session.facts.tokens)
    else:
        found = published(data_folder(options.data), names_listed(options.files), options.half)
    calling = [session for session in found if any(message.calls for message in session.messages)]
    if not calling:
        place = ", ".join(options.paths) or options.files
        raise InputError(f"{place}: no session contains a tool call (--half {options.half}); name other sessions")
    return (calling[QUICK // 2 :: QUICK] or calling[:1]) if options.quick else calling[:: options.step]


def _show(
    plan: ResumePlan, sessions: Sequence[Session], results: Sequence[ResumeResult], options: ResumeOptions
) -> None:
    say = Words(options.language, "resume")
    facts = _facts(plan, sessions, options.half, say)
    if options.html is not None:
        from everlong.lab import resume_page  # noqa: PLC0415 - only where a page is asked for

        write_page(resume_page(results, language=options.language.code, facts=facts), options.html)
    if options.as_json:
        print_json(_as_json(plan, sessions, results))
    elif options.html != "-":
        _print(facts, results, options.way, say)


def _as_json(plan: ResumePlan, sessions: Sequence[Session], results: Sequence[ResumeResult]) -> dict[str, object]:
    return {
        "model": plan.grid.model,
        "tariff": plan.grid.tariff.name,
        "reply": plan.grid.reply,
        "next_calls": plan.calls,
        "sessions": len(sessions),
        "results": [result.as_json() for result in results],
    }


# --- the tables -----------------------------------------------------------------------------------


def _facts(plan: ResumePlan, sessions: Sequence[Session], half: str, say: Words) -> tuple[str, ...]:
    size = (say.many("sessions", len(sessions)), say(half), say.many("next", plan.calls))
    around = {"reply": amount(plan.grid.reply), "name": plan.grid.tariff.name}
    return (say("comma").join(size), say("around", **around))


def _print(facts: Sequence[str], results: Sequence[ResumeResult], way: str | None, say: Words) -> None:
    out = console()
    out.print(say("title"), style="bold")
    for fact in facts:
        out.print(fact)
    places = dict.fromkeys((result.preset, result.window, result.overhead) for result in results)
    for place in places:
        rows = [result for result in results if (result.preset, result.window, result.overhead) == place]
        out.print()
        _print_place(out, rows, say)
        if way is not None and rows[0].figures.compactions:
            _print_sources(out, rows, say)
    out.print(say("columns"), style="dim")


def _print_place(out: "Console", rows: Sequence[ResumeResult], say: Words) -> None:
    played = rows[0]
    figures = played.figures
    place = {"preset": played.preset, "window": amount(played.window), "overhead": amount(played.overhead)}
    out.print(say("place", **place), style="bold")
    if not figures.compactions:
        out.print(say("nothing"))
        return
    counted = (
        say.many("compactions", figures.compactions),
        say.many("calls_asked", figures.calls, needs=amount(figures.needs)),
        say.many("edits_asked", figures.edits),
    )
    out.print(say("comma").join(counted))
    repeated = {"after": amount(figures.after), "changed": amount(figures.changed)}
    out.print(say.many("repeated", figures.repeated, **repeated))
    draw(out, [say(name) for name in RESUME_COLUMNS], [(_name(row, say), *resume_cells(row)) for row in rows])
    for line in _notes(rows, say):
        out.print(line, style="dim")


def _print_sources(out: "Console", rows: Sequence[ResumeResult], say: Words) -> None:
    head = (say("source"), say("compactions_short"), *(_name(row, say) for row in rows))
    draw(out, head, resume_source_cells(rows))


def _name(row: ResumeResult, say: Words) -> str:
    return say("played", name=row.strategy) if row.played else row.strategy


def _notes(rows: Sequence[ResumeResult], say: Words) -> Iterator[str]:
    for row in rows:
        if row.failed:
            yield say.many("failed", row.failed, strategy=row.strategy, total=amount(row.figures.compactions))
