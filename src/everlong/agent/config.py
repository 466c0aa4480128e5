"""The settings of an agent: the engine's, and its own. Each is described once, at its field.

They come from a file, from variables EVERLONG_… and from options, each over the one before. The file is `everlong.toml`
(section `[agent]`) or nanobot's `config.json`, whose fields are understood by their names. A wrong value is refused in
one line that names it. Nothing here connects to anything.
"""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, get_args

from everlong.agent.nanobot import NOTHING, NanobotValues, nanobot_values
from everlong.agent.permissions.action import Approve
from everlong.agent.permissions.permissions import Approval, Permissions
from everlong.agent.permissions.policy import NO_POLICY, Policy, RememberedPolicy, read_policy
from everlong.agent.tools.sandbox import CHOICES
from everlong.agent.words import LANGUAGES
from everlong.compress import Option
from everlong.engine import Settings, defaults_of, read_settings, unused_settings, variables_of
from everlong.errors import InputError
from everlong.folders import place
from everlong.store import LARGEST_CONFIG, read_input

__all__ = [
    "DEFAULT_CONFIG",
    "AgentConfig",
    "McpServer",
    "SubAgents",
    "at_home",
    "config_file",
    "folder_config",
    "load_config",
]

#: Reads what a file, a variable or an option gives for a setting of that name. Raises InputError.
Reader: TypeAlias = Callable[[str, object], object]

PREFIX = "EVERLONG_"
FILE = "everlong.toml"
REMEMBERED = "permissions.toml"  # beside the user's own file
SYSTEM = "You are a careful agent. Do what the user asks with the tools you have; say plainly what you did and did not."


def at_home(path: str) -> Path:
    """Return a path whose ~ is a home folder; one that is nobody's stays as it is."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


# --- how settings are described and read ----------------------------------------------------------


def _setting(default: object, read: Reader, *, variable: bool = True, trusted: bool = False) -> Any:
    """Describe a field by its reader. With `variable` a variable may set it, with `trusted` not the folder's file."""
    return field(default=default, metadata={"read": read, "variable": variable, "trusted": trusted})


def _option(option: Option, *, trusted: bool = False) -> Any:
    """Describe a field that is a number within bounds, or one of a few words."""
    description = {"read": lambda _, value: option.read(value), "check": option.check}
    return field(default=option.default, metadata={**description, "variable": True, "trusted": trusted})


def _check(settings: "AgentConfig | SubAgents") -> None:
    """Raise InputError for a number out of bounds, or a word that is none of the choices."""
    for each in fields(settings):
        if "check" in each.metadata:
            each.metadata["check"](getattr(settings, each.name))


def _read(described: "type[AgentConfig | SubAgents]", given: Mapping[str, object]) -> dict[str, Any]:
    """Return the values that are given, as the fields of that name take them."""
    readers = {each.name: each.metadata["read"] for each in fields(described) if "read" in each.metadata}
    return {name: readers[name](name, value) for name, value in given.items()}


def _text(name: str, value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str):
        raise InputError(f"{name} is a text, not {value!r}")
    return value


def _words(name: str, value: object) -> tuple[str, ...]:
    """Read a list of words, or words with commas between them."""
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, Sequence) or not all(isinstance(word, str | Path) for word in words):
        raise InputError(f"{name} is a list of words, not {value!r}")
    return tuple(str(word).strip() for word in words if str(word).strip())


def _patterns(name: str, value: object) -> tuple[str, ...]:
    """Read a list of patterns; a single one is a list too. Each is checked here, so that a mistake is said at once."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{name} is a list of patterns, not {value!r}")
    Policy.of(texts)
    return tuple(texts)


def _file(name: str, value: object) -> Path | None:
    return at_home(_text(name, value)).absolute() if value else None


def _flag(name: str, value: object) -> bool:
    flags = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
    if (word := str(value).lower()) not in flags:
        raise InputError(f"{name} is true or false, not {value!r}")
    return flags[word]


def _folder(name: str, value: object) -> Path:
    return at_home(_text(name, value))


def _folders(name: str, value: object) -> tuple[Path, ...]:
    return tuple(map(at_home, _words(name, value)))


def _servers(name: str, value: object) -> "tuple[McpServer, ...]":
    """Read servers by name, or as they are. Example: {"files": {"command": "mcp-files"}} -> one server "files\""""
    if isinstance(value, Sequence) and all(isinstance(each, McpServer) for each in value):
        return tuple(value)
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is a table of servers by name, not {value!r}")
    return tuple(_server(server, table) for server, table in value.items())


def _server(name: str, table: object) -> "McpServer":
    known = {each.name for each in fields(McpServer)} - {"name"}
    if not isinstance(table, Mapping) or set(table) - known:
        raise InputError(f"MCP server {name!r} is a table of {', '.join(sorted(known))}")
    values: dict[str, Any] = dict(table)
    for pairs in ("env", "headers"):
        if pairs in values:
            values[pairs] = tuple((str(key), str(text)) for key, text in dict(values[pairs]).items())
    if "args" in values:
        values["args"] = _words("args", values["args"])
    return McpServer(name=name, **values)


def _subagents(name: str, value: object) -> "SubAgents":
    if isinstance(value, SubAgents):
        return value
    known = {each.name for each in fields(SubAgents)}
    if not isinstance(value, Mapping) or set(value) - known:
        raise InputError(f"{name} is a table of {', '.join(sorted(known))}")
    return SubAgents(**_read(SubAgents, value))


# --- the settings ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server of tools: a command that speaks over its pipes, or an address. Its variables are shown nowhere."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    url: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise InputError(f"MCP server {self.name!r} has either a command or a url")
        if not self.seconds > 0:
            raise InputError(f"MCP server {self.name!r}: seconds is more than 0, not {self.seconds}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgents:
    """What sub-agents are given: a model ("" is the agent's own), a window, and how far they may go."""

    model: str = _setting("", _text)
    window: int | None = _option(Option(name="subagents.window", kind=int, default=None, least=1))
    most_steps: int = _option(Option(name="subagents.most_steps", kind=int, default=30, least=1))
    most_tokens: int | None = _option(Option(name="subagents.most_tokens", kind=int, default=2_000_000, least=1))
    most_depth: int = _option(Option(name="subagents.most_depth", kind=int, default=2, least=0))
    #: For the whole work of one of them.
    seconds: float = _option(
        Option(name="subagents.seconds", kind=float, default=3_600.0, unit="seconds", least=0, above=True)
    )
    #: Characters of a result that reach the agent that started it.
    result_characters: int = _option(Option(name="subagents.result_characters", kind=int, default=8_000, least=1))

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """All settings of an agent. `engine` are those of the engine: preset, threshold, mode, window and the rest."""

    model: str = _setting("gpt-4o", _text)
    upstream: str = _setting("", _text, trusted=True)
    #: Who owns the threads that are made.
    owner: str = _setting("", _text)
    workspace: Path = _setting(Path(), _folder, trusted=True)  # noqa: RUF009 - the value is immutable
    #: Folders beside the workspace that tools may use as well.
    allowed: tuple[Path, ...] = _setting((), _folders, variable=False, trusted=True)
    system: str = _setting(SYSTEM, _text)
    max_tokens: int | None = _option(Option(name="max_tokens", kind=int, default=None, least=1))
    temperature: float | None = _option(Option(name="temperature", kind=float, default=None, least=0, most=2))
    most_steps: int = _option(Option(name="most_steps", kind=int, default=40, least=1))
    most_tokens: int | None = _option(Option(name="most_tokens", kind=int, default=None, least=1))
    tool_seconds: float = _option(
        Option(name="tool_seconds", kind=float, default=600.0, unit="seconds", least=0, above=True)
    )
    #: Seconds for a tool to end once it is cancelled.
    stop_seconds: float = _option(
        Option(name="stop_seconds", kind=float, default=5.0, unit="seconds", least=0, above=True)
    )
    #: Tools by name: only these if any are named, never those.
    tools: tuple[str, ...] = _setting((), _words)
    tools_off: tuple[str, ...] = _setting(("fetch_url",), _words)
    approval: Approval = _option(  # noqa: RUF009 - see workspace
        Option(name="approval", kind=str, default="ask", choices=get_args(Approval)), trusted=True
    )
    #: Patterns of actions that need no question, and of those that are refused; and a file with more of both.
    allow: tuple[str, ...] = _setting((), _patterns, variable=False, trusted=True)
    deny: tuple[str, ...] = _setting((), _patterns, variable=False)
    policy: Path | None = _setting(None, _file, trusted=True)  # noqa: RUF009 - see workspace
    #: The user's own file, which holds what was allowed for good; None where nothing is remembered.
    remembered: Path | None = None
    #: The sandbox of the shell: the best that works, none, or a kind by its name.
    sandbox: str = _option(Option(name="sandbox", kind=str, default="auto", choices=CHOICES), trusted=True)
    #: Whether commands in the sandbox have the network.
    sandbox_network: bool = _setting(False, _flag, trusted=True)
    summary_model: str = _setting("", _text)
    #: The language of what the agent says to models; auto is that of the message.
    language: str = _option(Option(name="language", kind=str, default="auto", choices=("auto", *LANGUAGES)))
    mcp: tuple[McpServer, ...] = _setting((), _servers, variable=False, trusted=True)
    subagents: SubAgents = _setting(SubAgents(), _subagents, variable=False)  # noqa: RUF009 - see workspace
    engine: Settings = field(default=defaults_of("agent"))
    #: The settings that somebody set, and the fields of nanobot's file that its preset does not use.
    named: frozenset[str] = field(default=frozenset(), compare=False)
    unused: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        _check(self)

    def allows(self, tool: str) -> bool:
        """Whether a tool of that name is switched on."""
        return tool not in self.tools_off and (not self.tools or tool in self.tools)

    def with_patterns(self, allow: Sequence[str], deny: Sequence[str]) -> "AgentConfig":
        """Return the same with more patterns; what a file allows and denies counts as well. Raises InputError."""
        return replace(
            self, allow=(*self.allow, *_patterns("allow", allow)), deny=(*self.deny, *_patterns("deny", deny))
        )

    def permissions(self, ask: Approve | None = None) -> Permissions:
        """Return who decides what tools may do: these settings, and whoever is asked. Raises InputError.

        The policy file is read here and never again: it may lie where the agent writes.
        """
        named = NO_POLICY if self.policy is None else read_policy(self.policy, self.workspace)
        remembered = None if self.remembered is None else RememberedPolicy(self.remembered, self.workspace)
        deciding = [path for path in (self.policy, self.remembered) if path is not None]
        folders = [] if self.remembered is None else [self.remembered.parent]  # its settings decide too
        return Permissions(
            ask=ask,
            approval=self.approval,
            policy=Policy.of(self.allow, self.deny) + named,
            remembered=remembered,
            guarded=tuple(path.resolve() for path in (*deciding, *folders)),
        )


DEFAULT_CONFIG = AgentConfig()
OWN_FIELDS = tuple(each.name for each in fields(AgentConfig) if each.metadata)
#: The fields that a variable may set.
VARIABLES = tuple(each.name for each in fields(AgentConfig) if each.metadata.get("variable"))
#: The fields that only the user's own file, the environment and options may set: see `folder_config`.
TRUSTED = tuple(sorted(each.name for each in fields(AgentConfig) if each.metadata.get("trusted")))


# --- where they come from -------------------------------------------------------------------------


def load_config(
    environment: Mapping[str, str], *, file: Path | None = None, options: Mapping[str, object] | None = None
) -> AgentConfig:
    """Return the configuration: a file, over it variables EVERLONG_…, over them options. Raises InputError.

    Example: everlong.toml sets the model, EVERLONG_THRESHOLD=0.8, options {"most_steps": 5} -> all three count
    """
    foreign = NOTHING
    layers: list[tuple[str, Mapping[str, object]]] = []
    if file is not None and file.suffix == ".json":
        foreign = nanobot_values(_content(file))
        layers.append((str(file), foreign.values))
    elif file is not None:
        layers.append((str(file), _section(file)))
    variables = {name: environment.get(PREFIX + name.upper(), "").strip() for name in VARIABLES}
    variables = {**variables_of(environment), **{name: text for name, text in variables.items() if text}}
    layers.append((f"{PREFIX}…", variables))
    layers.append(("options", {name: value for name, value in (options or {}).items() if value is not None}))
    return _merged(layers, foreign)


def _merged(layers: Sequence[tuple[str, Mapping[str, object]]], foreign: NanobotValues) -> AgentConfig:
    """Return the configuration of all layers, each over the one before; only all of them together say what counts."""
    config = DEFAULT_CONFIG
    for where, given in layers:
        config = _changed(config, given, where)
    unused: tuple[str, ...] = ()
    for where, given in layers:
        lines = unused_settings(given, config.engine)
        if given is foreign.values:
            unused = tuple(foreign.written[name] for name in lines)
        elif lines:
            raise InputError(f"{where}: {next(iter(lines.values()))}")
    named = frozenset(name for _, given in layers for name in given)
    starts: dict[str, Any] = {name: value for name, value in config.engine.rules.agent.items() if name not in named}
    return replace(config, **starts, named=named, unused=unused)


def folder_config(
    environment: Mapping[str, str], folder: Path, options: Mapping[str, object] | None = None
) -> tuple[AgentConfig, tuple[str, ...]]:
    """Return the configuration for work in a folder, and the fields of the folder's own file that do not count.

    Who wrote that file may not be who works there (a repository that was fetched): it starts no programs, sends no key
    elsewhere, widens no boundary and allows nothing, unless EVERLONG_CONFIG names it. It may deny.
    """
    file = config_file(environment, folder)
    config = load_config(environment, file=file, options=options)
    config = replace(config, remembered=place("config", REMEMBERED, environment=environment).absolute())
    if file != folder / FILE or environment.get(f"{PREFIX}CONFIG", "").strip():
        return config, ()
    own = load_config(environment, file=_users_file(environment), options=options)
    ignored = tuple(name for name in TRUSTED if getattr(config, name) not in (getattr(own, name), "never"))
    kept = {name: getattr(own, name) for name in ignored}
    return replace(config, **kept, deny=tuple(dict.fromkeys((*own.deny, *config.deny)))), ignored


def config_file(environment: Mapping[str, str], folder: Path) -> Path | None:
    """Return the file that counts: EVERLONG_CONFIG, else the folder's, else the user's; None if there is none."""
    named = environment.get(f"{PREFIX}CONFIG", "").strip()
    if named:
        return at_home(named)
    return folder / FILE if (folder / FILE).is_file() else _users_file(environment)


def _users_file(environment: Mapping[str, str]) -> Path | None:
    file = place("config", "config.toml", environment=environment)
    return file if file.is_file() else None


def _content(path: Path) -> dict[str, Any]:
    try:
        text = read_input(path, LARGEST_CONFIG).decode("utf-8-sig")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: a configuration is a table of settings")
    return content


def _section(path: Path) -> dict[str, object]:
    section = _content(path).get("agent", {})
    if not isinstance(section, dict):
        raise InputError(f"{path}: agent is a section")
    return section


def _changed(config: AgentConfig, given: Mapping[str, object], where: str) -> AgentConfig:
    """Return the configuration with what is given; settings of the engine stand beside the agent's own."""
    engine = read_settings(given, base=config.engine, where=where, also=OWN_FIELDS)
    try:
        own = _read(AgentConfig, {name: value for name, value in given.items() if name in OWN_FIELDS})
        return replace(config, engine=engine, **own)
    except (InputError, TypeError, ValueError) as error:
        raise InputError(f"{where}: {error}") from None
