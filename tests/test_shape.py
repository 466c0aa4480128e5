"""The shape of the code: sizes, names, docstrings, broad catches. The lists of exceptions only shrink."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import everlong

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

MOST_LINES = 400
MOST_FUNCTION_LINES = 60

#: path -> lines today. Add none.
LONG_FILES: dict[str, int] = {}
#: "path:function" -> lines today. Add none.
LONG_FUNCTIONS: dict[str, int] = {}
#: path -> how many `except Exception` it has, each with its reason beside it. The edges of the process only.
BROAD_CATCHES: dict[str, int] = {
    "src/everlong/engine/thread.py": 1,
    "src/everlong/gateway/http/endpoint.py": 1,
    "src/everlong/lab/strategies/strategy.py": 1,
}

EMPTY_NAMES = re.compile(r"(utils?|helpers?|common|misc|managers?|base)$")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONG_FILES.get(named(path), MOST_LINES)


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_functions_stay_short(path: Path) -> None:
    for function in functions(path):
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        assert lines <= LONG_FUNCTIONS.get(f"{named(path)}:{function.name}", MOST_FUNCTION_LINES), function.name


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_names_explain_themselves(path: Path) -> None:
    assert not EMPTY_NAMES.fullmatch(path.stem)


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_modules_say_what_they_own(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_public_lists_are_sorted(path: Path) -> None:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = ast.literal_eval(node.value)
            assert len(names) == len(set(names))
            assert names == sorted(names, key=lambda name: (not name.isupper(), name.islower(), name))


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_broad_catches_stand_only_at_listed_edges(path: Path) -> None:
    handlers = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ExceptHandler)
    ]
    broad = [h for h in handlers if h.type is None or ast.unparse(h.type) in ("Exception", "BaseException")]
    assert len(broad) <= BROAD_CATCHES.get(named(path), 0)


def test_the_lists_of_exceptions_name_what_exists() -> None:
    for name in (*LONG_FILES, *BROAD_CATCHES, *(key.split(":")[0] for key in LONG_FUNCTIONS)):
        assert (ROOT / name).is_file(), f"{name} is gone: take it off the list"


def test_public_names_are_few_sorted_and_documented() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert everlong.__all__ == sorted(everlong.__all__)
    assert len(everlong.__all__) <= 40
    for name in everlong.__all__:
        assert getattr(everlong, name).__doc__, name
        assert f"`{name}" in reference, f"{name} is not in docs/reference.md"


@pytest.mark.parametrize("path", TESTS, ids=named)
def test_tests_use_no_mocks_skips_or_sleeps(path: Path) -> None:
    if path == Path(__file__):
        return
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"unittest\.mock|MagicMock|mocker\.|pytest\.skip|mark\.skip|importor[s]kip|time\.sleep", text)


def test_importing_everlong_loads_no_network_database_or_server() -> None:
    probe = "import sys, everlong; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"asyncio", "http", "httpx", "msgspec", "rich", "socket", "splintr", "sqlite3", "ssl", "starlette", "click"}
    assert not heavy & set(loaded)


def test_using_count_loads_no_network_database_or_server() -> None:
    probe = (
        "import sys, everlong; everlong.count([{'role': 'user', 'content': 'hi'}], model='gpt-4o');"
        "everlong.window('gpt-4o'); print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()
    assert not {"asyncio", "http", "httpx", "rich", "socket", "sqlite3", "ssl", "starlette", "click"} & set(loaded)
