"""The npm package of this checkout for drivers of programs: built where they find it, and its compactions counted."""

import json
import os
import subprocess
from pathlib import Path
from urllib.request import urlopen

__all__ = ["build_package", "count_compactions"]

BUILDER = Path(__file__).with_suffix(".mjs")


def build_package(program: str, folder: Path) -> Path:
    """Build the package into a folder with the compiler that is installed next to a program; return the folder."""
    packages = Path(program).parent.parent  # …/node_modules/.bin/program
    subprocess.run(
        ["node", str(BUILDER), str(folder)], env=os.environ | {"NODE_PATH": str(packages)}, check=True, text=True
    )
    return folder


def count_compactions(everlong: str) -> int:
    """Return how often `everlong serve` replaced what a program had sent before."""
    with urlopen(f"{everlong}/everlong/requests") as answer:
        return sum(int(request["compactions"]) for request in json.load(answer))
