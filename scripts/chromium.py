"""A Chromium for the tests and pictures of the app: the machine's own, else one fetched into the cache, without root.

The `CHROMIUM` variable names another one. What goes wrong is one line.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from everlong.errors import InputError
from everlong.llm import cache_folder
from everlong.web import node_folder

__all__ = ["FLAGS", "Chromium", "find_chromium"]

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
#: Root and containers have no sandbox and little shared memory; nothing is asked of Google.
FLAGS = (
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
)
PACKAGE = "@sparticuz/chromium@147"  # a Chromium that brings its libraries; unpacked by its own code
UNPACK = "import('@sparticuz/chromium').then(async (one) => console.log(await one.default.executablePath()))"
#: Makes the package unpack its libraries too: it was made for machines that have none.
BARE_MACHINE = "AWS_Lambda_nodejs22.x"
SECONDS = 600.0
NONE = "no Chromium: install one (Debian: apt install chromium), or set CHROMIUM to the path of one"


@dataclass(frozen=True, slots=True)
class Chromium:
    """The program, and what its environment must hold."""

    path: str
    environment: Mapping[str, str] = field(default_factory=dict)


def find_chromium(environment: Mapping[str, str]) -> Chromium:
    """The browser to use. Raises InputError with one line."""
    if named := environment.get("CHROMIUM"):
        if found := shutil.which(named):
            return Chromium(found)
        raise InputError(f"CHROMIUM names {named}, which is no program")
    search = environment.get("PATH")
    for name in NAMES:
        if found := shutil.which(name, path=search):
            return Chromium(found)
    return _fetched(cache_folder(environment) / "chromium", environment)


def _fetched(folder: Path, environment: Mapping[str, str]) -> Chromium:
    """The one in the cache, fetched if it is not there yet; two that fetch at once do not meet."""
    chromium = Chromium(str(folder / "chromium"), {"LD_LIBRARY_PATH": str(folder / "al2023" / "lib")})
    if Path(chromium.path).is_file():
        return chromium
    making = folder.with_name(f"chromium-{os.getpid()}")
    making.mkdir(parents=True, exist_ok=True)
    node = node_folder()
    path = os.pathsep.join((str(node), environment.get("PATH", "")))
    inside = {**environment, "PATH": path, "TMPDIR": str(making), "AWS_EXECUTION_ENV": BARE_MACHINE}
    quiet = ("--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(making))
    try:
        for command in (
            [shutil.which("npm", path=path) or "npm", "install", *quiet, PACKAGE],
            [shutil.which("node", path=path) or "node", "--eval", UNPACK],
        ):
            subprocess.run(command, cwd=making, env=inside, capture_output=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(making, ignore_errors=True)
        raise InputError(f"{NONE} (fetching one failed: {type(error).__name__})") from None
    shutil.rmtree(making / "node_modules", ignore_errors=True)
    with suppress(OSError):  # another was faster: its folder stands
        making.rename(folder)
    shutil.rmtree(making, ignore_errors=True)
    return chromium
