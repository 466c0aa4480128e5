"""Without any extra the library and the commands that need none still work; a missing extra is one clear line."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from everlong.extras import EXTRA_OF, PACKAGES

#: The beginning of a program in which some packages cannot be imported.
WITHOUT_PACKAGES = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in PACKAGES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""
#: The packages of the extras.
EXTRAS = "aiohttp mcp opentelemetry prometheus_client psycopg stamina starlette uvicorn xllamacpp"

COMMANDS = (
    "models gpt-4o",
    "count --sample",
    "fit --sample --budget 8000 --output -",
    "inspect --sample --top 1",
    "sessions list --store jsonl:sessions",
    "demo --window 16000",
)


def run(code: str, folder: Path, missing: str = EXTRAS) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, without these packages."""
    program = f"PACKAGES = {set(missing.split())!r}{WITHOUT_PACKAGES}{code}"
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_need_no_extra_work_without_one(command: str, tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    done = run(f"from everlong.cli.main import main; main({command.split()!r})", tmp_path)
    assert done.returncode == 0, done.stderr[-600:]


#: What a command lacks without any extra, and the one command that brings it all.
REMEDIES = {
    "serve": "everlong[server]",
    "serve --local": "everlong[local,server]",
    "serve --local my.gguf --store postgresql://db/chats": "everlong[local,postgres,server]",
    "chat -m hello": "everlong[llm]",
    "chat --local -m hello": "everlong[local]",
    "chat --store postgresql://db/chats -m hello": "everlong[llm,postgres]",
    "models --refresh": "everlong[llm]",
    "sessions list --store postgresql://db/chats": "everlong[postgres]",
    "wrap -- true": "everlong[server]",
}


@pytest.mark.parametrize("command", REMEDIES)
def test_what_is_missing_is_one_line_with_one_command_that_brings_it_all(command: str, tmp_path: Path) -> None:
    done = run(f"from everlong.cli.main import main; main({command.split()!r})", tmp_path)
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert line.endswith(f"pip install '{REMEDIES[command]}'"), line


#: The same for programs that use the library.
LIBRARY = {
    "from everlong import HttpModel": "everlong[llm]",
    "from everlong.engine import traces_events; traces_events()": "everlong[telemetry]",
    "from everlong import open_store; open_store('postgresql://db/chats')": "everlong[postgres]",
    "from everlong.llm import LocalServer; LocalServer(__import__('pathlib').Path('x'))": "everlong[local]",
}


@pytest.mark.parametrize("code", LIBRARY)
def test_a_library_call_names_the_extra_that_it_lacks(code: str, tmp_path: Path) -> None:
    done = run(code, tmp_path)
    assert done.stderr.strip().splitlines()[-1].endswith(f"pip install '{LIBRARY[code]}'"), done.stderr


def test_no_more_is_asked_for_than_is_missing(tmp_path: Path) -> None:
    code = "from everlong.extras import expect_extras; expect_extras('serving', 'server', 'local', 'llm')"
    done = run(code, tmp_path, missing="")  # all are installed where the tests run
    assert done.returncode == 0, done.stderr
    line = run(code, tmp_path, missing="xllamacpp").stderr.strip().splitlines()[-1]
    assert line.endswith("serving needs more packages (xllamacpp): pip install 'everlong[local]'")


def test_the_public_names_that_need_no_extra_load_without_one(tmp_path: Path) -> None:
    code = """
import everlong
missing = []
for name in everlong.__all__:
    try:
        getattr(everlong, name)
    except ModuleNotFoundError as error:
        missing.append(f"{error}")
print("; ".join(missing))
"""
    assert run(code, tmp_path).stdout.strip() == "HttpModel needs aiohttp: pip install 'everlong[llm]'"


def extras() -> dict[str, list[str]]:
    project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    rows: dict[str, list[str]] = project["project"]["optional-dependencies"]
    return rows


def names_in(rows: list[str]) -> set[str]:
    return {Requirement(row).name for row in rows}


@pytest.mark.parametrize("extra", PACKAGES)
def test_an_extra_brings_the_packages_that_its_part_looks_for(extra: str) -> None:
    called = {
        "docx": "python-docx",
        "opentelemetry": "opentelemetry-sdk",
        "pptx": "python-pptx",
        "psycopg_pool": "psycopg",
    }
    wanted = {called.get(package, package.replace("_", "-")) for package in PACKAGES[extra]}
    assert wanted == names_in(extras()[extra]) - {
        "opentelemetry-exporter-otlp-proto-http"
    }  # imported where it is named


def test_a_package_is_brought_by_the_smallest_extra_that_has_it() -> None:
    assert EXTRA_OF["aiohttp"] == "llm"
    assert EXTRA_OF["mcp"] == "mcp"
    assert EXTRA_OF["starlette"] == "server"
    assert EXTRA_OF["xllamacpp"] == "local"


def test_all_is_everything_that_we_run() -> None:
    (row,) = extras()["all"]
    brought = set().union(*(names_in(extras()[extra]) for extra in Requirement(row).extras))
    assert brought == set().union(*(names_in(extras()[extra]) for extra in PACKAGES))


def test_each_adapter_has_an_extra_that_brings_its_framework_in_a_version_it_takes() -> None:
    adapters = Path(__file__).resolve().parent.parent / "src" / "everlong" / "adapters"
    asked = {
        path.stem.replace("_", "-"): found[1]
        for path in adapters.glob("*.py")
        if (found := re.search(r'raise missing\(\s*"[^"]*",\s*"([^"]+)",\s*__name__', path.read_text(encoding="utf-8")))
    }
    assert len(asked) > 5
    for name, needs in asked.items():
        (row,) = extras()[name]
        assert row.split(",")[0] == needs, f"everlong[{name}] brings {row}, the adapter asks for {needs}"


#: What does not run on Windows, and what is said there.
POSIX_ONLY = {
    "chat -m hello": "everlong chat needs Linux, macOS or WSL; everlong serve --no-app and wrap run here",
    "serve --port 0": "the chat app needs Linux, macOS or WSL; everlong serve --no-app serves the gateway alone",
    "lab speed": "everlong lab speed needs Linux, macOS or WSL",
}
ON_WINDOWS = "import everlong.extras; everlong.extras.POSIX = False\n"


@pytest.mark.parametrize("command", POSIX_ONLY)
def test_what_needs_posix_says_so_elsewhere_in_one_line(command: str, tmp_path: Path) -> None:
    code = f"{ON_WINDOWS}from everlong.cli.main import main; main({command.split()!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.endswith(POSIX_ONLY[command])


def test_the_library_says_which_part_needs_posix(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{ON_WINDOWS}from everlong import Agent"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.strip().splitlines()[-1].endswith("InputError: the agent needs Linux, macOS or WSL")


@pytest.mark.parametrize("command", ["models gpt-4o", "count --sample", "wrap --list", "serve --new-key"])
def test_what_runs_everywhere_does_not_need_posix(command: str, tmp_path: Path) -> None:
    code = f"{ON_WINDOWS}from everlong.cli.main import main; main({command.split()!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
