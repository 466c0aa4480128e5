"""Without any extra the library and the commands that need none still work; a missing extra is one clear line."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from everlong.doors import EXTRA_OF

#: A program in which no package of an extra can be imported.
WITHOUT_EXTRAS = """
import sys
EXTRAS = set("aiohttp mcp opentelemetry prometheus_client psycopg stamina starlette uvicorn xllamacpp".split())
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""

COMMANDS = (
    "models gpt-4o",
    "count --sample",
    "fit --sample --budget 8000 --output -",
    "inspect --sample --top 1",
    "sessions list --store jsonl:sessions",
    "demo --window 16000",
)


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS + code], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_need_no_extra_work_without_one(command: str, tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    done = run(f"from everlong.cli.main import main; main({command.split()!r})", tmp_path)
    assert done.returncode == 0, done.stderr[-600:]


@pytest.mark.parametrize("command", ["serve", "models --refresh"])
def test_a_missing_extra_is_one_line_that_says_what_to_install(command: str, tmp_path: Path) -> None:
    done = run(f"from everlong.cli.main import main; main({command.split()!r})", tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert "pip install 'everlong[" in line


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


def test_the_remedy_for_a_missing_package_is_an_extra_that_brings_it() -> None:
    project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    for package, extra in EXTRA_OF.items():
        named = package.replace("_", "-").removesuffix("-pool")
        assert any(row.startswith(named) for row in extras[extra]), f"everlong[{extra}] does not bring {package}"
