"""What a sandboxed command may read and write: paths, computed from the workspace, the environment and the disk.

Everything is an allow-list. A command reads the system and the toolchains on PATH, even those in the home folder; it
writes the workspace, the allowed folders and a private folder that is its HOME and TMPDIR. It sees no other files of
the user. `kept` and `hidden` are exceptions inside that list; not every kind of sandbox can make them.
"""

import os
import pwd
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import everlong
from everlong.summarize import redacted

__all__ = ["Rules", "covered", "rules_for", "without"]

SYSTEM = tuple(
    map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/sys"))
)
#: Names of folders with programs; what the programs need is beside them.
PROGRAMS = ("bin", "sbin", "shims", "condabin", "scripts")
#: Folders of the home folder that hold more than a toolchain: only the part that is on PATH is shown.
SHARED = ("", ".local", ".config", ".cache", ".local/share")
#: Folders that belong to a folder of programs in the home folder, but are not beside it.
BELONGS = {
    ".cargo": (".rustup",),
    ".local/bin": (".local/lib", *(f".local/share/{name}" for name in ("uv", "pipx", "mise", "pnpm", "fnm"))),
}
#: Variables that name a toolchain.
TOOLCHAINS = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOROOT", "RUSTUP_HOME", "CARGO_HOME"),
    *("VOLTA_HOME", "SDKMAN_DIR", "RBENV_ROOT", "ASDF_DIR", "BUN_INSTALL", "DENO_INSTALL", "ANDROID_HOME"),
)
INTERPRETERS = ("python3", "python", "node", "ruby")
#: Secrets of the home folder, in case one is inside a folder that may be read.
SECRETS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf"),
    *(".git-credentials", ".config/git/credentials", ".config/gcloud", ".config/gh", ".config/everlong"),
    *(".config/rclone", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".vault-token"),
    *(".m2/settings.xml", ".gradle/gradle.properties", ".terraform.d", ".password-store", ".mozilla"),
    *(".local/share/everlong", ".local/state/everlong", ".local/share/keyrings", ".cache/everlong"),
    *(".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history"),
)
#: Secrets of the system, which only root can read.
SYSTEM_SECRETS = tuple(map(Path, ("/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers.d")))
#: The user's own git files: they name the author of commits.
GIT_FILES = (".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes")
CONFIGURATION = "everlong.toml"
MOST_TEXT = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a command may use. All paths but the links are resolved; `private` holds its HOME and its TMPDIR."""

    read: tuple[Path, ...]
    write: tuple[Path, ...]
    #: Paths inside `read` or `write` that are hidden.
    hidden: tuple[Path, ...]
    #: Links to paths that may be used, and where they lead.
    links: tuple[tuple[Path, Path], ...]
    #: Folders that may be listed, although only parts of them may be used.
    listed: tuple[Path, ...]
    private: Path
    homes: tuple[Path, ...]
    network: bool
    #: Paths inside `write` that are read-only: what runs later, outside the sandbox.
    kept: tuple[Path, ...] = ()
    #: Folders inside `write` that may not be moved away, because something in them is `kept`.
    fixed: tuple[Path, ...] = ()


def rules_for(roots: Iterable[Path], private: Path, environment: Mapping[str, str], *, network: bool = False) -> Rules:
    """Return the rules for work in these folders: the workspace and the other allowed folders.

    What git and others run later is looked up each time. The rest takes tens of milliseconds and is cached.
    """
    named = tuple((name, environment[name]) for name in ("HOME", "PATH", *TOOLCHAINS) if name in environment)
    rules = _lasting(tuple(map(_real, roots)), private, named, network)
    fixed, kept = _kept(rules.write, environment)
    return replace(rules, fixed=fixed, kept=kept)


@lru_cache(maxsize=64)
def _lasting(wanted: tuple[Path, ...], private: Path, variables: tuple[tuple[str, str], ...], network: bool) -> Rules:
    """Return the rules without `kept` and `fixed`."""
    environment = dict(variables)
    homes = _homes(environment)
    worktrees = [parts for root in wanted if (parts := _worktree(root))]
    usable = [part for root in (*wanted, private) for part in _usable(root, homes)]
    write = _outermost((*usable, *(part for parts in worktrees for part in parts[1:])))
    named = [*SYSTEM, *_toolchains(wanted, environment, homes), *_repositories(wanted, homes)]
    named += [parts[0] for parts in worktrees]
    named += [file for home in homes[:1] for name in GIT_FILES if _harmless(file := home / name)]
    if network:
        named.append(Path("/etc/resolv.conf"))
    read = tuple(path for path in _outermost(map(_real, named)) if path.exists() and not covered(path, write))
    hidden = (path for path in _secrets(homes) if covered(path, (*read, *write)) and os.access(path, os.R_OK))
    return Rules(
        read=read,
        write=write,
        hidden=tuple(hidden),
        links=tuple(sorted({(path, real) for path in named if (real := _real(path)) != path and real.exists()})),
        listed=tuple(root for root in wanted if not covered(root, write)),
        private=private,
        homes=homes,
        network=network,
    )


def without(root: Path, shut: Collection[Path]) -> Iterator[Path]:
    """Yield the paths that make up a folder without what is shut: the folder itself, or as many parts as are needed.

    Example: /etc without /etc/ssh -> /etc/hosts, /etc/passwd, … but not /etc
    """
    if covered(root, shut):
        return
    if not any(path.is_relative_to(root) for path in shut):
        yield root
        return
    parts: list[Path] = []
    with suppress(OSError):
        parts = sorted(root.iterdir())
    for part in parts:
        if not part.is_symlink():  # its target has rules of its own
            yield from without(part, shut)


def covered(path: Path, roots: Iterable[Path]) -> bool:
    """Return whether a path is in one of the folders, or is one of them."""
    return any(path.is_relative_to(root) for root in roots)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths in order, without those that are inside another one."""
    found: list[Path] = []
    for path in sorted(set(paths)):
        if not covered(path, found):
            found.append(path)
    return tuple(found)


def _homes(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the user's home folder, as the environment and the system name it."""
    homes = [Path(environment["HOME"])] if environment.get("HOME") else []
    with suppress(KeyError):  # the user is not in the password database
        homes.append(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return tuple(dict.fromkeys(home for home in map(_real, homes) if home != Path("/") and home.is_dir()))


def _usable(root: Path, homes: Iterable[Path]) -> Iterator[Path]:
    """Yield the parts of a workspace that may be written: all of it, unless the home folder is in it.

    Then only the visible parts of the home folder: a hidden file could run a command at the next login.
    """
    shut = []
    for home in homes:
        if home.is_relative_to(root):
            shut.append(home / ".profile")  # even if it does not exist
            with suppress(OSError):
                shut += [part for part in home.iterdir() if part.name.startswith(".")]
    return without(root, shut)


def _toolchains(wanted: Iterable[Path], environment: Mapping[str, str], homes: Collection[Path]) -> Iterator[Path]:
    """Yield the folders of the programs on PATH, with what these need."""
    yield from (Path(sys.base_prefix), Path(sys.prefix))  # our own interpreter
    folders = [path for path in map(Path, environment.get("PATH", "").split(os.pathsep)) if path.is_absolute()]
    yield from folders
    yield from (_toolchain(folder, homes) for folder in folders)
    for name in TOOLCHAINS:
        folder = Path(environment.get(name, ""))
        if folder.is_absolute() and not any(home.is_relative_to(_real(folder)) for home in homes):
            yield folder
    for home in homes:
        for name, others in BELONGS.items():
            if any(covered(folder, [home / name]) for folder in folders):
                yield from (home / other for other in others)
    environments = (root / name / "bin" for root in wanted for name in (".venv", "venv"))
    for folder in (*folders, *environments):
        for name in INTERPRETERS:  # an environment has links to the interpreter that it was made with
            program = _real(folder / name)
            if program.parent != _real(folder) and program.name.startswith(name.rstrip("3")) and program.is_file():
                yield _toolchain(program.parent, homes)


def _toolchain(folder: Path, homes: Iterable[Path]) -> Path:
    """Return the folder that a folder of programs belongs to. Example: ~/.pyenv/shims -> ~/.pyenv"""
    real = _real(folder)
    above = real.parent if real.name.lower() in PROGRAMS else real
    shared = any(home.is_relative_to(above) or above in [home / name for name in SHARED] for home in homes)
    return real if shared or above == Path("/") else above


def _secrets(homes: Iterable[Path]) -> Iterator[Path]:
    yield from SYSTEM_SECRETS
    yield from (home / name for home in homes for name in SECRETS)


def _harmless(file: Path) -> bool:
    """Return whether a file exists and contains no password."""
    try:
        with file.open("rb") as opened:
            text = opened.read(MOST_TEXT).decode("utf-8", "replace")
    except OSError:
        return False
    return redacted(text) == text and "extraheader" not in text.lower()


# --- git ----------------------------------------------------------------------------------------------


def _kept(write: Iterable[Path], environment: Mapping[str, str]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return folders that may not be moved, and read-only paths: what runs or is read outside the sandbox."""
    fixed: list[Path] = []
    kept: list[Path] = []
    for root in write:
        kept += [file for file in (root / CONFIGURATION,) if file.is_file() and not file.is_symlink()]
        git = root / ".git"
        if git.is_symlink():
            continue
        if git.is_file():
            kept.append(git)
        elif (git / "HEAD").exists():
            _of_repository(git, fixed, kept)
    named = _real(Path(environment.get("EVERLONG_CONFIG", "") or os.sep))
    installed = (named, _real(Path(sys.prefix)), Path(_real(Path(everlong.__file__ or os.sep))).parent)
    kept += [path for path in installed if path.exists() and covered(path, write) and path not in write]
    return tuple(fixed), tuple(dict.fromkeys(kept))


def _of_repository(git: Path, fixed: list[Path], kept: list[Path]) -> None:
    """Protect the hooks and the configuration of a repository: git runs programs from both for the user."""
    fixed.append(git)
    for folder in (git, *git.glob("modules/*")):
        if (folder / "hooks").is_symlink() or (folder / "config").is_symlink():
            kept.append(folder)  # a link cannot be protected, but the folder around it can
            continue
        with suppress(OSError):  # a missing folder could not be protected
            (folder / "hooks").mkdir(exist_ok=True)
        kept += [path for name in ("hooks", "config", "config.worktree") if (path := folder / name).exists()]


def _worktree(root: Path) -> tuple[Path, ...]:
    """Return the repository of a worktree, and the parts of it that a commit writes; () if it is not a worktree.

    The repository has to name the worktree too, because any file could claim to belong to any repository.
    """
    file = root / ".git"
    try:
        if not file.is_file() or file.is_symlink():
            return ()
        own = _real(root / _first_line(file).removeprefix("gitdir:").strip())
        repository = _real(own / _first_line(own / "commondir"))
        back = _real(Path(_first_line(own / "gitdir")))
    except (OSError, ValueError):
        return ()
    if back != file or own.parent.parent != repository:
        return ()
    return (repository, own, *(repository / name for name in ("objects", "refs", "logs")))


def _first_line(file: Path) -> str:
    with file.open(encoding="utf-8") as opened:
        return opened.readline(4_096).strip()


def _repositories(wanted: Iterable[Path], homes: Iterable[Path]) -> Iterator[Path]:
    """Yield the repository that contains a workspace: git needs all of it to compare files."""
    for root in wanted:
        for folder in (root, *root.parents):
            if folder == Path("/") or any(home.is_relative_to(folder) for home in homes):
                break
            git = folder / ".git"
            if git.exists():
                if folder != root and git.stat().st_uid == os.getuid():
                    yield folder
                break
