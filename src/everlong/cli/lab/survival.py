"""`everlong lab probes`, `edits` and `dialogs`: what survives of real conversations, by strategy and budget."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

import click

from everlong.cli.lab.options import DATA, HALF, HTML, JOBS, JSON, WORK_FILES, names_listed, tokens_listed
from everlong.cli.terminal.files import source_bytes, write_page
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, percent, progress, table
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.errors import InputError
from everlong.lab import (
    DIALOGUE_STRATEGIES,
    WORK_STRATEGIES,
    Cases,
    Conversation,
    Job,
    Plan,
    Result,
    Row,
    agents,
    conversations_in,
    counter,
    data_folder,
    dialogue_names,
    edit_cases,
    every,
    in_half,
    measured,
    probe_cases,
    probes_in,
    question_cases,
    run,
    save,
    strategy_named,
    summed,
)

__all__ = ["dialogs_command", "edits_command", "print_results", "probes_command"]

WORK_BUDGETS = (8_000, 16_000, 32_000, 64_000)
DIALOGUE_BUDGETS = (500, 1_000, 2_000, 4_000, 8_000, 16_000)
#: The figure beside the first, by measure.
SECOND = {"probes": "strict", "edits": "cut", "dialogs": "recall"}

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
    raw_arguments: bool = False


OPTIONS = (
    HALF,
    click.option("--budgets", default="", callback=tokens_listed, metavar="N,N", help="Tokens that may be sent."),
    click.option("--strategy", "strategies", multiple=True, metavar="NAME", help="What to measure; may be repeated."),
    click.option("--every", "step", type=click.IntRange(min=1), default=1, metavar="N", help="Only every Nth case."),
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


@click.command("probes")
@click.argument("transcripts", nargs=-1, metavar="[FILE]...")
@DATA
@click.option("--files", default=WORK_FILES, metavar="NAME,NAME", help=f"Files in agents/ (default: {WORK_FILES}).")
@click.option("--save", "folder", metavar="DIR", help="With FILE: write the conversations and probes as a data folder.")
@click.option("--raw-arguments", is_flag=True, help="Arguments of calls count only as they are sent, escapes and all.")
@_measure_options
def probes_command(
    transcripts: tuple[str, ...], data: str | None, files: str, folder: str | None, **given: object
) -> None:
    """Strings that the agent used later: are they still there?

    With FILE, probes are made from your own transcripts, in any format that everlong reads.
    """
    options = _options(given, WORK_STRATEGIES, WORK_BUDGETS)
    if transcripts:
        conversations = [
            conversation for path in transcripts for conversation in conversations_in(source_bytes(path), path)
        ]
        chosen = [conversation for conversation in conversations if in_half(conversation.id, options.half)]
        cases = [probes for conversation in chosen if (probes := probes_in(conversation, counter())).cases]
        if folder is not None:
            save(Path(folder), chosen, cases)
        name = "+".join(Path(path).name for path in transcripts)
    else:
        if folder is not None:
            raise click.UsageError("--save writes what was made from FILE; name one")
        cases = probe_cases(data_folder(data), names_listed(files), options.half)
        name = "+".join(names_listed(files))
    _report(_measure("probes", name, cases, options), options)


@click.command("edits")
@DATA
@click.option("--files", default=WORK_FILES, metavar="NAME,NAME", help=f"Files in agents/ (default: {WORK_FILES}).")
@_measure_options
def edits_command(data: str | None, files: str, **given: object) -> None:
    """Texts that the agent replaces next: are they still there, line after line?"""
    options = _options(given, WORK_STRATEGIES, WORK_BUDGETS)
    folder = data_folder(data)
    conversations = chain.from_iterable(agents(folder, name, options.half) for name in names_listed(files))
    _report(_measure("edits", "+".join(names_listed(files)), edit_cases(conversations), options), options)


@click.command("dialogs")
@DATA
@click.option("--files", default="", metavar="NAME,NAME", help="Data sets (default: all that are there).")
@_measure_options
def dialogs_command(data: str | None, files: str, **given: object) -> None:
    """Turns that answer a question asked much later: are they still there?"""
    options = _options(given, DIALOGUE_STRATEGIES, ())
    folder = data_folder(data)
    names = names_listed(files) or dialogue_names(folder)
    if not names:
        raise InputError(f"{folder}: no dialogues; docs/lab.md describes the data folder")
    cases = {name: question_cases(folder, name, options.half) for name in names}
    with_cases = [name for name in names if cases[name]] or names  # a small data set may have nothing in a half
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
        raise InputError(f"{data}: nothing to measure ({options.half})")
    budgets = options.budgets or _useful_budgets(group.conversation for group in chosen)
    plan = Plan(measure, options.strategies, budgets, decoded=not options.raw_arguments)
    jobs = [Job(plan, group) for group in chosen]
    with progress(f"{measure} {data}", sum(len(group.cases) for group in chosen)) as advance:
        outcomes = run(measured, jobs, options.processes, size=_size, report=lambda job: advance(len(job.cases.cases)))
    return summed(plan, data, options.half, len(chosen), chain.from_iterable(outcomes))


def _size(job: Job) -> int:
    return len(job.cases.cases) * len(job.cases.conversation.messages)


def _useful_budgets(conversations: Iterable[Conversation]) -> tuple[int, ...]:
    """Return the usual budgets for dialogues that are smaller than the longest one."""
    longest = max(counter().messages(conversation.messages) for conversation in conversations)
    return tuple(budget for budget in DIALOGUE_BUDGETS if budget < longest) or DIALOGUE_BUDGETS[:1]


def _report(results: Sequence[Result], options: MeasureOptions) -> None:
    if options.html is not None:
        from everlong.lab import measures_page  # noqa: PLC0415 - only where a page is asked for

        write_page(measures_page(results, language=options.language.code), options.html)
    if options.as_json:
        print_json([asdict(result) for result in results])
    elif options.html != "-":
        print_results(results, options.language)


# --- the tables ---------------------------------------------------------------------------------


def print_results(results: Sequence[Result], language: Language) -> None:
    """Print a table for each data set: a row for each strategy, a column for each budget."""
    by_data: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        by_data.setdefault((result.measure, result.data), []).append(result)
    for group in by_data.values():
        _print_group(group, Words(language, "survival"))


def _print_group(results: Sequence[Result], say: Words) -> None:
    out = console()
    first = results[0]
    out.print(say(first.measure), style="bold")
    total, conversations = say.many("cases", first.total), say.many("conversations", first.conversations)
    head = say("head", data=first.data, half=say(first.half), total=total, conversations=conversations)
    out.print(head, markup=False)  # names of data are data
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


def _lines(result: Result, say: Words) -> Iterator[tuple[str, ...]]:
    """Yield what survived, the figure beside it, and the time."""
    yield (result.strategy, "%", *(f"{row.percent:.1f}" for row in result.rows))
    yield ("", f"{say(SECOND[result.measure])} %", *(_second(result.measure, row) for row in result.rows))
    yield ("", say("ms"), *(f"{row.milliseconds:.1f}" for row in result.rows))


def _second(measure: str, row: Row) -> str:
    """Return the second figure: without names alone; of histories that were cut; of each question's evidence."""
    if measure == "dialogs":
        return f"{100 * (row.recall or 0):.1f}"
    if measure == "probes":
        return f"{row.strict_percent:.1f}"
    cut = next((group for group in row.groups if (group.of, group.name) == ("history", "cut")), None)
    return f"{100 * cut.hits / cut.total:.1f}" if cut else "–"


def _short(budget: int) -> str:
    """Example: 16000 -> 16k"""
    return f"{budget // 1_000}k" if budget % 1_000 == 0 else str(budget)
