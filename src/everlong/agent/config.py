"""The settings of an agent: the engine's, and its own. Each is described once, at its field.

They come from a file, from EVERLONG_… variables and from options; later ones override earlier ones. The file is
`everlong.toml` (section `[agent]`) or nanobot's `config.json`, whose fields are translated. A wrong value is refused in
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
from everlong.core import JsonText
from everlong.engine import (
    Settings,
    defaults_of,
    operator_settings,
    read_settings,
    unused_settings,
    variable_named,
    variables_of,
)
from everlong.errors import InputError
from everlong.folders import NO_FILE, place
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
    """Return a path with ~ replaced by the home folder; unchanged if there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


# --- how settings are described and read ----------------------------------------------------------


def _setting(default: object, read: Reader, *, variable: bool = True, trusted: bool = False) -> Any:
    """Describe a field by its reader. `variable`: a variable may set it; `trusted`: the folder's own file may not."""
    return field(default=default, metadata={"read": read, "variable": variable, "trusted": trusted})


def _option(option: Option, *, trusted: bool = False) -> Any:
    """Describe a field that is a number within bounds, or one of a few words."""
    description = {"read": lambda _, value: option.read(value), "check": option.check}
    return field(default=option.default, metadata={**description, "variable": True, "trusted": trusted})


def _check(settings: "AgentConfig | SubAgents") -> None:
    """Raise InputError for a number out of bounds, or a word that is not one of the choices."""
    for each in fields(settings):
        if "check" in each.metadata:
            each.metadata["check"](getattr(settings, each.name))


def _read(described: "type[AgentConfig | SubAgents]", given: Mapping[str, object]) -> dict[str, Any]:
    """Return the given values, each read by the field of its name."""
    readers = {each.name: each.metadata["read"] for each in fields(described) if "read" in each.metadata}
    return {name: readers[name](name, value) for name, value in given.items()}


def _text(name: str, value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, not {value!r}")
    return value


def _words(name: str, value: object) -> tuple[str, ...]:
    """Read a list of words, or words with commas between them."""
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, Sequence) or not all(isinstance(word, str | Path) for word in words):
        raise InputError(f"{name} must be a list of strings, not {value!r}")
    return tuple(str(word).strip() for word in words if str(word).strip())


def _patterns(name: str, value: object) -> tuple[str, ...]:
    """Read a pattern or a list of patterns. Each is checked here, so that a mistake is reported at once."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{name} must be a list of patterns, not {value!r}")
    Policy.of(texts)
    return tuple(texts)


def _file(name: str, value: object) -> Path | None:
    return at_home(_text(name, value)).absolute() if value else None


def _flag(name: str, value: object) -> bool:
    flags = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
    if (word := str(value).lower()) not in flags:
        raise InputError(f"{name} must be true or false, not {value!r}")
    return flags[word]


def _folder(name: str, value: object) -> Path:
    return at_home(_text(name, value))


def _folders(name: str, value: object) -> tuple[Path, ...]:
    return tuple(map(at_home, _words(name, value)))


def _servers(name: str, value: object) -> "tuple[McpServer, ...]":
    """Read a table of servers, or a list. Example: {"files": {"command": "mcp-files"}} -> one server "files\""""
    if isinstance(value, Sequence) and all(isinstance(each, McpServer) for each in value):
        return tuple(value)
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be a table of servers by name, not {value!r}")
    return tuple(_server(server, table) for server, table in value.items())


def _server(name: str, table: object) -> "McpServer":
    known = {each.name for each in fields(McpServer)} - {"name"}
    if not isinstance(table, Mapping) or set(table) - known:
        raise InputError(f"MCP server {name!r} must be a table of {', '.join(sorted(known))}")
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
        raise InputError(f"{name} must be a table of {', '.join(sorted(known))}")
    return SubAgents(**_read(SubAgents, value))


# --- the settings ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server of tools: a command that speaks over its pipes, or an address. Its variables are shown nowhere."""

    #: The name of the server: tools are named after it.
    name: str
    #: The program to start, which speaks MCP over its standard streams.
    command: str = ""
    #: Its arguments.
    args: tuple[str, ...] = ()
    #: Variables for its environment.
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    #: The address of a server that runs already.
    url: str = ""
    #: Headers for every request to that address.
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    #: Seconds that one call of a tool may take.
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise InputError(f"MCP server {self.name!r} must have either a command or a url")
        if not self.seconds > 0:
            raise InputError(f"MCP server {self.name!r}: seconds must be more than 0, not {self.seconds}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgents:
    """What sub-agents are given: a model ("" is the agent's own), a window, and how far they may go."""

    #: The model of sub-agents; the agent's own if empty.
    model: str = _setting("", _text)
    #: Their context window in tokens; if it is not set, the model's own.
    window: int | None = _option(Option(name="subagents.window", kind=int, default=None, least=1))
    #: The most model answers that one sub-agent may use.
    most_steps: int = _option(Option(name="subagents.most_steps", kind=int, default=30, least=1))
    #: Tokens that one of them may use, in and out.
    most_tokens: int | None = _option(Option(name="subagents.most_tokens", kind=int, default=2_000_000, least=1))
    #: How many levels of sub-agents there may be; 0 for none.
    most_depth: int = _option(Option(name="subagents.most_depth", kind=int, default=2, least=0))
    #: Seconds for the whole work of one of them.
    seconds: float = _option(
        Option(name="subagents.seconds", kind=float, default=3_600.0, unit="seconds", least=0, above=True)
    )
    #: Characters of a result that reach the agent that started it.
    result_characters: int = _option(Option(name="subagents.result_characters", kind=int, default=8_000, least=1))

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """All settings of an agent. `engine` has the engine's settings: preset, threshold, mode, window and so on."""

    #: The model, by the name that its provider uses.
    model: str = _setting("gpt-4o", _text)
    #: The server that answers: an address, or the name of a provider; "" takes the one whose key is set.
    upstream: str = _setting("", _text, trusted=True)
    #: Who owns the threads that are made.
    owner: str = _setting("", _text)
    #: The folder that tools may read and write.
    workspace: Path = _setting(Path(), _folder, trusted=True)  # noqa: RUF009 - the value is immutable
    #: Folders outside the workspace that tools may use too.
    allowed: tuple[Path, ...] = _setting((), _folders, variable=False, trusted=True)
    #: The system text of new threads.
    system: str = _setting(SYSTEM, _text)
    #: The longest answer, in tokens; if it is not set, the model's own limit.
    max_tokens: int | None = _option(Option(name="max_tokens", kind=int, default=None, least=1))
    #: The temperature of requests; if it is not set, the model's own.
    temperature: float | None = _option(Option(name="temperature", kind=float, default=None, least=0, most=2))
    #: Further fields of the body of every request, as JSON text in the format of the model.
    extra: JsonText = ""
    #: Answers of the model in one turn, after which it ends.
    most_steps: int = _option(Option(name="most_steps", kind=int, default=40, least=1))
    #: The most tokens, in and out, that one turn may use; None for no limit.
    most_tokens: int | None = _option(Option(name="most_tokens", kind=int, default=None, least=1))
    #: Seconds after which a tool is cancelled.
    tool_seconds: float = _option(
        Option(name="tool_seconds", kind=float, default=600.0, unit="seconds", least=0, above=True)
    )
    #: Seconds for a tool to end once it is cancelled.
    stop_seconds: float = _option(
        Option(name="stop_seconds", kind=float, default=5.0, unit="seconds", least=0, above=True)
    )
    #: The tools that are switched on, by name; all if none are named.
    tools: tuple[str, ...] = _setting((), _words)
    #: The tools that are switched off, by name.
    tools_off: tuple[str, ...] = _setting(("fetch_url",), _words)
    #: What happens if no pattern decides: ask a person, always allow, or never.
    approval: Approval = _option(  # noqa: RUF009 - see workspace
        Option(name="approval", kind=str, default="ask", choices=get_args(Approval)), trusted=True
    )
    #: Patterns of actions that are allowed without asking.
    allow: tuple[str, ...] = _setting((), _patterns, variable=False, trusted=True)
    #: Patterns of actions that are refused, whatever allows them.
    deny: tuple[str, ...] = _setting((), _patterns, variable=False)
    #: A TOML file with more patterns: lists allow and deny.
    policy: Path | None = _setting(None, _file, trusted=True)  # noqa: RUF009 - see workspace
    #: The user's own file, which holds what is always allowed; None if nothing is remembered.
    remembered: Path | None = None
    #: The sandbox of the shell: the best that works, none, or a kind by its name.
    sandbox: str = _option(Option(name="sandbox", kind=str, default="auto", choices=CHOICES), trusted=True)
    #: Whether commands in the sandbox have the network.
    sandbox_network: bool = _setting(False, _flag, trusted=True)
    #: The model that writes summaries; the conversation's own if empty.
    summary_model: str = _setting("", _text)
    #: The language of what the agent says to models; auto is that of the message.
    language: str = _option(Option(name="language", kind=str, default="auto", choices=("auto", *LANGUAGES)))
    #: MCP servers by name, each with a command or a url.
    mcp: tuple[McpServer, ...] = _setting((), _servers, variable=False, trusted=True)
    #: What sub-agents may use.
    subagents: SubAgents = _setting(SubAgents(), _subagents, variable=False)  # noqa: RUF009 - see workspace
    engine: Settings = field(default=defaults_of("agent"))
    #: The settings that somebody set, and the fields of nanobot's file that its preset does not use.
    named: frozenset[str] = field(default=frozenset(), compare=False)
    unused: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        _check(self)

    def allows(self, tool: str) -> bool:
        """Return whether the tool with this name is switched on."""
        return tool not in self.tools_off and (not self.tools or tool in self.tools)

    def with_patterns(self, allow: Sequence[str], deny: Sequence[str]) -> "AgentConfig":
        """Return the configuration with more permission patterns, in addition to those of files. Raises InputError."""
        return replace(
            self, allow=(*self.allow, *_patterns("allow", allow)), deny=(*self.deny, *_patterns("deny", deny))
        )

    def permissions(self, ask: Approve | None = None) -> Permissions:
        """Return the permissions for these settings and the person to ask. Raises InputError.

        The policy file is read here and never again, because it may be in a place where the agent can write.
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
    environment: Mapping[str, str],
    *,
    file: Path | None = None,
    options: Mapping[str, object] | None = None,
    trusted: bool = True,
) -> AgentConfig:
    """Return the configuration from a file, overridden by EVERLONG_… variables, then by options. Raises InputError.

    Settings of the engine that name files or code are skipped in a TOML file that is not `trusted`.
    Example: everlong.toml sets the model, EVERLONG_THRESHOLD=0.8, options {"most_steps": 5} -> all three count
    """
    foreign = NOTHING
    layers: list[_Layer] = []
    if file is not None and file.suffix == ".json":
        foreign = nanobot_values(_content(file))
        layers.append(_Layer(foreign.values, dict.fromkeys(foreign.values, str(file))))
    elif file is not None:
        section = _section(file)
        for name in () if trusted else operator_settings(section):
            del section[name]
        layers.append(_Layer(section, dict.fromkeys(section, str(file))))
    variables = {name: environment.get(variable_named(name), "").strip() for name in VARIABLES}
    variables = {**variables_of(environment), **{name: text for name, text in variables.items() if text}}
    layers.append(_Layer(variables, {name: variable_named(name) for name in variables}))
    chosen = {name: value for name, value in (options or {}).items() if value is not None}
    layers.append(_Layer(chosen, {name: "--" + name.replace("_", "-") for name in chosen}))
    return _merged(layers, foreign)


@dataclass(frozen=True, slots=True)
class _Layer:
    """The values of a file, of the variables or of the options, and where each was set: a file, EVERLONG_… or --…"""

    given: Mapping[str, object]
    origins: Mapping[str, str]


def _merged(layers: Sequence[_Layer], foreign: NanobotValues) -> AgentConfig:
    """Merge the layers, later ones over earlier ones. Only the merged engine settings show which options are unused."""
    config = DEFAULT_CONFIG
    for layer in layers:
        for where in dict.fromkeys(layer.origins.values()):
            values = {name: value for name, value in layer.given.items() if layer.origins[name] == where}
            config = _changed(config, values, where)
    unused: tuple[str, ...] = ()
    for layer in layers:
        lines = unused_settings(layer.given, config.engine)
        if layer.given is foreign.values:
            unused = tuple(foreign.written[name] for name in lines)
        elif lines:
            name, line = next(iter(lines.items()))
            raise InputError(f"{layer.origins[name]}: {line}")
    named = frozenset(name for layer in layers for name in layer.given)
    starts: dict[str, Any] = {name: value for name, value in config.engine.rules.agent.items() if name not in named}
    return replace(config, **starts, named=named, unused=unused)


def folder_config(
    environment: Mapping[str, str], folder: Path, options: Mapping[str, object] | None = None
) -> tuple[AgentConfig, tuple[str, ...]]:
    """Return the configuration for a folder, and the fields of the folder's own file that are ignored.

    The author of that file may not be the user (in a cloned repository). So it cannot start programs, send keys
    elsewhere, widen boundaries or allow anything, unless EVERLONG_CONFIG names it. It can deny.
    """
    file = config_file(environment, folder)
    trusted = file is None or file != folder / FILE or bool(environment.get(f"{PREFIX}CONFIG", "").strip())
    config = load_config(environment, file=file, options=options, trusted=trusted)
    config = replace(config, remembered=place("config", REMEMBERED, environment=environment).absolute())
    if file is None or trusted:
        return config, ()
    own = load_config(environment, file=_users_file(environment), options=options)
    ignored = tuple(name for name in TRUSTED if getattr(config, name) not in (getattr(own, name), "never"))
    kept = {name: getattr(own, name) for name in ignored}
    config = replace(config, **kept, deny=tuple(dict.fromkeys((*own.deny, *config.deny))))
    return config, tuple(sorted((*ignored, *operator_settings(_section(file)))))


def config_file(environment: Mapping[str, str], folder: Path) -> Path | None:
    """Return the file to read: EVERLONG_CONFIG ("none": no file), else the folder's, else the user's; None if none."""
    named = environment.get(f"{PREFIX}CONFIG", "").strip()
    if named == NO_FILE:
        return None
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
        raise InputError(f"{path}: the configuration must be a table of settings")
    return content


def _section(path: Path) -> dict[str, object]:
    section = _content(path).get("agent", {})
    if not isinstance(section, dict):
        raise InputError(f"{path}: agent must be a section")
    return section


def _changed(config: AgentConfig, given: Mapping[str, object], where: str) -> AgentConfig:
    """Return the configuration with the given values. Engine settings are in the same table as the agent's own."""
    engine = read_settings(given, base=config.engine, where=where, also=OWN_FIELDS, modules=True)
    try:
        own = _read(AgentConfig, {name: value for name, value in given.items() if name in OWN_FIELDS})
        return replace(config, engine=engine, **own)
    except (InputError, TypeError, ValueError) as error:
        raise InputError(f"{where}: {error}") from None
