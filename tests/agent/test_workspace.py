"""The boundary of a workspace: real files, real links, every trick that is known to us."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from everlong.agent.definitions import Place
from everlong.agent.workspace import inside, open_folder, open_reading, replace_file, shown
from everlong.errors import InputError


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A workspace with files in it, one allowed folder beside it, and a secret outside."""
    for name in ("work/src", "work/文件夹", "beside", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "work/src/a.txt").write_text("a")
    (tmp_path / "work/文件夹/说明.txt").write_text("你好", encoding="utf-8")
    (tmp_path / "beside/b.txt").write_text("b")
    (tmp_path / "outside/secret.txt").write_text("secret")
    return Place(thread="t", call="c", workspace=tmp_path / "work", allowed=(tmp_path / "beside",))


def read(place: Place, path: str) -> bytes:
    with open_reading(place, path) as file:
        return file.read()


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("src/a.txt", b"a"),
        ("./src//a.txt", b"a"),
        ("src/../src/a.txt", b"a"),
        ("{root}/work/src/a.txt", b"a"),
        ("{root}/beside/b.txt", b"b"),
        ("../beside/b.txt", b"b"),
        ("/proc/self/root{root}/work/src/a.txt", b"a"),
        ("文件夹/说明.txt", "你好".encode()),
    ],
)
def test_what_lies_inside_is_read(place: Place, path: str, content: bytes) -> None:
    assert read(place, path.format(root=place.workspace.parent)) == content


def link(place: Place, name: str, to: str) -> None:
    (place.workspace / name).symlink_to(to)


OUTSIDE = "outside the workspace"
TRICKS: list[tuple[str, Callable[[Place], None], str, str]] = [
    ("parent", lambda p: None, "../outside/secret.txt", OUTSIDE),
    ("parent from below", lambda p: None, "src/../../outside/secret.txt", OUTSIDE),
    ("parent behind what is not there", lambda p: None, "nothing/../../outside/secret.txt", OUTSIDE),
    ("absolute", lambda p: None, "{root}/outside/secret.txt", OUTSIDE),
    ("the root", lambda p: None, "/", OUTSIDE),
    ("the system", lambda p: None, "/etc/passwd", OUTSIDE),
    ("root of a process", lambda p: None, "/proc/self/root/etc/passwd", OUTSIDE),
    ("memory of a process", lambda p: None, "/proc/self/mem", OUTSIDE),
    ("sibling that begins alike", lambda p: None, "{root}/work-secrets/a", OUTSIDE),
    ("link to a file", lambda p: link(p, "l", "../outside/secret.txt"), "l", OUTSIDE),
    ("link to a folder", lambda p: link(p, "l", "../outside"), "l/secret.txt", OUTSIDE),
    ("link in the middle", lambda p: link(p, "src/l", "../../outside"), "src/l/secret.txt", OUTSIDE),
    ("link to a link", lambda p: (link(p, "l", "m"), link(p, "m", "/etc"))[0], "l/passwd", OUTSIDE),
    ("link to what is not there", lambda p: link(p, "l", "../outside/new.txt"), "l", OUTSIDE),
    ("link and parent", lambda p: link(p, "l", "../outside/x"), "l/../secret.txt", OUTSIDE),
    ("link to itself", lambda p: link(p, "l", "l"), "l", "link"),
    ("NUL", lambda p: None, "src/a.txt\0.png", "NUL"),
    ("nothing", lambda p: None, "", "empty"),
    ("blanks", lambda p: None, "  ", "empty"),
    ("home", lambda p: None, "~/.ssh/id_rsa", "no such file"),
    ("trailing dots", lambda p: None, "src/a.txt...", "no such file"),
    ("other case", lambda p: None, "SRC/A.TXT", "no such file"),
    ("half a character", lambda p: None, "a\ud800", "name"),
    ("too long", lambda p: None, "a" * 5_000, "too long"),
    ("a file as a folder", lambda p: None, "src/a.txt/b", "not a folder"),
    ("a folder as a file", lambda p: None, "src", "it is a folder"),
    ("the workspace as a file", lambda p: None, ".", "it is a folder"),
    ("a pipe", lambda p: os.mkfifo(p.workspace / "pipe"), "pipe", "not a regular file"),
    (
        "a socket",
        lambda p: socket.socket(socket.AF_UNIX).bind(os.path.relpath(p.workspace / "s")),
        "s",
        "not a regular",
    ),
]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("prepare", "path", "said"), [row[1:] for row in TRICKS], ids=[row[0].replace(" ", "-") for row in TRICKS]
)
def test_a_trick_is_refused_in_one_line(place: Place, prepare: Callable[[Place], None], path: str, said: str) -> None:
    prepare(place)
    given = path.format(root=place.workspace.parent)
    with pytest.raises(InputError, match=said) as refused:
        read(place, given)
    assert "\n" not in str(refused.value)
    if said == OUTSIDE:
        for attempt in (lambda: inside(place, given), lambda: replace_file(place, given, b"x")):
            with pytest.raises(InputError, match=OUTSIDE):
                attempt()
        assert not (place.workspace.parent / "outside/new.txt").exists()
        assert (place.workspace.parent / "outside/secret.txt").read_text() == "secret"


def test_a_device_is_refused() -> None:
    devices = Place(thread="t", call="c", workspace=Path("/dev"))
    for attempt in (lambda: inside(devices, "zero"), lambda: read(devices, "zero")):
        with pytest.raises(InputError, match="not a regular file"):
            attempt()


def test_links_that_stay_inside_are_followed_and_written_through(place: Place) -> None:
    link(place, "l", "src/a.txt")
    link(place, "d", str(place.workspace / "src"))
    assert read(place, "l") == read(place, "d/a.txt") == b"a"
    replace_file(place, "l", b"new")
    assert (place.workspace / "l").is_symlink()
    assert (place.workspace / "src/a.txt").read_bytes() == b"new"


def test_a_hard_link_is_a_file_like_any_other(place: Place) -> None:
    (place.workspace / "hard").hardlink_to(place.workspace / "src/a.txt")
    assert read(place, "hard") == b"a"


def test_a_workspace_that_is_itself_a_link(place: Place, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(place.workspace)
    alias = Place(thread="t", call="c", workspace=tmp_path / "alias")
    assert read(alias, "src/a.txt") == read(alias, f"{tmp_path}/alias/src/a.txt") == b"a"
    assert shown(alias, inside(alias, "src/a.txt")) == "src/a.txt"


#: Exchanges a folder and a link for ever, without a moment in which either is missing.
SWAPPER = """
import ctypes, sys
exchange = ctypes.CDLL(None).renameat2
one, other = (name.encode() for name in sys.argv[1:])
while True:
    exchange(-100, one, -100, other, 2)
"""


def test_a_folder_exchanged_for_a_link_between_check_and_use_is_not_followed(place: Place, tmp_path: Path) -> None:
    folder, outside = place.workspace / "src", tmp_path / "outside"
    (outside / "a.txt").write_text("secret")
    (tmp_path / "spare").symlink_to(outside)
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, str(folder), str(tmp_path / "spare")])
    naive, ours = set(), set()
    try:
        while len(naive) < 2:  # by now it is at work
            naive.add((folder / "a.txt").read_bytes())
        for number in range(2_000):
            try:
                ours.add(read(place, "src/a.txt"))
                if number % 20 == 0:
                    replace_file(place, "src/a.txt", b"a")
            except InputError:
                ours.add(b"refused")
    finally:
        swapper.kill()
        swapper.wait()
    assert b"secret" in naive
    assert ours == {b"a", b"refused"}
    assert (outside / "a.txt").read_text() == "secret"
    assert sorted(path.name for path in outside.iterdir()) == ["a.txt", "secret.txt"]


def test_a_write_is_whole_makes_folders_and_keeps_the_mode(place: Place) -> None:
    assert replace_file(place, "new/深/x.sh", b"one") is True
    file = place.workspace / "new/深/x.sh"
    file.chmod(0o755)
    assert replace_file(place, "new/深/x.sh", b"two") is False
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"two", 0o755)
    assert [path.name for path in file.parent.iterdir()] == ["x.sh"]


def test_a_folder_is_opened_only_inside(place: Place) -> None:
    with open_folder(place, "src") as folder:
        assert [entry.name for entry in os.scandir(folder)] == ["a.txt"]
    link(place, "l", "../outside")
    for path in ("l", "..", "/", "src/a.txt", "nothing"):
        with pytest.raises(InputError), open_folder(place, path) as opened:
            pytest.fail(f"{path} was opened as {opened}")


NAMES = st.sampled_from(
    ["..", ".", "src", "a.txt", "out", "loop", "in", "文件夹", "~", "", "new", "/", "beside", "outside"]
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(NAMES, max_size=7), st.booleans())
def test_no_path_leads_outside(place: Place, names: list[str], absolute: bool) -> None:
    for name, to in (("out", "../outside"), ("loop", "loop"), ("in", "src")):
        if not os.path.lexists(place.workspace / name):
            link(place, name, to)
    path = (f"{place.workspace}/" if absolute else "") + "/".join(names)
    roots = [os.path.realpath(root) for root in (place.workspace, *place.allowed)]
    with suppress(InputError):
        found = inside(place, path)
        assert any(os.path.commonpath((root, os.path.realpath(found))) == root for root in roots)


def test_a_name_with_escape_codes_is_shown_harmless(place: Place) -> None:
    with pytest.raises(InputError) as refused:
        read(place, "\x1b[2Jevil\nname")
    assert "\x1b" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert shown(place, place.workspace / "a\x1bb") == "a\\x1bb"
