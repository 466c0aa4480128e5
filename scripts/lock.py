"""Locks every package that `make run` and `make test` install, by version and hash (`make lock`).

python scripts/lock.py writes requirements/*.txt and the page's package-lock.json with the newest versions python
scripts/lock.py --keep writes requirements/*.txt; versions stay unless pyproject.toml asks for others

The files name no index: pip and npm use the one configured on the machine, and the hashes prove the same content.
"""

import argparse
import subprocess
import tempfile
import venv
from pathlib import Path

from everlong.web import node_folder

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
PAGE = ROOT / "src" / "everlong" / "web" / "page"
#: The extras and groups in each file, the largest first: the others take its versions.
LOCKS = {
    "developing": ("--extra=dev", "--group=build"),
    "serving": (
        "--extra=agent",
        "--extra=documents",
        "--extra=local",
        "--extra=server",
        "--group=build",
        "--group=page",
    ),
    "installed": ("--group=build",),
    # The container's packages; this file is next to the one that builds it.
    "operating": (
        "--extra=agent",
        "--extra=documents",
        "--extra=login",
        "--extra=postgres",
        "--extra=server",
        "--extra=telemetry",
    ),
}
PLACES = {"operating": ROOT / "deploy" / "requirements.txt"}
LEAST_PYTHON = "3.11"
OPTIONS = ("--universal", "--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate", "--quiet")
HEADER = (
    "# Written by `make lock`. Every version of Python from {python} on, and every system, takes its lines from here.\n"
)


def lock_python(uv: Path, *, keep: bool) -> None:
    """Write one file per installation in the Makefile. With `keep`, versions change only if they must."""
    FOLDER.mkdir(exist_ok=True)
    largest = FOLDER / f"{next(iter(LOCKS))}.txt"
    for name, parts in LOCKS.items():
        written = PLACES.get(name, FOLDER / f"{name}.txt")
        same = () if written == largest else ("--constraint", str(largest))
        versions = ("--output-file", str(written)) if keep else ("--upgrade",)
        command = [str(uv), "pip", "compile", "pyproject.toml", *parts, *OPTIONS, *same, *versions]
        locked = subprocess.run(
            [*command, "--python-version", LEAST_PYTHON], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        if keep:
            locked = written.read_text(encoding="utf-8").removeprefix(HEADER.format(python=LEAST_PYTHON))
        written.write_text(HEADER.format(python=LEAST_PYTHON) + locked, encoding="utf-8")
        print(f"{written.relative_to(ROOT)}: {locked.count('==')} packages")


def lock_packages(home: Path) -> None:
    """Write the lock file of npm packages, always from scratch: else npm omits packages of other systems."""
    (home / "package-lock.json").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("package.json", ".npmrc"):
            (Path(folder) / name).write_bytes((home / name).read_bytes())
        npm = [
            str(node_folder() / "npm"),
            "install",
            "--package-lock-only",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ]
        subprocess.run(npm, cwd=folder, check=True)
        (home / "package-lock.json").write_bytes((Path(folder) / "package-lock.json").read_bytes())
    print(f"{(home / 'package-lock.json').relative_to(ROOT)}: written")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="keep the versions that are locked already")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "uv"], check=True)
        lock_python(python.with_name("uv"), keep=keep)
    if not keep:
        lock_packages(PAGE)
        lock_packages(ROOT / "packages" / "everlong")


if __name__ == "__main__":
    main()
