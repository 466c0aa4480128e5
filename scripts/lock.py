"""Locks every package that `make run` and `make test` install, by version and hash (`make lock`).

python scripts/lock.py    writes requirements/*.txt and the page's package-lock.json anew, with the newest versions

The files name no index: pip and npm ask the one that a machine is set up for, and the hashes say that it gave the same.
"""

import subprocess
import tempfile
import venv
from pathlib import Path

from everlong.web import node_folder

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
PAGE = ROOT / "src" / "everlong" / "web" / "page"
#: The extras and groups in each file, the largest first: the others take their versions from it.
LOCKS = {
    "developing": ("--extra=dev", "--group=build"),
    "serving": ("--extra=agent", "--extra=local", "--extra=server", "--group=build", "--group=page"),
    "installed": ("--group=build",),
}
LEAST_PYTHON = "3.11"
OPTIONS = ("--universal", "--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate", "--quiet")
HEADER = (
    "# Written by `make lock`. Every version of Python from {python} on, and every system, takes its lines from here.\n"
)


def lock_python(uv: Path) -> None:
    """Write one file for each thing that the Makefile installs."""
    FOLDER.mkdir(exist_ok=True)
    largest = FOLDER / f"{next(iter(LOCKS))}.txt"
    for name, parts in LOCKS.items():
        written = FOLDER / f"{name}.txt"
        same = () if written == largest else ("--constraint", str(largest))
        command = [str(uv), "pip", "compile", "pyproject.toml", *parts, *OPTIONS, *same]
        locked = subprocess.run(
            [*command, "--python-version", LEAST_PYTHON, "--upgrade"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        written.write_text(HEADER.format(python=LEAST_PYTHON) + locked, encoding="utf-8")
        print(f"{written.relative_to(ROOT)}: {locked.count('==')} packages")


def lock_packages(home: Path) -> None:
    """Write the lock file of npm packages. Made from nothing: else npm leaves out other systems' packages."""
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
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "uv"], check=True)
        lock_python(python.with_name("uv"))
    lock_packages(PAGE)
    lock_packages(ROOT / "packages" / "everlong")


if __name__ == "__main__":
    main()
