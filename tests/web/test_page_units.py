"""The page's own tests and its types, run with the Node that it is built with."""

import os
import subprocess

import pytest

from everlong.web.build import PAGE, node_folder
from tests.web.built import the_page


@pytest.mark.parametrize("script", ["test", "check"])
def test_the_page_passes_its_own(script: str) -> None:
    the_page()  # the packages of the page are installed with it
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
