"""A Chromium for the app's tests and pictures: the one on this machine, else one downloaded to the cache, without root.

The `CHROMIUM` variable names another one. Errors are one line.
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
#: Root and containers have no sandbox and little shared memory; no request may go to Google.
FLAGS = (
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
)
PACKAGE = "@sparticuz/chromium@147"  # includes its libraries; unpacks itself
UNPACK = "import('@sparticuz/chromium').then(async (one) => console.log(await one.default.executablePath()))"
#: Makes the package unpack its libraries too: this variable says that the machine has none.
BARE_MACHINE = "AWS_Lambda_nodejs22.x"
SECONDS = 600.0
NONE = "no Chromium: install one (Debian: apt install chromium), or set CHROMIUM to the path of one"


@dataclass(frozen=True, slots=True)
class Chromium:
    """The program, and the environment variables that it needs."""

    path: str
    environment: Mapping[str, str] = field(default_factory=dict)


def find_chromium(environment: Mapping[str, str]) -> Chromium:
    """Return the browser to use. Raises InputError with one line."""
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
    """Return the browser in the cache; download it if it is missing.

    Two downloads at once do not disturb each other.
    """
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
    with suppress(OSError):  # another download was faster: its folder stays
        making.rename(folder)
    shutil.rmtree(making, ignore_errors=True)
    return chromium
