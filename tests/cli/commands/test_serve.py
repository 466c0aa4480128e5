"""`everlong serve` as a person starts it: one line on what is wrong, and nothing listens then."""

import re
import socket
from pathlib import Path

import pytest

from everlong.gateway import hashed
from tests.cli.running import everlong

NEAR = ("--upstream", "http://127.0.0.1:9/v1", "--port", "0")
WRONG = {
    "an unknown mode": ((*NEAR, "--mode", "fast"), "mode"),
    "a port that is none": (("--upstream", "http://127.0.0.1:9/v1", "--port", "70000"), "port"),
    "an upstream that is no address": (("--upstream", "nowhere", "--port", "0"), "upstream"),
    "a host that others reach, without keys": ((*NEAR, "--store", "memory:", "--host", "0.0.0.0"), "no keys are set"),
    "a host that is not of this machine": (
        (*NEAR, "--store", "memory:", "--host", "127.0.0.1.example.invalid"),
        "no keys are set",
    ),
    "a file that is not there": ((*NEAR, "--config", "missing.toml"), "missing.toml"),
    "a store that cannot be": ((*NEAR, "--store", "sqlite:////dev/null/x.db"), "cannot be"),
    "no workers": ((*NEAR, "--store", "memory:", "--workers", "0"), "workers"),
    "an unknown sandbox": ((*NEAR, "--sandbox", "soft"), "one of auto, off"),
    "an unknown preset": ((*NEAR, "--preset", "fancy"), "preset"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line_and_exit_1(name: str, tmp_path: Path) -> None:
    options, words = WRONG[name]
    ran = everlong("serve", *options, folder=tmp_path)
    assert ran.code == 1, ran
    assert ran.out == ""
    assert re.fullmatch(r"everlong: [^\n]+\n", ran.err), ran.err
    assert words in ran.err


def test_a_bad_file_is_one_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "everlong.toml").write_text('[[keys]]\nname = "a"\nhash = "secret-in-the-wrong-place"\n')
    ran = everlong("serve", *NEAR, folder=tmp_path)
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "everlong.toml" in ran.err
    assert "secret-in-the-wrong-place" not in ran.err


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = everlong("serve", *NEAR, "--store", "memory:", "--port", port, folder=tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"everlong: cannot listen on 127.0.0.1:{port}: Address already in use; --port chooses another\n"


def test_a_new_key_is_shown_once_with_the_table_that_knows_it(tmp_path: Path) -> None:
    ran = everlong("serve", "--new-key", folder=tmp_path)
    key = ran.out.splitlines()[0]
    assert ran.code == 0
    assert re.fullmatch(r"el-[A-Za-z0-9_-]{40}", key)
    assert f'hash = "{hashed(key)}"' in ran.out
    assert everlong("serve", "--new-key", folder=tmp_path).out != ran.out
