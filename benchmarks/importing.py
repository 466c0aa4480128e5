"""What importing costs before anything is done, and what an installation weighs."""

import resource
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.environments import CORE, ENVIRONMENTS, ROOT, Environment, installed, megabytes, settings, tell
from benchmarks.tables import Table, figure

__all__ = ["run"]

MOST_MILLISECONDS, MOST_MEGABYTES = 60, 60

PROBE = "import sys; bare = len(sys.modules); {statement}; print(len(sys.modules) - bare)"


@dataclass(frozen=True, slots=True)
class Row:
    """A statement and where it runs."""

    title: str
    environment: Environment
    statement: str


OURS = Row("**everlong** `import everlong`", CORE, "import everlong")
ROWS = (
    OURS,
    Row("**everlong**, `fit`, `count` and `window` loaded", CORE, "from everlong import fit, count, window"),
    Row("tiktoken", ENVIRONMENTS["tiktoken"], "import tiktoken"),
    Row("langchain `trim_messages`", ENVIRONMENTS["langchain"], "from langchain_core.messages import trim_messages"),
    Row("langchain middleware", ENVIRONMENTS["langchain"], "import langchain.agents.middleware"),
    Row("langmem", ENVIRONMENTS["langmem"], "import langmem.short_term"),
    Row("pydantic-ai-harness", ENVIRONMENTS["pydantic-ai"], "import pydantic_ai_harness.compaction"),
    Row("openai-agents", ENVIRONMENTS["openai-agents"], "import agents"),
    Row("strands", ENVIRONMENTS["strands"], "import strands"),
    Row("headroom", ENVIRONMENTS["headroom"], "from headroom import compress"),
    Row("litellm", ENVIRONMENTS["litellm"], "import litellm"),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU milliseconds above those of an interpreter that imports nothing, modules loaded, MB installed."""

    milliseconds: float
    modules: int
    megabytes: float


def run(*, quick: bool) -> list[Table]:
    """Each statement beside a bare interpreter of the same environment, the two in turn."""
    costs = {row: cost for row in ROWS if installed(row.environment) and (cost := _cost(row, 3 if quick else 7))}
    rows = tuple(
        (row.title, figure(cost.milliseconds), f"{cost.modules:,}", figure(cost.megabytes))
        for row, cost in costs.items()
    )
    notes = [
        "CPU time above that of an interpreter that imports nothing; MB of site-packages without pip and setuptools, "
        "for everlong its dependencies and its source."
    ]
    if OURS in costs:
        cost = costs[OURS]
        met = cost.milliseconds <= MOST_MILLISECONDS and cost.megabytes <= MOST_MEGABYTES
        notes.append(
            f"Aim: at most {MOST_MILLISECONDS} ms and {MOST_MEGABYTES} MB. "
            f"everlong: {figure(cost.milliseconds)} ms and {figure(cost.megabytes)} MB, {'met' if met else 'NOT met'}."
        )
    head = ("", "import, CPU ms", "modules", "installed, MB")
    data = {
        row.title: {"ms": cost.milliseconds, "modules": cost.modules, "mb": cost.megabytes}
        for row, cost in costs.items()
    }
    return [Table("Importing and installing", head, rows, tuple(notes), data)]


def _cost(row: Row, times: int) -> Cost | None:
    tell(f"import: {row.title}")
    first = _start(row.environment, PROBE.format(statement=row.statement))  # writes what Python keeps compiled
    if first is None:
        return None
    bare, full = [], []
    for _ in range(times):
        bare.append(_seconds(row.environment, PROBE.format(statement="pass")))
        full.append(_seconds(row.environment, PROBE.format(statement=row.statement)))
    return Cost((median(full) - median(bare)) * 1e3, int(first), _weight(row.environment))


def _seconds(environment: Environment, code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _start(environment, code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _start(environment: Environment, code: str) -> str | None:
    """What the code prints last, or None, after one line, if it fails."""
    done = subprocess.run(
        [str(environment.python), "-c", code], env=settings(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        tell(f"left out: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}")
        return None
    return done.stdout.split()[-1]


def _weight(environment: Environment) -> float:
    return megabytes(environment) + (_folder(ROOT / "src") if environment is CORE else 0.0)


def _folder(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
