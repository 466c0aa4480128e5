"""`everlong lab continuity`: are the task, the last steps and the last words still messages after a compaction?"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

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
    overhead_form,
    overheads_option,
    windows_option,
)
from everlong.cli.lab.replay_table import draw
from everlong.cli.terminal.files import check_output, write_page
from everlong.cli.terminal.options import TokenCount
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, progress
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.errors import InputError
from everlong.lab import (
    CONTINUITY_COLUMNS,
    CellResult,
    GridPlan,
    OverheadForm,
    Session,
    as_observations,
    cells_of,
    data_folder,
    observed_in,
    policy_named,
    published,
    tariff_from,
    tokens_short,
    walk_grid,
)

__all__ = ["continuity_command"]

MODEL = "gpt-4o"
WINDOWS = "16000,32000,64000,128000,200000"
OVERHEADS = "2000,8000,15000,25000,35000"
REPLY = 4_096
QUICK = 8  # one session in this many
OURS = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuityOptions:
    """The options of the command."""

    data: str | None
    files: str
    half: str
    windows: tuple[int, ...]
    overheads: tuple[int, ...]
    form: OverheadForm
    policies: tuple[str, ...]
    model: str
    prices: str
    reply: int
    observations: bool
    step: int
    quick: bool
    processes: int
    as_json: bool
    html: str | None
    language: Language


@click.command(
    "continuity",
    cls=ExampleCommand,
    examples=(
        "everlong lab continuity --data lab-data --quick",
        "everlong lab continuity --data lab-data --preset auto --preset nanobot",
    ),
)
@DATA
@FILES
@HALF
@windows_option(WINDOWS)
@overheads_option(OVERHEADS)
@overhead_form("both")
@click.option(
    "--preset",
    "policies",
    multiple=True,
    metavar="NAME",
    help="The preset to measure; may be repeated (default: auto).",
)
@click.option("--model", default=MODEL, metavar="NAME", help=f"Count tokens as this model does (default: {MODEL}).")
@click.option(
    "--prices",
    default="anthropic",
    metavar="TABLE|FILE",
    help="Prices and cache rules; they decide how far a compaction goes (default: anthropic).",
)
@click.option(
    "--reply",
    type=TokenCount(min=1),
    default=REPLY,
    metavar="N",
    help=f"Tokens that each request asks for as an answer (default: {REPLY}).",
)
@click.option("--observations", is_flag=True, help="Turn tool results into user messages, as ReAct agents send them.")
@EVERY_SESSION
@click.option("--quick", is_flag=True, help=f"Use only every {QUICK}th session, as with --every {QUICK}.")
@JOBS
@JSON
@HTML
@language_option
def continuity_command(**given: object) -> None:
    """Measure whether the task and the last steps are still messages after a compaction.

    The engine replays the sessions as growing histories, with windows and prompt overheads of several sizes. After
    each compaction the command checks whether the task, the last three steps and the last user message are still
    there as messages, and how much was new since the compaction before. No model is called, and nothing is sent
    anywhere.
    """
    options = ContinuityOptions(**{**given, "policies": given["policies"] or (OURS,)})  # type: ignore[arg-type]
    say = Words(options.language, "continuity")
    plan = _plan(options)
    say.report_model(options.model)
    with progress(say("finding"), None):
        sessions = _sessions(options)
    with progress(say("walking"), len(sessions) * len(cells_of(plan))) as advance:
        results = walk_grid(sessions, plan, options.processes, advance)
    _show(plan, sessions, results, options)


def _plan(options: ContinuityOptions) -> GridPlan:
    """Return the plan. Raises InputError now for anything that would fail only after much work."""
    plan = GridPlan(
        policies=tuple(dict.fromkeys(policy_named(name).name for name in options.policies)),
        windows=options.windows,
        overheads=options.overheads,
        tariff=tariff_from(options.prices),
        model=options.model,
        reply=options.reply,
        form=options.form,
    )
    if not cells_of(plan):
        raise InputError("every --overhead takes more than 70 % of every --window: name larger windows")
    if options.html is not None:
        check_output(options.html)
    return plan


def _sessions(options: ContinuityOptions) -> list[Session]:
    """Return the sessions, the longest first, with what is known of results that are user messages."""
    found = published(data_folder(options.data), names_listed(options.files), options.half)
    chosen = found[:: QUICK if options.quick else options.step]
    shaped = as_observations if options.observations else observed_in
    return [session for session in map(shaped, chosen) if session.requests]


def _show(
    plan: GridPlan, sessions: Sequence[Session], results: Sequence[CellResult], options: ContinuityOptions
) -> None:
    say = Words(options.language, "continuity")
    if options.html is not None:
        from everlong.lab import continuity_page  # noqa: PLC0415 - only where a page is asked for

        write_page(
            continuity_page(results, language=options.language.code, facts=_facts(plan, sessions, say)), options.html
        )
    if options.as_json:
        print_json(_as_json(plan, sessions, results))
    elif options.html != "-":
        _print(plan, sessions, results, say)


def _as_json(plan: GridPlan, sessions: Sequence[Session], results: Sequence[CellResult]) -> dict[str, object]:
    return {
        "model": plan.model,
        "tariff": plan.tariff.name,
        "reply": plan.reply,
        "overhead_as": plan.form,
        "sessions": len(sessions),
        "observed": sum(bool(session.observations) for session in sessions),
        "results": [asdict(result) for result in results],
    }


# --- the table ------------------------------------------------------------------------------------


def _facts(plan: GridPlan, sessions: Sequence[Session], say: Words) -> tuple[str, ...]:
    observed = sum(bool(session.observations) for session in sessions)
    size = [say.many("sessions", len(sessions)), *([say.many("observed", observed)] if observed else ())]
    around = say("around", form=say(plan.form), reply=amount(plan.reply), name=plan.tariff.name)
    return (say("comma").join(size), around)


def _print(plan: GridPlan, sessions: Sequence[Session], results: Sequence[CellResult], say: Words) -> None:
    out = console()
    out.print(say("title"), style="bold")
    for fact in _facts(plan, sessions, say):
        out.print(fact)
    for policy in plan.policies:
        rows = [result for result in results if result.policy == policy]
        out.print()
        out.print(say("preset", name=policy), style="bold")
        draw(out, [say(name) for name in CONTINUITY_COLUMNS], [_row(result) for result in rows])
        for line in _notes(policy, rows, say):
            out.print(line, style="dim")


def _row(result: CellResult) -> tuple[str, ...]:
    return (
        tokens_short(result.window),
        tokens_short(result.overhead),
        *(_percent(count, result.compactions) for count in (result.task, result.steps, result.words)),
        amount(result.compactions),
        "–" if result.between_median is None else f"{result.between_median:.0f}",
        "–" if result.new_least is None else f"{100 * result.new_least:.0f}",
        *(amount(count) if count else "–" for count in (result.storms, result.refused)),
    )


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:.1f}" if total else "–"


def _notes(policy: str, rows: Sequence[CellResult], say: Words) -> Iterator[str]:
    yield say("columns")
    for row in rows:
        if row.missing:
            misses = [say(f"miss_{name}", n=amount(count)) for name, count in row.missing.items()]
            place = {"window": tokens_short(row.window), "overhead": tokens_short(row.overhead)}
            yield say("missing", list=say("comma").join(misses), **place)
    for key in ("broken", "invalid"):
        count = sum(getattr(row, key) for row in rows)
        if count:
            yield say.many(key, count)
    if policy.partition("@")[0].partition("-")[0] != OURS:
        yield say("document", name=policy)
