"""The rules of the sandbox: which paths of a disk they open, and which never."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st

from everlong.agent.tools.rules import SECRETS, Rules, covered, rules_for, without

NAMES = st.lists(st.sampled_from(["a", "b", ".c", "d"]), min_size=1, max_size=4).map(lambda parts: Path(*parts))


def made(folder: Path, *paths: str) -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    return folder


@settings(max_examples=60)
@given(st.sets(NAMES, max_size=12), st.sets(NAMES, max_size=4))
def test_parts_hold_all_but_what_is_shut(there: set[Path], shut: set[Path]) -> None:
    with TemporaryDirectory() as name:
        root = Path(name).resolve()
        for path in there:
            (root / path).mkdir(parents=True, exist_ok=True)
        closed = [root / path for path in shut]
        parts = list(without(root, closed))
        for path in closed:
            assert not covered(path, parts)
            assert not any(part.is_relative_to(path) for part in parts)
        for path in root.rglob("*"):
            touches = any(one.is_relative_to(path) or path.is_relative_to(one) for one in closed)
            assert touches or covered(path, parts)
        assert all(not covered(part, [other]) for part in parts for other in parts if part != other)


@settings(max_examples=60)
@given(NAMES, st.lists(NAMES, max_size=3), st.lists(NAMES, max_size=4))
def test_no_secret_of_the_home_folder_is_ever_open(workspace: Path, allowed: list[Path], path: list[Path]) -> None:
    """Whatever the workspace, the allowed folders and PATH are, even the home folder itself or one above it."""
    with TemporaryDirectory() as name:
        base = Path(name).resolve()
        home = base / "a"
        for secret in SECRETS:
            (home / secret).mkdir(parents=True, exist_ok=True)
        folders = [base / workspace, *(base / one for one in allowed)]
        programs = [base / one / "bin" for one in path]
        for folder in (*folders, *programs):
            folder.mkdir(parents=True, exist_ok=True)
        variables = {"HOME": str(home), "PATH": os.pathsep.join(map(str, programs))}
        rules = rules_for(folders, base / "private", variables)
        chosen = [folder for folder in folders if not home.is_relative_to(folder)]
        for secret in SECRETS:
            if covered(home / secret, chosen):
                continue  # somebody opened exactly that
            assert not covered(home / secret, rules.write)
            assert covered(home / secret, rules.hidden) or not covered(home / secret, rules.read)


def rules_of(home: Path, workspace: str = "work", path: str = "/usr/bin", **more: str) -> Rules:
    (home / workspace).mkdir(parents=True, exist_ok=True)
    return rules_for([home / workspace], home.parent / "private", {"HOME": str(home), "PATH": path, **more})


TOOLCHAINS = [
    (".pyenv/shims", ".pyenv/versions/3/bin/python", True),
    (".nvm/versions/node/v20/bin", ".nvm/versions/node/v20/lib/x.js", True),
    (".cargo/bin", ".rustup/toolchains/x", True),
    (".cargo/bin", ".cargo/registry/x", True),
    (".local/bin", ".local/lib/python3/x.py", True),
    (".local/bin", ".local/share/uv/tools/x", True),
    (".local/bin", ".local/share/keyrings/x", False),
    ("bin", "bin/mine", True),
    ("bin", "letters/a.txt", False),
    ("miniconda3/condabin", "miniconda3/lib/x", True),
    (".pyenv/shims", ".ssh/id_x", False),
]


@pytest.mark.parametrize(("on_path", "file", "opened"), TOOLCHAINS)
def test_the_toolchains_on_the_path_may_be_read(tmp_path: Path, on_path: str, file: str, opened: bool) -> None:
    home = made(tmp_path / "home", file, f"{on_path}/x")
    rules = rules_of(home, path=f"{home / on_path}:relative/bin:/usr/bin")
    assert covered(home / file, rules.read) is opened
    assert not covered(home / file, rules.write)


def test_an_environment_in_the_workspace_opens_its_interpreter_and_a_false_one_nothing(tmp_path: Path) -> None:
    home = made(tmp_path / "home", "tools/bin/python3.12", "letters/bin/a.txt", "work/.venv/bin/x", "other/.venv/bin/x")
    (home / "work/.venv/bin/python").symlink_to(home / "tools/bin/python3.12")
    assert covered(home / "tools/lib", rules_of(home).read)
    (home / "other/.venv/bin/python").symlink_to(home / "letters/bin/a.txt")
    assert not covered(home / "letters/bin/a.txt", rules_of(home, "other").read)


def test_an_author_is_shown_to_git_but_no_password(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for home, text in ((one, "[user]\nname = Ada\n"), (other, '[url "https://me:hunter2@example.org"]\n')):
        made(home, ".gitconfig")
        (home / ".gitconfig").write_text(text)
    assert one / ".gitconfig" in rules_of(one).read
    assert other / ".gitconfig" not in rules_of(other).read


def test_the_repository_around_the_workspace_may_be_read(tmp_path: Path) -> None:
    home = made(tmp_path / "home", "project/.git/HEAD", "project/part/x", "letters/x")
    rules = rules_of(home, "project/part")
    assert covered(home / "project/.git/HEAD", rules.read)
    assert not covered(home / "project/.git/HEAD", rules.write)
    (home / ".git").mkdir()  # a home folder that is a repository opens nothing
    assert not covered(home / "letters/x", rules_of(home, "plain/part").read)


@pytest.mark.parametrize("linked", ["hooks", "config"])
def test_a_repository_whose_hooks_are_a_link_is_kept_whole(tmp_path: Path, linked: str) -> None:
    home = made(tmp_path / "home", "work/.git/HEAD", "work/shared/x")
    (home / "work/.git" / linked).symlink_to("../shared")
    assert home / "work/.git" in rules_of(home).kept


#: Prints what the interpreter that runs it keeps in a workspace.
KEPT = """
import json, sys
from pathlib import Path
from everlong.agent.tools.rules import rules_for
work, private, variables = json.loads(sys.argv[1])
print(json.dumps([str(path) for path in rules_for([Path(work)], Path(private), variables).kept]))
"""


def test_everlong_in_the_workspace_is_kept(tmp_path: Path) -> None:
    home = made(tmp_path / "home", "work/mine.toml")
    venv.create(home / "work/.venv", symlinks=True)
    variables = {"HOME": str(home), "PATH": "/usr/bin", "EVERLONG_CONFIG": str(home / "work/mine.toml")}
    given = json.dumps([str(home / "work"), str(tmp_path / "private"), variables])
    command = [str(home / "work/.venv/bin/python"), "-c", KEPT, given]
    packages = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=packages, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {str(home / "work/.venv"), str(home / "work/mine.toml")} <= set(json.loads(done.stdout))
