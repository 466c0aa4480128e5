"""Do the tests notice a bug? Changes one line of the source at a time and runs the tests that should fail.

    python scripts/mutants.py [--seed N] [--minutes 20] [--package engine ...]

Draws a seeded sample of single-line changes: an inverted comparison, a number plus one, `and` for `or`, `min` for
`max`, a sign, a removed `not`, a flag. The packages take turns. Each change is tried in a copy of the repository with
its package's tests (those that name the changed module first) and the requirement, failure and property tests that
import the package. Prints each survivor and the score by package. A run that hangs counts as noticed.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Without packages that are mostly text, pages or programs that run elsewhere.
PACKAGES = "agent compress core engine gateway llm relevance store summarize tokens web windows wire".split()  # noqa: SIM905
COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
OPERATOR = re.compile(r"not in|is not|[<>=!]=|[<>+-]|in|is|and|or")
SECONDS_A_RUN = 240  # for the tests of one mutant; a longer run counts as hanging
SMALL = 10  # larger numbers are chosen sizes; one more changes nothing
BROWSER = "page"  # tests with a browser are slow, and the page is not changed here


@dataclass(frozen=True)
class Mutant:
    """One changed line."""

    package: str
    path: Path
    line: int
    before: str
    after: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.before} -> {self.after}"


def mutants_of(package: str, path: Path) -> Iterator[Mutant]:
    """Yield every possible change of a module."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        for (row, first), (last_row, last), new in changes(node):
            if row != last_row:
                continue
            line = lines[row - 1].encode()
            old = line[first:last].decode()
            written = OPERATOR.sub(lambda _: new, old, count=1) if OPERATOR.fullmatch(old.strip(" ()")) else new  # noqa: B023
            text = "".join((*lines[: row - 1], (line[:first] + written.encode() + line[last:]).decode(), *lines[row:]))
            yield Mutant(package, path, row, old.strip(), new.strip(), text)


Place = tuple[int, int]


def changes(node: ast.AST) -> Iterator[tuple[Place, Place, str]]:
    """Yield where to change a node, and the new text. The place of an operator is between its operands."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARED:
            yield _end(left), _start(right), COMPARED[type(op)]
        case ast.BoolOp(op=op, values=[first, second, *_]):
            yield _end(first), _start(second), "or" if isinstance(op, ast.And) else "and"
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right) if not _words(left, right):
            yield _end(left), _start(right), "-" if isinstance(op, ast.Add) else "+"
        case ast.UnaryOp(op=ast.Not()):
            yield _start(node), (node.lineno, node.col_offset + len("not")), ""
        case ast.Constant(value=bool() as value):
            yield _start(node), _end(node), str(not value)
        case ast.Constant(value=int() as value) if value < SMALL:
            yield _start(node), _end(node), str(value + 1)
        case ast.Call(func=ast.Name(id="min" | "max" as name) as called):
            yield _start(called), _end(called), "max" if name == "min" else "min"
        case _:
            return


def _words(*nodes: ast.expr) -> bool:
    return any(isinstance(node, ast.JoinedStr | ast.Constant) and not _number(node) for node in nodes)


def _number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _start(node: ast.expr) -> Place:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> Place:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def drawn(seed: int, packages: list[str]) -> Iterator[Mutant]:
    """Yield each mutant once, one package after the other."""
    dice = random.Random(seed)
    stock: dict[str, list[Mutant]] = {}
    for package in packages:
        paths = sorted((ROOT / "src" / "everlong" / package).rglob("*.py"))
        every = [mutant for path in paths if "node_modules" not in path.parts for mutant in mutants_of(package, path)]
        dice.shuffle(every)
        stock[package] = every
    while any(stock.values()):
        for package in packages:
            if stock[package]:
                yield stock[package].pop()


def tests_for(mutant: Mutant) -> list[str]:
    """Return the test files that should notice, most relevant first."""
    module = ".".join(mutant.path.relative_to(ROOT / "src").with_suffix("").parts)
    own = sorted((ROOT / "tests" / mutant.package).rglob("test_*.py"))
    beside = [
        path for name in ("requirements", "failures", "properties") for path in (ROOT / "tests" / name).glob("*.py")
    ]
    using = [path for path in sorted(beside) if f"everlong.{mutant.package}" in path.read_text(encoding="utf-8")]
    chosen = [path for path in (*own, *using) if BROWSER not in path.stem]
    chosen.sort(key=lambda path: module not in path.read_text(encoding="utf-8"))
    return [path.relative_to(ROOT).as_posix() for path in chosen]


def noticed(mutant: Mutant, copy: Path) -> bool:
    """Return whether a test fails when the line is changed."""
    place = copy / mutant.path.relative_to(ROOT)
    original = place.read_bytes()
    place.write_text(mutant.text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", "-p", "no:cacheprovider", *tests_for(mutant)]
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=SECONDS_A_RUN, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        place.write_bytes(original)
    return done.returncode == 1 or done.returncode == 2


def main() -> int:
    """Try mutants until the time is over; return 1 if a package with ten or more has a score below nine in ten."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--package", nargs="*", choices=PACKAGES, default=list(PACKAGES))
    asked = parser.parse_args()
    until = time.monotonic() + 60 * asked.minutes
    score: dict[str, list[bool]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "everlong"
        ignored = shutil.ignore_patterns(".git", ".venv", ".bench", "node_modules", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, copy, ignore=ignored, symlinks=True)
        for mutant in drawn(asked.seed, asked.package):
            if time.monotonic() > until:
                break
            seen = noticed(mutant, copy)
            score[mutant.package].append(seen)
            print(f"{'noticed ' if seen else 'SURVIVED'} {mutant.name}", flush=True)
    print()
    for package, results in sorted(score.items()):
        print(f"{package:12} {sum(results):3} of {len(results)}")
    every = [seen for results in score.values() for seen in results]
    print(f"{'all':12} {sum(every):3} of {len(every)}")
    return int(any(len(results) >= 10 and sum(results) < 0.9 * len(results) for results in score.values()))


if __name__ == "__main__":
    sys.exit(main())
