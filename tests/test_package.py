"""What people install: an sdist and a wheel that hold the page and no more than runs, in an empty environment, offline.

The packages of an environment are those of the one that runs the tests, and of them only what everlong's own metadata
asks for: so each extra is tried alone.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.request import urlopen

import pytest
from packaging.requirements import Requirement

from everlong.extras import PACKAGES
from tests.web.built import the_page

ROOT = Path(__file__).resolve().parent.parent
#: Nothing of these may be reached while a package is built or installed.
OFFLINE = {"PIP_NO_INDEX": "1", "npm_config_registry": "http://127.0.0.1:9", "PYTHONPATH": ""}
LARGEST_WHEEL = 5 << 20  # bytes; a third of it draws diagrams
LARGEST_CORE = 70_000_000  # bytes installed, with everlong itself


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **OFFLINE, **variables}
    return subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def build(folder: Path, kind: str, output: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", output, cwd=folder, **variables)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git has of this tree, and nothing else."""
    folder = tmp_path_factory.mktemp("checkout")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=ROOT).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shutil.copytree(the_page(), checkout / "src" / "everlong" / "web" / "built")
    output = tmp_path_factory.mktemp("sdist")
    done = build(checkout, "sdist", output)
    assert done.returncode == 0, done.stderr[-600:]
    return next(output.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the sdist, without Node."""
    unpacked, output = tmp_path_factory.mktemp("unpacked"), tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    done = build(next(unpacked.iterdir()), "wheel", output, PATH=str(unpacked))
    assert done.returncode == 0, done.stderr[-600:]
    return next(output.glob("*.whl"))


def test_the_wheel_has_the_page_and_only_what_runs(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "everlong/web/built/index.html" in names
    assert any(re.fullmatch(r"everlong/web/built/assets/index-[\w-]+\.js", name) for name in names)
    assert "everlong/py.typed" in names
    others = [
        name for name in names if name.endswith((".ts", ".svelte", ".jsonl", ".db", ".lock", "package-lock.json"))
    ]
    assert others == []
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"everlong"}
    assert not [name for name in names if "node_modules" in name or name.startswith("everlong/web/page")]
    assert wheel.stat().st_size < LARGEST_WHEEL


def test_the_sdist_can_build_the_page_anew_and_be_tested(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"hatch_build.py", "pyproject.toml", "Makefile", "src/everlong/web/built/index.html"}
    wanted |= {"src/everlong/web/page/package-lock.json", "src/everlong/web/page/.npmrc", "tests/test_package.py"}
    assert wanted <= names
    assert not [name for name in names if "node_modules" in name or name.startswith((".venv", "dist/"))]


def test_a_page_that_cannot_be_built_is_one_line(checkout: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(checkout, bare)
    shutil.rmtree(bare / "src" / "everlong" / "web" / "built", ignore_errors=True)
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    alone = tmp_path / "python"  # an interpreter without the Node that may be installed beside the one of the tests
    venv.create(alone, system_site_packages=False, symlinks=True)
    packages = next((Path(sys.prefix) / "lib").glob("python*/site-packages"))
    done = run(
        alone / "bin" / "python",
        *("-m", "hatchling", "build", "-t", "wheel"),
        cwd=bare,
        PATH=str(nothing),
        PYTHONPATH=str(packages),
    )
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("everlong: ")]
    assert "building the page needs Node" in line
    assert "Traceback" not in done.stderr


# --- installed -------------------------------------------------------------------------------------


def closure(requirements: list[str], extra: str = "") -> Iterator[str]:
    """The distributions that requirements lead to, as their metadata has them."""
    seen: set[str] = set()
    waiting = [(Requirement(row), extra) for row in requirements]
    while waiting:
        wanted, of = waiting.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": of}):
            continue
        known = f"{wanted.name.lower()}[{','.join(sorted(wanted.extras))}]"
        if known in seen:
            continue
        seen.add(known)
        try:
            found = distribution(wanted.name)
        except PackageNotFoundError:
            continue
        yield wanted.name
        for row in found.requires or ():
            waiting += [(Requirement(row), one) for one in ("", *wanted.extras)]


def install(wheel: Path, home: Path, extra: str) -> Path:
    """Make an environment without pip that has the wheel and what it asks for with that extra. Return its folder."""
    venv.create(home, with_pip=False, symlinks=True)
    done = run(
        *(sys.executable, "-m", "pip", "--python", home / "bin" / "python"),
        *("install", "--quiet", "--no-deps", "--disable-pip-version-check", wheel),
        cwd=home,
    )
    assert done.returncode == 0, done.stderr
    packages = next((home / "lib").glob("python*/site-packages"))
    metadata = next(packages.glob("everlong-*.dist-info")) / "METADATA"
    asked = re.findall(r"^Requires-Dist: (.*)$", metadata.read_text(encoding="utf-8"), re.MULTILINE)
    for name in sorted(set(closure(asked, extra))):
        for file in distribution(name).files or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (packages / top).exists():
                source = Path(str(distribution(name).locate_file(top)))
                (shutil.copytree if source.is_dir() and _is_shared(top) else _link)(source, packages / top)
    return home


def _is_shared(top: str) -> bool:
    return top == "opentelemetry"  # a folder that several distributions fill


def _link(source: Path, target: Path) -> None:
    target.symlink_to(source)


#: What each extra is for, and a program that fails without it.
WORKS = {
    "": "from everlong import fit; fit([{'role': 'user', 'content': 'hi'}], model='gpt-4o', budget=1000)",
    "agent": "from everlong import Agent, HttpModel, tool; import mcp",
    "documents": "import docx, openpyxl, pptx, pypdf; from everlong.web.documents.reader import READERS",
    "llm": "from everlong import HttpModel",
    "local": "from everlong.llm import LocalServer; import xllamacpp",
    "login": "import authlib.jose, httpx",
    "mcp": "import mcp",
    "postgres": "import everlong.store.postgres as p; p.PostgresThreads",
    "semantic": "from everlong.relevance import embedder_named; embedder_named('json:loads')",
    "server": "from everlong.gateway import serve; from everlong.web import AppState",
    "telemetry": "from everlong.engine import traces_events; traces_events()",
}


def test_every_extra_is_tried() -> None:
    assert set(WORKS) == {"", *PACKAGES}


@pytest.mark.parametrize("extra", WORKS)
def test_each_extra_alone_brings_what_its_part_needs(extra: str, wheel: Path, tmp_path: Path) -> None:
    home = install(wheel, tmp_path / "home", extra)
    done = run(home / "bin" / "python", "-c", WORKS[extra], cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-600:]
    shown = run(home / "bin" / "everlong", "--version", cwd=tmp_path)
    assert shown.stdout.startswith("everlong"), shown.stderr


def test_the_core_alone_brings_none_of_the_extras(wheel: Path, tmp_path: Path) -> None:
    python = install(wheel, tmp_path / "home", "") / "bin" / "python"
    for extra in PACKAGES:
        failed = run(python, "-c", WORKS[extra], cwd=tmp_path)
        assert failed.returncode != 0, f"the core brings what everlong[{extra}] is for"


def test_the_core_is_small(wheel: Path) -> None:
    asked = re.findall(
        r"^Requires-Dist: (.*)$",
        zipfile.ZipFile(wheel)
        .read(next(n for n in zipfile.ZipFile(wheel).namelist() if n.endswith("METADATA")))
        .decode(),
        re.MULTILINE,
    )
    size = sum(info.file_size for info in zipfile.ZipFile(wheel).infolist())
    for name in set(closure(asked)):
        files = distribution(name).files or ()
        size += sum(path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file())
    assert size < LARGEST_CORE, f"{size / 1e6:.0f} MB"


def test_an_installed_wheel_serves_the_page(wheel: Path, tmp_path: Path) -> None:
    home = install(wheel, tmp_path / "home", "server")
    command = [
        home / "bin" / "everlong",
        "serve",
        "--port",
        "0",
        "--store",
        "memory:",
        "--upstream",
        "http://127.0.0.1:9/v1",
    ]
    environment = {**os.environ, **OFFLINE, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with subprocess.Popen(
        list(map(str, command)), cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            lines: list[str] = []
            for line in server.stderr:
                lines.append(line)
                if found := re.search(r"The chat app is at (http://\S+)", line):
                    break
            else:
                pytest.fail("".join(lines))
            page = urlopen(found[1], timeout=30).read().decode()
        finally:
            server.terminate()
    script = re.search(r'src="(/assets/[^"]+\.js)"', page)
    assert script is not None, page[:300]
