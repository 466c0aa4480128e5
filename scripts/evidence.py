"""Measures the tables of docs/lab/evidence.md, each with the command above it.

.venv/bin/python scripts/evidence.py --data DIR [--only NAME] [--write docs/lab/evidence.md] [--jobs 2]

`everlong lab fetch-data` says how to get the data. A table with missing data stays unchanged and is reported.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORK = ("auto", "newest", "half-bm25")
TALK = ("auto", "newest", "user-newest", "bm25", "bm25-neighbours")

#: Projects that were never used for tuning; `everlong lab fetch-data` lists them.
PROJECTS = "safecast-map-MCP,cipher-box,agentv,gatomia-vscode,pi.dev,gaia,java-other,django"


@dataclass(frozen=True, slots=True)
class Figures:
    """One table of the page: the measure, its data and the strategies to compare."""

    name: str
    measure: str
    files: str
    budgets: tuple[int, ...]
    strategies: tuple[str, ...]
    half: str = "all"
    step: int = 1

    @property
    def command(self) -> list[str]:
        """The arguments of `everlong`, without the data folder."""
        budgets = ",".join(map(str, self.budgets))
        asked = [word for name in self.strategies for word in ("--strategy", name)]
        step = ["--every", str(self.step)] if self.step > 1 else []
        half = ["--half", self.half] if self.half != "all" else []
        return ["lab", self.measure, "--files", self.files, *half, "--budgets", budgets, *step, *asked]


TABLES = (
    Figures("assistant-confirming", "dialogs", "beam_100k", (8_000, 16_000, 32_000), TALK, "confirming"),
    Figures("assistant-tuning", "dialogs", "beam_100k", (8_000, 16_000, 32_000), TALK, "tuning"),
    Figures("assistant-words", "dialogs", "assistant_words", (8_000, 16_000, 32_000), TALK),
    Figures("assistant-projects", "dialogs", "realmem", (8_000, 16_000, 32_000), TALK),
    Figures("people", "dialogs", "locomo", (2_000, 4_000, 8_000, 16_000), TALK),
    Figures("people-unseen", "dialogs", "locomo_rest", (2_000, 4_000, 8_000, 16_000), TALK),
    Figures("people-real", "dialogs", "realtalk", (2_000, 4_000, 8_000, 16_000), TALK),
    Figures("people-hints", "dialogs", "locomo_plus", (2_000, 4_000, 8_000), TALK),
    Figures("meetings", "dialogs", "qmsum", (2_000, 4_000, 8_000), TALK),
    Figures("chinese-meetings", "dialogs", "zh_vcsum", (1_000, 2_000, 4_000), TALK),
    Figures("chinese-companion", "dialogs", "zh_memorybank", (500, 1_000, 2_000), TALK),
    Figures("chinese-notes", "dialogs", "zh_madial", (500, 1_000, 2_000), TALK),
    Figures("work", "probes", "claude_code,misc", (8_000, 16_000, 32_000), WORK),
    Figures("work-confirming", "probes", "claude_code,misc", (8_000, 16_000, 32_000), WORK, "confirming"),
    Figures("projects-confirming", "probes", PROJECTS, (8_000, 16_000, 32_000), WORK),
    Figures("edits", "edits", "claude_code,misc", (8_000, 16_000, 32_000), WORK, step=4),
)


def main() -> None:
    """Measure the chosen tables, print them, and write them into the page."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--data", required=True, type=Path, help="the data folder")
    reader.add_argument("--only", action="append", choices=[table.name for table in TABLES], help="may be repeated")
    reader.add_argument("--write", type=Path, help="the page whose tables are replaced")
    reader.add_argument("--jobs", default="2", help="processes")
    given = reader.parse_args()
    for table in TABLES:
        if given.only and table.name not in given.only:
            continue
        shown = measure(table, given.data, given.jobs)
        if shown is None:
            print(f"{table.name}: left as it was", file=sys.stderr)
            continue
        print(f"{table.name}\n{shown}\n", flush=True)
        if given.write is not None:
            place(given.write, table.name, shown)


def measure(table: Figures, data: Path, jobs: str) -> str | None:
    """Return the table as Markdown; None if it could not be measured, for the reason that the command prints."""
    command = [sys.executable, "-m", "everlong", *table.command]
    done = subprocess.run(
        [*command, "--data", str(data), "--jobs", jobs, "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        return None
    results: list[dict[str, Any]] = json.loads(done.stdout)
    asked = " ".join(table.command[: table.command.index("--strategy")])
    return f"`everlong {asked}`: {results[0]['total']} cases\n\n{as_markdown(results)}"


def as_markdown(results: Sequence[dict[str, Any]]) -> str:
    """Return one row per strategy: percent found, in brackets the mean share or the strict share, and CPU time."""
    budgets = [row["budget"] for row in results[0]["rows"]]
    lines = [
        f"| | {' | '.join(f'{budget / 1000:g}k' for budget in budgets)} | ms |",
        f"| --- |{' --- |' * (len(budgets) + 1)}",
    ]
    for result in results:
        cells = [_cell(row) for row in result["rows"]]
        times = " / ".join(f"{row['milliseconds']:.0f}" for row in result["rows"])
        lines.append(f"| `{result['strategy']}` | {' | '.join(cells)} | {times} |")
    return "\n".join(lines)


def _cell(row: dict[str, Any]) -> str:
    total = row["total"]
    beside = row["recall"] if row["recall"] is not None else row["strict"] / total
    over = f", {row['over']} over" if row["over"] else ""
    return f"{100 * row['hits'] / total:.1f} ({100 * beside:.1f}){over}"


def place(page: Path, name: str, shown: str) -> None:
    """Replace the text between the marks of a table."""
    marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    text = page.read_text(encoding="utf-8")
    if not marks.search(text):
        raise SystemExit(f"{page}: no place for {name}; it is between <!-- {name} --> and <!-- end -->")
    page.write_text(marks.sub(lambda found: f"{found[1]}{shown}\n{found[2]}", text), encoding="utf-8")


if __name__ == "__main__":
    main()
