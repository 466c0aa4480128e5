"""What an agent is set to: a file, variables, options, each over the one before. Every field has a default.

The file is `everlong.toml` (section `[agent]`) or nanobot's `config.json`, whose fields are understood by their names.
What makes no sense is refused by name; nothing here connects to anything.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from everlong.agent.definitions import Approve
from everlong.compress import NanobotSettings
from everlong.core import Json
from everlong.engine import DEFAULT_SETTINGS, SETTINGS, Settings
from everlong.errors import InputError
from everlong.windows import window

__all__ = [
    "DEFAULT_CONFIG",
    "AgentConfig",
    "Approval",
    "McpServer",
    "SubAgents",
    "at_home",
    "config_file",
    "folder_config",
    "load_config",
]

#: Whether tools that act on the world are asked about, simply run, or never run.
Approval: TypeAlias = Literal["ask", "always", "never"]
Language: TypeAlias = Literal["auto", "en", "zh"]

PREFIX = "EVERLONG_"
FILE = "everlong.toml"
SYSTEM = "You are a careful agent. Do what the user asks with the tools you have; say plainly what you did and did not."


def _at_least(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise InputError(f"{name} is at least {least}, not {value}")


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

    model: str = ""
    window: int | None = None
    most_steps: int = 30
    most_tokens: int | None = 2_000_000
    most_depth: int = 2
    #: Seconds for one of them.
    seconds: float = 3_600.0
    #: Characters of a result that reach the agent who asked.
    result_characters: int = 8_000

    def __post_init__(self) -> None:
        for name in ("window", "most_steps", "most_tokens", "result_characters"):
            _at_least(f"subagents.{name}", getattr(self, name), 1)
        _at_least("subagents.most_depth", self.most_depth, 0)
        if not self.seconds > 0:
            raise InputError(f"subagents.seconds is a number of seconds above 0, not {self.seconds}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """All settings of an agent. `engine` are those of the engine: preset, threshold, mode, window and the rest."""

    model: str = "gpt-4o"
    upstream: str = ""
    #: Who owns the threads that are made.
    owner: str = ""
    workspace: Path = Path()
    allowed: tuple[Path, ...] = ()
    system: str = SYSTEM
    max_tokens: int | None = None
    temperature: float | None = None
    most_steps: int = 40
    most_tokens: int | None = None
    tool_seconds: float = 600.0
    #: Seconds for a tool to end once it is stopped.
    stop_seconds: float = 5.0
    #: Tools by name: only these if any are named, never those.
    tools: tuple[str, ...] = ()
    tools_off: tuple[str, ...] = ("fetch_url",)
    approval: Approval = "ask"
    summary_model: str = ""
    language: Language = "auto"
    mcp: tuple[McpServer, ...] = ()
    subagents: SubAgents = SubAgents()
    engine: Settings = DEFAULT_SETTINGS

    def __post_init__(self) -> None:
        for name, words in (("approval", get_args(Approval)), ("language", get_args(Language))):
            if getattr(self, name) not in words:
                raise InputError(f"{name} is one of {', '.join(words)}, not {getattr(self, name)!r}")
        for name in ("max_tokens", "most_steps", "most_tokens"):
            _at_least(name, getattr(self, name), 1)
        for name in ("tool_seconds", "stop_seconds"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is a number of seconds above 0, not {getattr(self, name)}")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise InputError(f"temperature is from 0 to 2, not {self.temperature}")

    def allows(self, tool: str) -> bool:
        """Whether a tool of that name is switched on."""
        return tool not in self.tools_off and (not self.tools or tool in self.tools)

    def approving(self, ask: Approve) -> Approve:
        """Who is asked before a tool acts: the one given, or nobody."""
        if self.approval == "ask":
            return ask
        answer = self.approval == "always"

        async def settled(name: str, what: str) -> bool:  # noqa: ARG001 - the answer is the same for all
            return answer

        return settled


DEFAULT_CONFIG = AgentConfig()
ENGINE_FIELDS = frozenset(option.name for option in SETTINGS)
#: What only the user's own file, the environment and options may say: see `folder_config`.
OF_THE_USER = ("allowed", "approval", "mcp", "upstream", "workspace")
OWN_FIELDS = frozenset(each.name for each in fields(AgentConfig)) - {"engine"}


def load_config(
    environment: Mapping[str, str], *, file: Path | None = None, options: Mapping[str, object] | None = None
) -> AgentConfig:
    """The configuration: a file, over it the variables EVERLONG_…, over them the options. Raises InputError.

    Example: everlong.toml says model, EVERLONG_THRESHOLD=0.8, options {"most_steps": 5} -> all three count
    """
    config = DEFAULT_CONFIG if file is None else _from_file(file)
    named = {each: environment.get(PREFIX + each.upper(), "").strip() for each in (*VARIABLES, *ENGINE_FIELDS)}
    config = _with(config, {each: value for each, value in named.items() if value}, f"{PREFIX}…")
    return _with(config, {key: value for key, value in (options or {}).items() if value is not None}, "options")


def folder_config(
    environment: Mapping[str, str], folder: Path, options: Mapping[str, object] | None = None
) -> tuple[AgentConfig, tuple[str, ...]]:
    """The configuration for work in a folder, and the fields of the folder's own file that do not count.

    Who wrote that file may not be who works there (a repository that was fetched): it starts no programs, sends no key
    elsewhere, widens no boundary and stops no asking, unless EVERLONG_CONFIG names it.
    """
    file = config_file(environment, folder)
    found = load_config(environment, file=file, options=options)
    if file != folder / FILE or environment.get(f"{PREFIX}CONFIG", "").strip():
        return found, ()
    own = load_config(environment, file=_users_file(environment), options=options)
    held = tuple(name for name in OF_THE_USER if getattr(found, name) not in (getattr(own, name), "never"))
    return replace(found, **{name: getattr(own, name) for name in held}), held


def at_home(path: str) -> Path:
    """A path whose ~ is a home folder; one that is nobody's stays as it is."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def config_file(environment: Mapping[str, str], folder: Path) -> Path | None:
    """The file that counts: EVERLONG_CONFIG, else the folder's, else the user's; None if there is none."""
    named = environment.get(f"{PREFIX}CONFIG", "").strip()
    if named:
        return at_home(named)
    return folder / FILE if (folder / FILE).is_file() else _users_file(environment)


def _users_file(environment: Mapping[str, str]) -> Path | None:
    home = environment.get("XDG_CONFIG_HOME", "").strip() or str(Path(environment.get("HOME", "~")) / ".config")
    file = at_home(home) / "everlong" / "config.toml"
    return file if file.is_file() else None


def _from_file(path: Path) -> AgentConfig:
    try:
        text = path.read_text(encoding="utf-8-sig")
        said = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(said, dict):
        raise InputError(f"{path}: a configuration is a table of settings")
    if path.suffix == ".json":
        return _from_nanobot(said, path)
    section = said.get("agent", {})
    if not isinstance(section, dict):
        raise InputError(f"{path}: agent is a section")
    return _with(DEFAULT_CONFIG, section, str(path))


def _with(config: AgentConfig, said: Mapping[str, object], where: str) -> AgentConfig:
    """The configuration with what is said; fields of the engine stand beside the agent's own."""
    unknown = sorted(set(said) - OWN_FIELDS - ENGINE_FIELDS)
    if unknown:
        raise InputError(f"{where}: no such setting: {', '.join(unknown)}")
    try:
        engine = config.engine.for_thread(json.dumps({key: said[key] for key in said if key in ENGINE_FIELDS}))
        own = {key: _read(key, value) for key, value in said.items() if key in OWN_FIELDS}
        return replace(config, engine=engine, **own)  # type: ignore[arg-type]
    except (InputError, TypeError, ValueError) as error:
        raise InputError(f"{where}: {error}") from None


def _read(key: str, value: object) -> object:
    """What is said for a field, as the field takes it."""
    match key:
        case "workspace":
            return at_home(_text(key, value))
        case "allowed":
            return tuple(at_home(each) for each in _words(key, value))
        case "tools" | "tools_off":
            return _words(key, value)
        case "mcp":
            return _servers(value)
        case "subagents":
            return _subagents(value)
        case "max_tokens" | "most_steps" | "most_tokens":
            return _number(key, value, int)
        case "temperature" | "tool_seconds" | "stop_seconds":
            return _number(key, value, float)
        case _:
            return _text(key, value)


def _servers(value: object) -> tuple[McpServer, ...]:
    """Servers by name, or as they are. Example: {"files": {"command": "mcp-files"}} -> one server "files\""""
    if isinstance(value, Sequence) and all(isinstance(each, McpServer) for each in value):
        return tuple(value)
    if not isinstance(value, Mapping):
        raise InputError(f"mcp is a table of servers by name, not {value!r}")
    known = {each.name for each in fields(McpServer)} - {"name"}
    servers = []
    for name, table in value.items():
        if not isinstance(table, Mapping) or set(table) - known:
            raise InputError(f"MCP server {name!r} is a table of {', '.join(sorted(known))}")
        said: dict[str, Any] = dict(table)
        for pairs in ("env", "headers"):
            if pairs in said:
                said[pairs] = tuple((str(key), str(each)) for key, each in dict(said[pairs]).items())
        if "args" in said:
            said["args"] = _words("args", said["args"])
        servers.append(McpServer(name=name, **said))
    return tuple(servers)


def _subagents(value: object) -> SubAgents:
    if isinstance(value, SubAgents):
        return value
    known = {each.name for each in fields(SubAgents)}
    if not isinstance(value, Mapping) or set(value) - known:
        raise InputError(f"subagents is a table of {', '.join(sorted(known))}")
    read: dict[str, Any] = {}
    for key, each in value.items():
        read[key] = _text(key, each) if key == "model" else _number(key, each, float if key == "seconds" else int)
    return SubAgents(**read)


def _from_nanobot(said: Mapping[str, Json], path: Path) -> AgentConfig:
    """nanobot's file: agents.defaults, by its names; its other sections are left alone."""
    agents = said.get("agents")
    defaults = agents.get("defaults") if isinstance(agents, dict) else None
    if not isinstance(defaults, dict):
        defaults = {}
    settings = NanobotSettings.of(defaults)
    model = defaults.get("model")
    named = model if isinstance(model, str) and model else DEFAULT_CONFIG.model
    own: dict[str, object] = {"model": named, "summary_model": settings.compression_model or ""}
    for theirs, ours in NANOBOT_NAMES.items():
        value = defaults.get(theirs[0], defaults.get(theirs[1]))
        if value is not None:
            own[ours] = value
    context = window(named, override=settings.context_window_override).context
    engine: dict[str, object] = {
        "mode": "auto" if settings.context_compression else "off",
        "preset": "nanobot",
        "window": settings.context_window_override,
        "reserve": context - settings.budget(named),
        "summaries": "on" if settings.enable_history_summarization else "auto",
        **{name: getattr(settings, name) for name in NANOBOT_LIMITS},
    }
    return _with(DEFAULT_CONFIG, own | {key: value for key, value in engine.items() if value is not None}, str(path))


#: Limits that the engine knows by the same names.
NANOBOT_LIMITS = (
    "tool_result_soft_limit",
    "tool_result_hard_limit",
    "max_user_message_chars",
    "max_assistant_message_chars",
)
#: nanobot's names, in both of its spellings, and ours.
NANOBOT_NAMES: Mapping[tuple[str, str], str] = {
    ("workspace", "workspace"): "workspace",
    ("maxTokens", "max_tokens"): "max_tokens",
    ("temperature", "temperature"): "temperature",
    ("maxToolIterations", "max_tool_iterations"): "most_steps",
}
VARIABLES = (
    "model",
    "upstream",
    "owner",
    "workspace",
    "system",
    "max_tokens",
    "temperature",
    "most_steps",
    "most_tokens",
    "tool_seconds",
    "stop_seconds",
    "tools",
    "tools_off",
    "approval",
    "summary_model",
    "language",
)


def _text(key: str, value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str):
        raise InputError(f"{key} is a text, not {value!r}")
    return value


def _words(key: str, value: object) -> tuple[str, ...]:
    """A list of words, or words with commas between them."""
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, Sequence) or not all(isinstance(word, str | Path) for word in words):
        raise InputError(f"{key} is a list of words, not {value!r}")
    return tuple(str(word).strip() for word in words if str(word).strip())


def _number(key: str, value: object, kind: type[int] | type[float]) -> int | float:
    try:
        if not isinstance(value, bool) and isinstance(value, str | int | float):
            number = kind(value)
            if isinstance(value, str) or number == value:
                return number
    except (ValueError, OverflowError):
        pass
    raise InputError(f"{key} is a {'whole ' if kind is int else ''}number, not {value!r}")
