"""Files that a command is given are read within bounds, and only if they end: through the command, as a person does."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from everlong.errors import InputError
from everlong.store import read_input
from everlong.wire.json_files import unpack_gzip

TALK = json.dumps([{"role": "user", "content": "hello world"}]).encode()
MEGABYTE = 1_000_000


def everlong(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "everlong", *arguments]
    return subprocess.run(command, input=given, capture_output=True, timeout=120, check=False)


def test_a_small_file_that_unpacks_to_gigabytes_is_refused_in_one_line(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.json.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as file:
        for _ in range(700):
            file.write(b" " * MEGABYTE)
    assert bomb.stat().st_size < MEGABYTE
    done = everlong("count", str(bomb))
    assert done.returncode == 1
    (line,) = done.stderr.decode().strip().splitlines()
    assert "unpacks to more than 512 MB" in line


@pytest.mark.parametrize("command", ["count", "inspect", "fit"])
def test_a_pipe_is_refused_at_once_and_nobody_waits_for_its_writer(command: str, tmp_path: Path) -> None:
    pipe = tmp_path / "talk.fifo"
    os.mkfifo(pipe)
    more = ["--budget", "1000"] if command == "fit" else []
    done = everlong(command, str(pipe), *more)
    assert done.returncode != 0
    assert b"a pipe or a device, not a file (- reads standard input)" in done.stderr


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/urandom"])
def test_a_device_that_never_ends_is_refused(place: str) -> None:
    assert b"not a file" in everlong("count", place).stderr


def test_standard_input_is_read_where_it_is_asked_for() -> None:
    done = everlong("count", "-", given=gzip.compress(TALK))
    assert done.returncode == 0, done.stderr
    assert b"2" in done.stdout


def test_a_file_larger_than_the_bound_is_refused_after_one_byte_more(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 3 * MEGABYTE)
    with pytest.raises(InputError, match="larger than 2 MB"):
        read_input(tmp_path / "large", 2 * MEGABYTE)
    assert read_input(tmp_path / "large", 3 * MEGABYTE) == b"x" * 3 * MEGABYTE


GZIPS = {
    "one stream": gzip.compress(TALK),
    "two streams": gzip.compress(TALK[:5]) + gzip.compress(TALK[5:]),
    "padded": gzip.compress(TALK) + b"\0" * 100,
}


@pytest.mark.parametrize("name", GZIPS)
def test_every_kind_of_gzip_file_is_unpacked(name: str) -> None:
    assert unpack_gzip(GZIPS[name]) == TALK
    assert unpack_gzip(GZIPS[name], len(TALK)) == TALK
    with pytest.raises(InputError, match="unpacks to more"):
        unpack_gzip(GZIPS[name], len(TALK) - 1)


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: data[:20] + b"\xff" * 10 + data[30:]])
def test_a_damaged_gzip_file_is_named_so(damage: object) -> None:
    with pytest.raises(InputError, match="damaged gzip"):
        unpack_gzip(damage(gzip.compress(TALK)))  # type: ignore[operator]
