"""`everlong lab replay`: what sessions cost, what they would have cost, and what would have been lost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields

import click
import msgspec

from everlong.cli.groups import ExampleCommand
from everlong.cli.lab.options import (
    DATA,
    HALF,
    HTML,
    JOBS,
    JSON,
    STANDARD_INPUT,
    WORK_FILES,
    names_listed,
    overhead_form,
    warn,
)
from everlong.cli.lab.replay_table import Whose, print_replay
from everlong.cli.terminal.files import check_output, source_bytes, write_page
from everlong.cli.terminal.options import TokenCount, TokenCounts
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, progress
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.errors import InputError
from everlong.lab import (
    COMPARED,
    PAUSES,
    TARIFFS,
    UNCUT,
    OverheadForm,
    Pauses,
    ReplayPlan,
    ReplayResult,
    Session,
    Tariff,
    Terms,
    billed,
    data_folder,
    in_half,
    policy_named,
    published,
    replayed,
    sessions_at,
    sessions_in,
    tariff_from,
    tariff_of,
)
from everlong.windows import window
from everlong.wire import SESSION_FORMATS

__all__ = ["replay_command"]

LEAST_ROOM = 1_000  # tokens of conversation; less does not even hold one question with its answer
USUAL_MODEL = "gpt-4o"
USUAL_PRICES = "anthropic"
SHARES = ("ratio", "kept_percent", "literal_percent", "likely_percent")
WINDOWS = (64_000, 128_000)
_PLACES = [name for name, program in SESSION_FORMATS.items() if program.folders]
HELP = f"""Show what sessions cost, what they would have cost with everlong, and what would have been lost.

PATH is a file, a folder, - for standard input, or the name of a program whose sessions are on this machine:
{", ".join(_PLACES[:-1])} or {_PLACES[-1]}. Without PATH the data folder is replayed. Each request is built as a policy
would send it, and paid at a provider's prices and cache rules. No model is called, and nothing is sent anywhere.
"""
#: What a page shows by default.
PAGE_THRESHOLDS = (0.4, 0.55, 0.7, 0.85, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """The options of the command. `thresholds` are those at which auto is also played."""

    data: str | None
    files: str | None
    half: str
    windows: tuple[int, ...] | None
    model: str | None
    prices: str | None
    policies: tuple[str, ...]
    pauses: Pauses
    overheads: tuple[int, ...]
    form: OverheadForm
    reply: int
    longest: int
    thresholds: tuple[float, ...]
    reading: bool
    processes: int
    as_json: bool
    html: str | None
    language: Language


def _shares(_: click.Context, __: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    """Read shares. Example: ".7,0.4" -> (0.4, 0.7)"""
    if value is None:
        return None
    try:
        return tuple(sorted({float(piece) for piece in value.split(",") if piece.strip()}))
    except ValueError:
        raise click.BadParameter("give shares separated by commas, such as .4,.7") from None


@click.command(
    "replay",
    cls=ExampleCommand,
    help=HELP,
    examples=(
        "everlong lab replay claude-code",
        "everlong lab replay codex --window 128000 --html replay.html",
        "everlong lab replay session.jsonl --policy everlong --policy whole",
        "everlong lab replay claude-code --longest 20 --jobs 4 --lang zh",
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@DATA
@click.option(
    "--files", metavar="NAME,NAME", help=f"The files to read from agents/ in the data folder (default: {WORK_FILES})."
)
@HALF
@click.option(
    "--window",
    "windows",
    type=TokenCounts(min=1),
    metavar="N,N",
    help="Context windows to replay, in tokens, such as 64k,200k (default: the window of the sessions' model, then "
    "64000 and 128000).",
)
@click.option("--model", metavar="NAME", help="Count tokens and pay as for this model (default: the model used most).")
@click.option(
    "--prices",
    metavar="TABLE|FILE",
    help="A table of prices and cache rules, or a JSON file with them (default: the model's).",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    help="A policy to replay: everlong, whole, slide, drop@.95/.3, …; may be repeated (default: nine of them).",
)
@click.option(
    "--pauses",
    type=click.Choice(PAUSES),
    default=PAUSES[0],
    help="Pauses between requests, which decide what the cache still holds: recorded, none, or before every user "
    "turn (default: recorded).",
)
@click.option(
    "--overhead",
    "--front",
    "overheads",
    default="12000",
    type=TokenCounts(min=0),
    metavar="N,N",
    help="Tokens of system text and tools in every request; several are replayed in turn (default: 12000).",
)
@overhead_form("tools")
@click.option(
    "--reply",
    type=TokenCount(min=1),
    default=8_000,
    metavar="N",
    help="Tokens reserved for the answer (default: 8000).",
)
@click.option(
    "--longest",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Replay only the N longest sessions (default: all).",
)
@click.option(
    "--thresholds",
    callback=_shares,
    metavar="N,N",
    help="Also replay auto at these thresholds, from 0.4 to 0.95 (default: five of them with --html, else none).",
)
@click.option("--no-reading", is_flag=True, help="Do not let the agent read again what was lost.")
@JOBS
@JSON
@HTML
@language_option
def replay_command(paths: tuple[str, ...], **given: object) -> None:
    """Replay sessions."""
    if paths and (given["data"] or given["files"]):
        raise click.UsageError("--data and --files choose from the data folder; leave out PATH, which replaces it")
    usual = PAGE_THRESHOLDS if given["html"] is not None else ()
    thresholds = given.pop("thresholds")
    options = ReplayOptions(
        thresholds=usual if thresholds is None else thresholds,  # type: ignore[arg-type]
        longest=given.pop("longest") or 0,  # type: ignore[arg-type]
        reading=not given.pop("no_reading"),
        **given,  # type: ignore[arg-type]
    )
    _replay(paths, options)


@dataclass(frozen=True, slots=True)
class _Names:
    """The policies to play: the named ones, and auto at other thresholds."""

    policies: tuple[str, ...]
    thresholds: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Every policy once."""
        return tuple(dict.fromkeys((*self.policies, *self.thresholds)))


def _replay(paths: Sequence[str], options: ReplayOptions) -> None:
    """Find the sessions, play them, and show the result."""
    say = Words(options.language, "replay")
    names = _check(options)
    say.report_model(options.model or "")
    tariff = None if options.prices is None else tariff_from(options.prices)
    with progress(say("finding"), None):
        sessions = _sessions(paths, options)
    named = options.model or (_most_used(sessions) if paths else USUAL_MODEL)
    own = _own_window(named, options) if paths and options.windows is None else None
    plan = ReplayPlan(
        policies=names.all,
        windows=_windows(own, options),
        tariff=tariff or _prices_of(named, say),
        model=named or USUAL_MODEL,
        reply=options.reply,
        overheads=options.overheads,
        form=options.form,
        pauses=options.pauses,
        reading=options.reading,
    )
    rounds = len(plan.overheads) * (1 + len(plan.windows) * len(plan.policies) - (UNCUT in plan.policies))
    with progress(say("playing"), len(sessions) * rounds) as advance:
        played = replayed(sessions, plan, options.processes, advance)
    results = [result for result in played if result.policy in names.policies]
    thresholds = [result for result in played if result.policy in names.thresholds]
    _show(plan, results, thresholds, options, Whose(yours=bool(paths), window=own))


# --- options -----------------------------------------------------------------------------------


def _check(options: ReplayOptions) -> _Names:
    """Return the policies to play. Raises InputError now for anything that would fail only after much work."""
    most, sizes = max(options.overheads), options.windows or WINDOWS
    for size in sizes:
        if not _has_room(size, options):
            raise InputError(
                f"a window of {amount(size)} tokens is too small: {amount(options.reply)} are reserved for the answer "
                f"(--reply) and {amount(most)} are prompt overhead (--overhead)"
            )
    if options.html is not None:
        check_output(options.html)
    policies = tuple(dict.fromkeys(policy_named(name).name for name in options.policies or COMPARED))
    names = _Names(policies, tuple(f"auto@{share:g}" for share in options.thresholds))
    terms = Terms(
        window=sizes[0],
        tariff=TARIFFS[USUAL_PRICES],
        model=USUAL_MODEL,
        reply=options.reply,
        front=most,
    )
    for name in names.all:
        policy_named(name).begin(terms).close()  # raises if its shares are impossible
    return names


def _has_room(size: int, options: ReplayOptions) -> bool:
    """Return whether a window has space for a conversation besides the reserved answer and the largest overhead."""
    return size - options.reply - max(options.overheads) >= LEAST_ROOM


def _windows(own: int | None, options: ReplayOptions) -> tuple[int, ...]:
    """Return the windows to replay: the given ones, or the model's own and the usual smaller ones."""
    if options.windows:
        return options.windows
    return WINDOWS if own is None else (own, *(size for size in WINDOWS if size < own))


# --- sessions, model, prices, window -----------------------------------------------------------


def _sessions(paths: Sequence[str], options: ReplayOptions) -> list[Session]:
    if not paths:
        names = names_listed(options.files or WORK_FILES)
        return published(data_folder(options.data), names, options.half, options.longest)
    files = [path for path in paths if path != STANDARD_INPUT]
    sessions: list[Session] = []
    if STANDARD_INPUT in paths:
        read = sessions_in(source_bytes(STANDARD_INPUT), "standard input", warn)
        sessions += [session for session in read if session.requests]
    if files:
        sessions += sessions_at(files, warn)
    chosen = [session for session in sessions if in_half({"id": session.facts.id}, options.half)]
    if not chosen:
        raise InputError(f"{', '.join(paths)}: nothing to replay (--half {options.half})")
    return sorted(chosen, key=lambda session: -session.facts.tokens)[: options.longest] if options.longest else chosen


def _most_used(sessions: Sequence[Session]) -> str:
    """Return the model of most requests, by the sessions' records or the names in them; "" if there is none."""
    used: Counter[str] = Counter()
    for session in sessions:
        for record in session.facts.recorded:
            used[record.model] += record.requests
        if not session.facts.recorded and session.models:
            used[session.models[0]] += len(session.requests)
    return next((model for model, _ in used.most_common() if model), "")


def _own_window(model: str, options: ReplayOptions) -> int | None:
    """Return the context window of the model; None if the registry does not know it or it is too small to replay."""
    known = window(model) if model else None
    return known.context if known and known.known and _has_room(known.context, options) else None


def _prices_of(model: str, say: Words) -> Tariff:
    """Return the prices of the model. If none are known, warn and return the usual ones."""
    if model:
        try:
            return tariff_of(model)
        except InputError:
            pass
    warn(say("no_prices", model=model, usual=USUAL_PRICES) if model else say("no_model", usual=USUAL_PRICES))
    return TARIFFS[USUAL_PRICES]


# --- the result --------------------------------------------------------------------------------


def _show(
    plan: ReplayPlan,
    results: Sequence[ReplayResult],
    thresholds: Sequence[ReplayResult],
    options: ReplayOptions,
    whose: Whose,
) -> None:
    if options.html is not None:
        from everlong.lab import replay_page  # noqa: PLC0415 - only where a page is asked for

        say = Words(options.language, "replay")
        listed = " / ".join(map(amount, plan.overheads))
        page = replay_page(
            results,
            language=options.language.code,
            facts=(say("counted", model=plan.model), say("around", front=listed, reply=amount(plan.reply))),
            thresholds=thresholds,
            tariffs=(plan.tariff,),
            pauses=plan.pauses,
        )
        write_page(page, options.html)
    if options.as_json:
        print_json(_as_json(plan, results, thresholds))
    elif options.html != "-":
        print_replay(plan, results, thresholds, options.language, whose)


def _as_json(
    plan: ReplayPlan, results: Sequence[ReplayResult], thresholds: Sequence[ReplayResult]
) -> dict[str, object]:
    sessions = [played.session for played in results[0].played]
    record = billed(sessions)
    return {
        "model": plan.model,
        "tariff": msgspec.to_builtins(plan.tariff),
        "windows": list(plan.windows),
        "front": plan.overheads[0],
        "overheads": list(plan.overheads),
        "overhead_as": plan.form,
        "reply": plan.reply,
        "pauses": plan.pauses,
        "reading": plan.reading,
        "recorded": [] if record is None else msgspec.to_builtins(record.models),
        "sessions": msgspec.to_builtins(sessions),
        "results": [_described(result) for result in results],
        "thresholds": [_described(result) for result in thresholds],
    }


def _described(result: ReplayResult) -> dict[str, object]:
    """Return every figure and share of a result; a conversation is named by its id."""
    figures = {field.name: getattr(result, field.name) for field in fields(result) if field.name != "played"}
    figures["needless"] = list(result.needless)
    shares = {name: round(getattr(result, name), 4) for name in SHARES}
    sessions = [
        {
            "session": played.session.id,
            "dollars": played.dollars,
            "paid": msgspec.to_builtins(played.paid),
            "probes": msgspec.to_builtins(played.probes),
        }
        for played in result.played
    ]
    return {**figures, **shares, "played": sessions}
