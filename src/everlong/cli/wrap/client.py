"""What `everlong wrap` knows of a client: how it is found, what it gets for one run, and what it does by itself."""

import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

__all__ = [
    "BASES",
    "NO_LIMIT",
    "NO_LOGIN",
    "PLACEHOLDER",
    "Base",
    "Client",
    "Launch",
    "Login",
    "Overlay",
    "Server",
    "Situation",
    "environment_of_run",
    "merged",
]

#: A key for servers that need none, if a client does not start without one.
PLACEHOLDER = "everlong"
#: Tokens that no conversation reaches: a limit for clients that should leave the window to the gateway.
NO_LIMIT = 100_000_000
#: A key or a login's token goes with each request, or the login goes to an address that cannot be changed.
LoginKind: TypeAlias = Literal["key", "token", "elsewhere", "none"]


@dataclass(frozen=True, slots=True)
class Server:
    """A server that the user has set for a client: its address with the version, its formats and its models."""

    url: str
    formats: tuple[str, ...]
    models: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class Base:
    """A variable for the address of a server, and what a client puts between that address and its paths."""

    variable: str
    formats: tuple[str, ...]
    version: str = ""

    def address(self, root: str) -> str:
        """Return the value that leads to a gateway. Example: http://127.0.0.1:8333 -> http://127.0.0.1:8333/v1"""
        return root if self.version else f"{root}/v1"

    def server(self, value: str) -> Server:
        """Return the server at an address that the user has set."""
        where = value.strip().rstrip("/")
        if "://" not in where:
            where = f"http://{where}" if ":" in where else f"http://{where}:{OLLAMA_PORT}"
        return Server(where if where.endswith(self.version) else where + self.version, self.formats)


OLLAMA_PORT = 11434
OPENAI = ("openai-chat", "openai-responses")
#: The variables that clients and SDKs read, in order of precedence.
BASES = (
    Base("OPENAI_BASE_URL", OPENAI),
    Base("OPENAI_API_BASE", OPENAI),
    Base("ANTHROPIC_BASE_URL", ("anthropic",), "/v1"),
    Base("GOOGLE_GEMINI_BASE_URL", ("gemini",), "/v1beta"),
    Base("OLLAMA_HOST", ("ollama",), "/api"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How a client authenticates its user: with a key in a `variable`, or with its own login.

    `remedy` is what to do.
    """

    kind: LoginKind = "none"
    name: str = ""
    remedy: str = ""


NO_LOGIN = Login()


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is known when a client is started. `folder` is for this run only.

    `models` are those that the server of `--upstream` lists; None if it was not asked.
    """

    environment: Mapping[str, str]
    arguments: tuple[str, ...] = ()
    gateway: str = "http://127.0.0.1:8333"
    upstream: str = ""
    window: int | None = None
    models: tuple[str, ...] | None = None
    folder: Path = Path("everlong-run")

    @property
    def home(self) -> Path:
        """The user's home."""
        return Path(self.environment.get("HOME") or self.environment.get("USERPROFILE") or Path.home())

    def has(self, *variables: str) -> str:
        """Return the first of the variables that is set; "" if none is."""
        return next((name for name in variables if self.environment.get(name, "").strip()), "")

    def option(self, *names: str) -> str:
        """Return the value of an option in the arguments. Example: -m gpt-5, or --model=gpt-5 -> gpt-5"""
        for at, argument in enumerate(self.arguments):
            name, equals, value = argument.partition("=")
            if name in names:
                return value if equals else next(iter(self.arguments[at + 1 :]), "")
        return ""

    def read(self, *places: Path) -> dict[str, Any]:
        """Return the first of these JSON files that can be read; comments are removed. {} if there is none."""
        for place in places:
            try:
                found = json.loads(_without_comments(place.read_text(encoding="utf-8")))
            except (OSError, ValueError):
                continue
            if isinstance(found, dict):
                return found
        return {}


def _without_comments(text: str) -> str:
    """Return JSON without comments and trailing commas, which people write into settings."""
    kept, at, quoted = [], 0, False
    while at < len(text):
        letter, pair = text[at], text[at : at + 2]
        if quoted and letter == "\\":
            kept.append(pair)
            at += 2
            continue
        if letter == '"':
            quoted = not quoted
        elif not quoted and pair in ("//", "/*"):
            end = text.find("\n" if pair == "//" else "*/", at)
            at = len(text) if end < 0 else end + (0 if pair == "//" else 2)
            continue
        elif not quoted and letter in "}]":
            while kept and kept[-1].isspace():
                kept.pop()
            if kept and kept[-1] == ",":
                kept.pop()
        kept.append(letter)
        at += 1
    return "".join(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """A user's folder as one run sees it: the same files, except one that belongs to the run.

    `source` is the user's folder, and `place` the path of the run's version below the run's folder. `set_here` is what
    the run's file sets in addition to the user's, for people who do it by hand.
    """

    source: Path
    place: str
    file: str
    text: str
    set_here: str

    def lay(self, folder: Path) -> None:
        """Create the run's folder: links to everything that the user has, and the one file."""
        made = folder / self.place
        made.mkdir(parents=True, mode=0o700)
        for entry in self.source.iterdir() if self.source.is_dir() else ():
            if entry.name != self.file:
                (made / entry.name).symlink_to(entry, target_is_directory=entry.is_dir())
        _write_own(made / self.file, self.text)

    def collect(self, folder: Path) -> None:
        """Move new files of the client to the user's folder, where it would have written them."""
        made = folder / self.place
        for entry in made.iterdir():
            if entry.name != self.file and not entry.is_symlink():
                self.source.mkdir(parents=True, exist_ok=True)
                there = self.source / entry.name
                if entry.is_file() or not there.exists():
                    shutil.move(entry, there)


def _write_own(path: Path, text: str) -> None:
    """Write a file that only this user can read."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


@dataclass(slots=True, kw_only=True)
class Launch:
    """What one run of a client gets: variables, arguments, files, and folders that replace the user's.

    `refused` says in one line why the client cannot run behind the gateway with its current setup.
    """

    variables: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    overlays: list[Overlay] = field(default_factory=list)
    refused: str = ""

    def write(self, folder: Path) -> None:
        """Write the files of the run, readable only for this user."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_own(path, text)
        for overlay in self.overlays:
            overlay.lay(folder)

    def collect(self, folder: Path) -> None:
        """Keep what the client has written in place of the user's own folders."""
        for overlay in self.overlays:
            overlay.collect(folder)

    def shown(self, program: Sequence[str], folder: Path) -> list[str]:
        """Return the lines with which a person does the same in a shell."""
        lines = []
        if self.files:
            lines.append(f"mkdir -p {shlex.quote(str(folder))}")
        for name, text in self.files.items():
            lines += [
                f"cat > {shlex.quote(str(folder / name))} <<'EVERLONG'",
                *text.rstrip("\n").split("\n"),
                "EVERLONG",
            ]
        for overlay in self.overlays:
            lines.append(f"# in {overlay.source / overlay.file}: {overlay.set_here}")
        set_here = {
            name: value for name, value in self.variables.items() if not (self.overlays and str(folder) in value)
        }
        lines += [f"export {name}={shlex.quote(value)}" for name, value in set_here.items()]
        return [*lines, shlex.join([*program, *self.arguments])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client. `prepare` returns what a run gets, and `own_servers` the servers in the user's settings of it.

    `login` says how it authenticates its user. `listed` says whether it needs a list of models.
    """

    name: str
    title: str
    program: str
    install: str
    prepare: Callable[[Situation], Launch]
    aliases: tuple[str, ...] = ()
    bases: tuple[Base, ...] = BASES
    #: Variables for its keys, the usual one first.
    keys: tuple[str, ...] = ()
    own_servers: Callable[[Situation], tuple[Server, ...]] = lambda _: ()
    login: Callable[[Situation], Login] = lambda _: NO_LOGIN
    #: The model of a run, as far as it is known beforehand; "" if only the client knows.
    model: Callable[[Situation], str] = lambda _: ""
    listed: bool = False
    #: Whether it shortens conversations by itself, unless that is switched off.
    compacts: bool = True
    #: The formats it speaks, if it has no variables for their addresses.
    speaks: tuple[str, ...] = ()
    version: tuple[str, ...] = ("--version",)

    @property
    def apis(self) -> tuple[str, ...]:
        """The formats that it speaks."""
        return self.speaks or tuple(dict.fromkeys(name for base in self.bases for name in base.formats))

    def found(self, path: str | None) -> str:
        """Return the path of the program on a PATH; "" if it is not installed."""
        return shutil.which(self.program, path=path) or ""

    def servers(self, situation: Situation) -> tuple[Server, ...]:
        """Return the servers that the user has set: in the client's own settings, else in variables."""
        values = ((base, situation.environment.get(base.variable, "").strip()) for base in self.bases)
        in_variables = [base.server(value) for base, value in values if value]
        return (*self.own_servers(situation), *in_variables)

    def signed_in(self, situation: Situation) -> Login:
        """Return how its user is authenticated: by its own login, or by a key in a variable."""
        found = self.login(situation)
        if found.kind != "none":
            return found
        key = situation.has(*self.keys)
        return Login(kind="key", name=key) if key else found


def environment_of_run(environment: Mapping[str, str], launch: Launch) -> dict[str, str]:
    """Return all variables of the client's process. Requests to this machine bypass proxies."""
    merged = {**environment, **launch.variables}
    if any(merged.get(name) or merged.get(name.lower()) for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")):
        for name in ("NO_PROXY", "no_proxy"):
            near = [part for part in merged.get(name, "").split(",") if part.strip()]
            merged[name] = ",".join([*near, *(one for one in ("127.0.0.1", "localhost") if one not in near)])
    return merged


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return two settings merged; where they disagree, `above` wins."""
    both = {**below, **above}
    for name, value in above.items():
        found = below.get(name)
        if isinstance(value, dict) and isinstance(found, dict):
            both[name] = merged(found, value)
    return both
