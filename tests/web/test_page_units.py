"""The page's own tests and its types, run with the Node that it is built with."""

import os
import subprocess

import pytest

from everlong.web.build import PAGE, build_page, node_folder


@pytest.mark.parametrize("script", ["test", "check"])
def test_the_page_passes_its_own(script: str) -> None:
    build_page()  # nothing, where it is as its sources are; else the packages are there afterwards
    folder = node_folder()
    environment = {**os.environ, "PATH": os.pathsep.join((str(folder), os.environ.get("PATH", "")))}
    done = subprocess.run(
        [str(folder / "npm"), "run", script],
        cwd=PAGE,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-1_000:]
