"""The npm package: its types are right, its doors keep a framework's own objects, and it holds what it should."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from everlong.llm import ScriptedServer
from everlong.web import node_folder
from tests.gateway.running import RunningGateway
from tests.web.built import the_page

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "packages" / "everlong"
PAGE = ROOT / "src" / "everlong" / "web" / "page"
DOORS = Path(__file__).with_name("npm_doors.mjs")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is published, built with the compiler of the page, which is the same."""
    the_page()  # the packages of the page are installed with it
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(PACKAGE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules", "dist"))
    compiler = PAGE / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        [str(node_folder() / "node"), str(compiler), "-p", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return folder


def test_every_door_keeps_the_frameworks_own_objects_and_goes_past_the_window(built: Path) -> None:
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url) as gateway:
        settings = {"EVERLONG_PACKAGE": str(built), "EVERLONG_URL": gateway.address, "PATH": os.environ["PATH"]}
        node = [str(node_folder() / "node"), "--test", "--test-reporter=tap", str(DOORS)]
        done = subprocess.run(node, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5_000:]
    assert "# tests 14" in done.stdout


def test_what_is_published_is_the_built_code_its_types_and_a_page(built: Path) -> None:
    path = os.pathsep.join((str(node_folder()), os.environ["PATH"]))
    command = [str(node_folder() / "npm"), "pack", "--dry-run", "--json", "--ignore-scripts"]
    done = subprocess.run(
        command, cwd=built, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    files = {each["path"] for each in json.loads(done.stdout)[0]["files"]}
    modules = {path.stem for path in (PACKAGE / "src").glob("*.ts")}
    code = {f"dist/{name}.{end}" for name in modules for end in ("js", "d.ts")}
    assert files == code | {"LICENSE", "README.md", "openclaw.plugin.json", "package.json"}
    told = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in told
    assert {each["default"][2:] for each in told["exports"].values() if isinstance(each, dict)} <= files
