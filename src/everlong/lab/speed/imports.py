"""The benchmark of imports: what an import costs before any work is done, and the size of an installation."""

import resource
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from everlong.lab.environments import CORE, ENVIRONMENTS, HERE, PACKAGE, Environment
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.tables import Shown, Table, figure

__all__ = ["run"]

MOST_MILLISECONDS, MOST_MEGABYTES = 60, 60

PROBE = "import sys; bare = len(sys.modules); {statement}; print(len(sys.modules) - bare)"


@dataclass(frozen=True, slots=True)
class ImportRow:
    """A statement and where it runs."""

    title: str
    environment: Environment
    statement: str


OURS = ImportRow("**everlong** `import everlong`", CORE, "import everlong")
ROWS = (
    OURS,
    ImportRow("**everlong**, `fit`, `count` and `window` loaded", CORE, "from everlong import fit, count, window"),
    ImportRow("tiktoken", ENVIRONMENTS["tiktoken"], "import tiktoken"),
    ImportRow(
        "langchain `trim_messages`", ENVIRONMENTS["langchain"], "from langchain_core.messages import trim_messages"
    ),
    ImportRow("langchain middleware", ENVIRONMENTS["langchain"], "import langchain.agents.middleware"),
    ImportRow("langmem", ENVIRONMENTS["langmem"], "import langmem.short_term"),
    ImportRow("pydantic-ai-harness", ENVIRONMENTS["pydantic-ai"], "import pydantic_ai_harness.compaction"),
    ImportRow("openai-agents", ENVIRONMENTS["openai-agents"], "import agents"),
    ImportRow("strands", ENVIRONMENTS["strands"], "import strands"),
    ImportRow("headroom", ENVIRONMENTS["headroom"], "from headroom import compress"),
    ImportRow("litellm", ENVIRONMENTS["litellm"], "import litellm"),
)


@dataclass(frozen=True, slots=True)
class ImportCost:
    """CPU milliseconds beyond those of a bare interpreter, modules loaded, and MB installed if known."""

    milliseconds: float
    modules: int
    megabytes: float | None


def run(bench: Bench) -> list[Table]:
    """Time each statement and a bare interpreter of the same environment in turn."""
    costs = {
        row: cost for row in ROWS if (place := bench.place(row.environment)) and (cost := _cost(bench, row, place))
    }
    rows = tuple(
        (row.title, figure(cost.milliseconds), f"{cost.modules:,}", _size(cost.megabytes))
        for row, cost in costs.items()
    )
    notes = [
        "CPU time above that of an interpreter that imports nothing; MB of site-packages without pip and setuptools, "
        "for everlong its dependencies and its source."
    ]
    if OURS in costs:
        notes.append(_verdict(costs[OURS]))
    head = ("", "import, CPU ms", "modules", "installed, MB")
    data = {
        row.title: {"ms": cost.milliseconds, "modules": cost.modules, "mb": cost.megabytes}
        for row, cost in costs.items()
    }
    times = tuple(cost.milliseconds for cost in costs.values())
    shown = Shown(head[1], times, tuple(f"{figure(time)} ms" for time in times))
    return [Table("Importing and installing", head, rows, tuple(notes), data, shown)]


def _verdict(cost: ImportCost) -> str:
    met = "met" if cost.milliseconds <= MOST_MILLISECONDS and (cost.megabytes or 0) <= MOST_MEGABYTES else "NOT met"
    if cost.megabytes is None:
        return f"Aim: at most {MOST_MILLISECONDS} ms. everlong: {figure(cost.milliseconds)} ms, {met}."
    return (
        f"Aim: at most {MOST_MILLISECONDS} ms and {MOST_MEGABYTES} MB. "
        f"everlong: {figure(cost.milliseconds)} ms and {figure(cost.megabytes)} MB, {met}."
    )


def _size(megabytes: float | None) -> str:
    return "–" if megabytes is None else figure(megabytes)


def _cost(bench: Bench, row: ImportRow, place: Environment) -> ImportCost | None:
    bench.report(f"import: {row.title}")
    first = _start(bench, place, PROBE.format(statement=row.statement))  # also writes the compiled files
    if first is None:
        return None
    bare, full = [], []
    for _ in range(3 if bench.quick else 7):
        bare.append(_seconds(bench, place, PROBE.format(statement="pass")))
        full.append(_seconds(bench, place, PROBE.format(statement=row.statement)))
    return ImportCost((median(full) - median(bare)) * 1e3, int(first), _weight(bench, place))


def _seconds(bench: Bench, environment: Environment, code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _start(bench, environment, code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _start(bench: Bench, environment: Environment, code: str) -> str | None:
    """Return what the code prints last. Report one line and return None if it fails."""
    command = [str(bench.environments.python(environment)), "-c", code]
    done = subprocess.run(command, env=bench.environments.settings(), capture_output=True, text=True, check=False)
    if done.returncode:
        bench.report(f"left out: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}")
        return None
    return done.stdout.split()[-1]


def _weight(bench: Bench, environment: Environment) -> float | None:
    """Return the size in MB; None for the running interpreter, which may have anything else installed."""
    if environment == HERE:
        return None
    return bench.environments.megabytes(environment) + (_folder(PACKAGE) if environment == CORE else 0.0)


def _folder(folder: Path) -> float:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sum(path.stat().st_size for path in files) / 1e6
