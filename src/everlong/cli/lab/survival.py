"""`everlong lab probes`, `edits` and `dialogs`: what survives of real conversations, by strategy and budget."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.lab.options import (
    DATA,
    FILES,
    HALF,
    HTML,
    JOBS,
    JSON,
    STANDARD_INPUT,
    names_listed,
    warn,
)
from everlong.cli.terminal.files import source_bytes, write_page
from everlong.cli.terminal.options import TokenCounts
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, percent, progress, table
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.errors import InputError
from everlong.lab import (
    DIALOGUE_STRATEGIES,
    HALVES,
    WORK_STRATEGIES,
    Cases,
    Conversation,
    Group,
    Job,
    Plan,
    Result,
    Row,
    agents,
    conversations_at,
    conversations_of,
    counter,
    data_folder,
    dialogue_names,
    edit_cases,
    every,
    hidden,
    in_half,
    measured,
    probe_cases,
    probes_in,
    question_cases,
    run,
    save,
    sessions_in,
    strategy_named,
    summed,
)

__all__ = ["dialogs_command", "edits_command", "print_results", "probes_command"]

WORK_BUDGETS = (8_000, 16_000, 32_000, 64_000)
DIALOGUE_BUDGETS = (500, 1_000, 2_000, 4_000, 8_000, 16_000)
#: The second figure of each measure.
SECOND = {"probes": "strict", "edits": "cut", "dialogs": "recall"}
#: The groups into which the cases of a measure can be split.
PARTS = ("source", "kind", "category")

Command = TypeVar("Command", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """The options that every measure takes."""

    half: str
    budgets: tuple[int, ...]
    strategies: tuple[str, ...]
    step: int
    processes: int
    as_json: bool
    html: str | None
    language: Language
    by: str | None = None
    raw_arguments: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """How to save data from the user's own transcripts: where, for which project, and which half."""

    folder: str | None = None
    source: str = ""
    as_half: str | None = None


NOT_SAVED = Saved()

OPTIONS = (
    HALF,
    click.option(
        "--budgets",
        default=(),
        type=TokenCounts(min=1),
        metavar="N,N",
        help="Token budgets to measure (default: 8000 to 64000 for agents, 500 to 16000 for dialogues).",
    ),
    click.option(
        "--strategy",
        "strategies",
        multiple=True,
        metavar="NAME",
        help="A strategy to measure; may be repeated (default: auto and its baselines).",
    ),
    click.option("--by", type=click.Choice(PARTS), help="Add a table with a row for each project, kind or category."),
    click.option(
        "--every",
        "step",
        type=click.IntRange(min=1),
        default=1,
        metavar="N",
        help="Use only every Nth case (default: 1, all of them).",
    ),
    JOBS,
    JSON,
    HTML,
    language_option,
)


def _measure_options(command: Command) -> Command:
    """Add the options that every measure takes."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.command(
    "probes",
    cls=ExampleCommand,
    examples=(
        "everlong lab probes session.jsonl",
        "everlong lab probes ~/.claude/projects --budgets 16000,64000 --jobs 4",
        "everlong lab probes --data lab-data --strategy auto --strategy newest",
    ),
)
@click.argument("transcripts", nargs=-1, metavar="[PATH]...")
@DATA
@FILES
@click.option(
    "--save", "folder", metavar="DIR", help="With PATH: write the conversations and probes to this data folder."
)
@click.option(
    "--source", default="", metavar="NAME", help="With PATH: the project the sessions are from, as owner/name."
)
@click.option(
    "--as-half",
    "as_half",
    type=click.Choice(HALVES[:2]),
    help="With --save: the half that all of them belong to (default: by id).",
)
@click.option(
    "--raw-arguments",
    is_flag=True,
    help="Look for strings in tool-call arguments only as they are sent, with JSON escapes.",
)
@_measure_options
def probes_command(transcripts: tuple[str, ...], data: str | None, files: str, **given: object) -> None:
    """Measure how many strings that the agent used later are still there after a compaction.

    With PATH, the probes come from your own sessions, in any format that everlong reads. PATH is a file, or a folder
    whose conversations form one data set. Without PATH, they come from the data folder. Saved data contains no keys,
    passwords or pictures.
    """
    saved = Saved(**{name: given.pop(name) for name in ("folder", "source", "as_half")})  # type: ignore[arg-type]
    options = _options(given, WORK_STRATEGIES, WORK_BUDGETS)
    if transcripts:
        cases = _own_cases(transcripts, saved, options.half)
        name = "+".join(Path(path).name for path in transcripts)
    elif saved != NOT_SAVED:
        raise click.UsageError("--save, --source and --as-half need a PATH")
    else:
        cases = probe_cases(data_folder(data), names_listed(files), options.half)
        name = "+".join(names_listed(files))
    _report(_measure("probes", name, cases, options), options)


def _own_cases(paths: Sequence[str], saved: Saved, half: str) -> list[Cases]:
    """Return the probes of the user's own transcripts, and save them if requested."""
    if saved.as_half and saved.folder is None:
        raise click.UsageError("--as-half needs --save DIR")
    found = _own_conversations(paths, saved.source)
    chosen = [conversation for conversation in found if in_half({"id": conversation.id}, half)]
    if saved.folder is not None:
        chosen = [hidden(conversation) for conversation in chosen]
    cases = [probes for conversation in chosen if (probes := probes_in(conversation, counter())).cases]
    if saved.folder is not None:
        save(Path(saved.folder), chosen, cases, saved.as_half or "")
    return cases


def _own_conversations(paths: Sequence[str], source: str) -> list[Conversation]:
    files = [path for path in paths if path != STANDARD_INPUT]
    found = conversations_at(files, warn, source) if files else []
    if STANDARD_INPUT in paths:
        read = sessions_in(source_bytes(STANDARD_INPUT), "standard input", warn)
        found += conversations_of(read, source, "standard input")
    return found


@click.command(
    "edits",
    cls=ExampleCommand,
    examples=(
        "everlong lab edits --data lab-data",
        "everlong lab edits --data lab-data --files misc --budgets 32000",
    ),
)
@DATA
@FILES
@_measure_options
def edits_command(data: str | None, files: str, **given: object) -> None:
    """Measure how many texts that the agent replaces next are still there, line by line.

    The conversations come from the data folder.
    """
    options = _options(given, WORK_STRATEGIES, WORK_BUDGETS)
    folder = data_folder(data)
    conversations = chain.from_iterable(agents(folder, name, options.half) for name in names_listed(files))
    _report(_measure("edits", "+".join(names_listed(files)), edit_cases(conversations), options), options)


@click.command(
    "dialogs",
    cls=ExampleCommand,
    examples=(
        "everlong lab dialogs --data lab-data",
        "everlong lab dialogs --data lab-data --files locomo --half confirming",
    ),
)
@DATA
@click.option(
    "--files", default="", metavar="NAME,NAME", help="The data sets to use (default: all in the data folder)."
)
@_measure_options
def dialogs_command(data: str | None, files: str, **given: object) -> None:
    """Measure how many turns that answer a much later question are still there.

    The conversations come from the data folder.
    """
    options = _options(given, DIALOGUE_STRATEGIES, ())
    folder = data_folder(data)
    names = names_listed(files) or dialogue_names(folder)
    if not names:
        raise InputError(f"{folder}: no dialogues there: `everlong lab fetch-data` shows how to get some")
    cases = {name: question_cases(folder, name, options.half) for name in names}
    with_cases = [name for name in names if cases[name]] or names  # a small data set may have no cases in one half
    _report([result for name in with_cases for result in _measure("dialogs", name, cases[name], options)], options)


def _options(given: dict[str, object], strategies: Sequence[str], budgets: tuple[int, ...]) -> MeasureOptions:
    chosen = tuple(dict.fromkeys(given.pop("strategies") or strategies))  # type: ignore[call-overload]
    for name in chosen:
        strategy_named(name)  # raises for a wrong name before anything is read
    return MeasureOptions(
        strategies=chosen,
        budgets=given.pop("budgets") or budgets,  # type: ignore[arg-type]
        **given,  # type: ignore[arg-type]
    )


def _measure(measure: str, data: str, cases: Iterable[Cases], options: MeasureOptions) -> list[Result]:
    chosen = every(cases, options.step)
    if not chosen:
        raise InputError(f"{data or 'no files'}: no cases to measure (--half {options.half})")
    budgets = options.budgets or _useful_budgets(group.conversation for group in chosen)
    plan = Plan(measure, options.strategies, budgets, decoded=not options.raw_arguments)
    jobs = [Job(plan, group) for group in chosen]
    with progress(f"{measure} {data}", sum(len(group.cases) for group in chosen)) as advance:
        outcomes = run(measured, jobs, options.processes, size=_size, report=lambda job: advance(len(job.cases.cases)))
    return summed(plan, data, options.half, len(chosen), chain.from_iterable(outcomes))


def _size(job: Job) -> int:
    return len(job.cases.cases) * len(job.cases.conversation.messages)


def _useful_budgets(conversations: Iterable[Conversation]) -> tuple[int, ...]:
    """Return the usual budgets that are smaller than the longest dialogue."""
    longest = max(counter().messages(conversation.messages) for conversation in conversations)
    return tuple(budget for budget in DIALOGUE_BUDGETS if budget < longest) or DIALOGUE_BUDGETS[:1]


def _report(results: Sequence[Result], options: MeasureOptions) -> None:
    if options.html is not None:
        from everlong.lab import measures_page  # noqa: PLC0415 - only where a page is asked for

        write_page(measures_page(results, language=options.language.code), options.html)
    if options.as_json:
        print_json([asdict(result) for result in results])
    elif options.html != "-":
        print_results(results, options.language, options.by)


# --- the tables ---------------------------------------------------------------------------------


def print_results(results: Sequence[Result], language: Language, by: str | None = None) -> None:
    """Print a table for each data set: a row for each strategy, a column for each budget.

    With `by`, a second table follows with a row for each part of the data set: "source", "kind" or "category".
    """
    by_data: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        by_data.setdefault((result.measure, result.data), []).append(result)
    for group in by_data.values():
        say = Words(language, "survival")
        _print_group(group, say)
        if by:
            _print_parts(group, by, say)


def _print_group(results: Sequence[Result], say: Words) -> None:
    out = console()
    first = results[0]
    out.print(say(first.measure), style="bold")
    total, conversations = say.many("cases", first.total), say.many("conversations", first.conversations)
    head = say("head", data=first.data, half=say(first.half), total=total, conversations=conversations)
    out.print(head)  # names in the data are not markup
    if first.uncut < first.total:
        out.print(say("uncut", share=percent(first.uncut, first.total)))
    columns = (say("strategy"), "", *(_short(row.budget) for row in first.rows))
    out.print(table(columns, (line for result in results for line in _lines(result, say))))
    for result in results:
        for row in result.rows:
            for key, number in (("over", row.over), ("failed", row.failed)):
                if number and result.strategy != "whole":
                    figures = {"budget": row.budget, "total": row.total, key: number}
                    values = {name: amount(figure) for name, figure in figures.items()}
                    out.print(say(key, strategy=result.strategy, **values), style="dim")


def _print_parts(results: Sequence[Result], by: str, say: Words) -> None:
    """Print what survived of each part of a data set, with the strict figure if the measure has one."""
    lines = [line for name in _parts_named(results, by) for line in _part_lines(results, by, name)]
    if not lines:
        return
    columns = (say(f"by_{by}"), say("number"), say("strategy"), *(_short(row.budget) for row in results[0].rows))
    out = console()
    out.print(say("strict_beside") if results[0].measure == "probes" else "", style="dim")
    out.print(table(columns, lines))


def _parts_named(results: Sequence[Result], by: str) -> list[str]:
    return sorted({part.name for result in results for row in result.rows for part in row.groups if part.of == by})


def _part_lines(results: Sequence[Result], by: str, name: str) -> Iterator[tuple[str, ...]]:
    """Yield a line for each strategy. The first line has the name of the part and its size."""
    for at, result in enumerate(results):
        found = [next((part for part in row.groups if (part.of, part.name) == (by, name)), None) for row in result.rows]
        shares = [_share(result.measure, part) for part in found]
        size = max((part.total for part in found if part is not None), default=0)
        yield (name if at == 0 else "", amount(size) if at == 0 else "", result.strategy, *shares)


def _share(measure: str, part: Group | None) -> str:
    """Return a share as text. Example: 82.5 / 71.0"""
    if part is None or not part.total:
        return "–"
    shares = (part.hits, part.strict) if measure == "probes" else (part.hits,)
    return " / ".join(f"{100 * number / part.total:.1f}" for number in shares)


def _lines(result: Result, say: Words) -> Iterator[tuple[str, ...]]:
    """Yield what survived, the second figure, and the time."""
    yield (result.strategy, "%", *(f"{row.percent:.1f}" for row in result.rows))
    yield ("", f"{say(SECOND[result.measure])} %", *(_second(result.measure, row) for row in result.rows))
    yield ("", say("ms"), *(f"{row.milliseconds:.1f}" for row in result.rows))


def _second(measure: str, row: Row) -> str:
    """Return the second figure: without names; for compacted histories; for the evidence of each question."""
    if measure == "dialogs":
        return f"{100 * (row.recall or 0):.1f}"
    if measure == "probes":
        return f"{row.strict_percent:.1f}"
    cut = next((group for group in row.groups if (group.of, group.name) == ("history", "cut")), None)
    return f"{100 * cut.hits / cut.total:.1f}" if cut else "–"


def _short(budget: int) -> str:
    """Return a budget as text. Example: 16000 -> 16k"""
    return f"{budget // 1_000}k" if budget % 1_000 == 0 else str(budget)
