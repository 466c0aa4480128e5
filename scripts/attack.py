"""Attack our own surfaces with hostile input and count what should not happen.

    python scripts/attack.py                                   every surface, as long as `make attack` may take
    python scripts/attack.py formats --inputs 100000           one surface, this many inputs per row
    python scripts/attack.py gateway --seconds 60 --seed 7     at most this long per row, with other inputs

Prints one row per target: inputs, valid answers, clear refusals, findings. Each finding is shrunk and written to a file
with the number that reproduces its input. The exit code is 1 if there is a finding.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the attacks are in the folder of the tests

from tests.attack import fuzz_formats  # noqa: E402 - see above
from tests.attack.fuzz_app import attack_app  # noqa: E402
from tests.attack.fuzz_gateway import attack_engine, attack_gateway  # noqa: E402

NUMBERS_A_SEED = 10_000_000


class Finding(Protocol):
    """Something that should not have happened: the input's number, what was seen, and the body that caused it."""

    @property
    def number(self) -> int: ...
    @property
    def said(self) -> str: ...
    @property
    def body(self) -> Any: ...


@dataclass(frozen=True)
class Target:
    """One row: what is attacked, a function that yields the outcome of each input, and one that shrinks a finding."""

    name: str
    outcomes: Callable[[Iterable[int]], Iterator[str | Finding]]
    shrunk: Callable[[Any], Finding] = lambda finding: finding


@dataclass
class Row:
    """The outcomes of one target."""

    name: str
    inputs: int = 0
    valid: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)


def formats() -> list[Target]:
    """Return the four wire formats, attacked through `fit`."""

    def target(fmt: str) -> Target:
        return Target(
            fmt, lambda numbers: (fuzz_formats.attack(fmt, number) for number in numbers), fuzz_formats.shrunk
        )

    return [target(fmt) for fmt in fuzz_formats.NAMES]


def gateway() -> list[Target]:
    """Return the attacks on the gateway over HTTP; the provider behind it keeps what it receives."""
    return [Target("bodies", attack_gateway), Target("the engine's bodies", attack_engine)]


def app() -> list[Target]:
    """Return the attack on every route of the app's API over HTTP."""
    return [Target("requests", attack_app)]


#: Each surface: its targets, and the default number of inputs per target.
SURFACES: Mapping[str, tuple[Callable[[], list[Target]], int]] = {
    "formats": (formats, 100_000),
    "gateway": (gateway, 20_000),
    "app": (app, 10_000),
}


def attacked(target: Target, numbers: Iterable[int], seconds: float) -> Row:
    """Attack one target until the inputs or the seconds run out."""
    row, started = Row(target.name), time.monotonic()
    for outcome in target.outcomes(numbers):
        row.inputs += 1
        if outcome == fuzz_formats.VALID:
            row.valid += 1
        elif isinstance(outcome, str):
            row.refused += 1
        else:
            row.findings.append(outcome)
        row.seconds = time.monotonic() - started
        if row.seconds > seconds:
            break
    return row


def written(surface: str, target: Target, finding: Finding, folder: Path) -> Path:
    """Shrink a finding and write it to a separate file."""
    small = target.shrunk(finding)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{surface}-{target.name}-{finding.number}.json"
    case = {"surface": surface, "target": target.name, "number": finding.number, "said": small.said, "body": small.body}
    path.write_text(json.dumps(case, indent=2, default=repr, skipkeys=True) + "\n", encoding="utf-8")
    return path


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("surfaces", nargs="*", choices=[*SURFACES, []], help="default: all of them")
    parser.add_argument("--inputs", type=int, help="inputs a target; default: what the surface's table says")
    parser.add_argument("--seconds", type=float, default=600.0, help="at most so long a target")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another set of inputs")
    parser.add_argument("--findings", type=Path, default=Path("attack-findings"), help="the folder for what is found")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    chosen = options(arguments)
    first = chosen.seed * NUMBERS_A_SEED
    found = 0
    print(f"{'target':<28}{'inputs':>9}{'valid':>9}{'refused':>9}{'findings':>9}{'seconds':>9}")
    for surface in chosen.surfaces or SURFACES:
        targets, inputs = SURFACES[surface]
        for target in targets():
            numbers = range(first, first + (chosen.inputs or inputs))
            row = attacked(target, numbers, chosen.seconds)
            print(
                f"{f'{surface} {row.name}':<28}{row.inputs:>9,}{row.valid:>9,}{row.refused:>9,}"
                f"{len(row.findings):>9,}{row.seconds:>9.0f}",
                flush=True,
            )
            for finding in islice(row.findings, 10):
                print(f"  {finding.said[:100]}: {written(surface, target, finding, chosen.findings)}")
            found += len(row.findings)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
