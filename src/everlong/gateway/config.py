"""The gateway's settings: a TOML file, then the environment, then the options of a command; the later ones win.

The engine's settings are embedded, and read and checked by the engine. Here are the gateway's own fields, their
defaults, and the one line that says what is wrong with a value. A secret is in no representation and in no error.
`GatewayConfig(…)` reads nothing by itself; `load_config` reads.
"""

import difflib
import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from everlong.engine import SETTINGS, Mode, Settings, defaults_of, read_settings, unused_settings, variables_of
from everlong.errors import InputError
from everlong.gateway.surfaces import FORMATS
from everlong.store import LARGEST_CONFIG, read_input

__all__ = [
    "NO_LIMITS",
    "GatewayConfig",
    "Keep",
    "KeyTable",
    "Limits",
    "UpstreamTable",
    "is_loopback",
    "load_config",
    "settings_here",
]

#: What is stored of a conversation.
Keep: TypeAlias = Literal["nothing", "edits", "text"]
Reader: TypeAlias = Callable[[object], Any]

#: The table of the agent in a file that both read.
AGENT_TABLE = "agent"
PREFIX = "EVERLONG_GATEWAY_"
MIB = 2**20
ENGINE_DEFAULTS = defaults_of("gateway")
#: Fields that may hold a secret: errors never repeat their values.
SECRETS = frozenset({"keys", "store", "upstream", "upstreams"})
LONGEST_VALUE = 60  # characters of a wrong value in an error


# --- reading values --------------------------------------------------------------------------------


class _Wrong(Exception):
    """A value that cannot be used: what it should be, and its place below the field."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(problem)
        self.problem, self.place = problem, place

    def below(self, place: str) -> "_Wrong":
        """Return the same problem as seen from one level up."""
        return type(self)(self.problem, place + self.place)


class _Unknown(_Wrong):
    """A field that does not exist; the problem is the hint what may have been meant."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Wrong("is text")
    return value


def _some_text(value: object) -> str:
    if not _text(value):
        raise _Wrong("is empty")
    return _text(value)


def _matching(pattern: str, problem: str) -> Reader:
    def read(value: object) -> str:
        text = _text(value)
        if not re.fullmatch(pattern, text):
            raise _Wrong(problem)
        return text

    return read


def _network(value: object) -> str:
    try:
        return str(ip_network(_text(value), strict=False))
    except ValueError:
        raise _Wrong("is an address or a network, such as 10.0.0.0/8") from None


def _sha256(value: object) -> str:
    return str(_matching(r"[0-9a-fA-F]{64}", "is the SHA-256 of the key, 64 hex digits")(value)).lower()


TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


def _truth(value: object) -> bool:
    word = str(value).strip().lower() if isinstance(value, str | int) else ""
    if word not in TRUE | FALSE:
        raise _Wrong("is true or false")
    return word in TRUE


def _whole(least: int, most: int | None = None) -> Reader:
    def read(value: object) -> int:
        number = _number_of(value, "is a whole number")
        if not number.is_integer():
            raise _Wrong("is a whole number")
        if number < least:
            raise _Wrong(f"is at least {least}")
        if most is not None and number > most:
            raise _Wrong(f"is at most {most}")
        return value if isinstance(value, int) else int(number)

    return read


def _seconds(*, zero: bool = False) -> Reader:
    def read(value: object) -> float:
        number = _number_of(value, "is a number")
        if not math.isfinite(number):
            raise _Wrong("is a finite number")
        if number < 0 or (number == 0 and not zero):
            raise _Wrong("is at least 0" if zero else "is more than 0")
        return number

    return read


def _number_of(value: object, problem: str) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _Wrong(problem)
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise _Wrong(problem) from None


#: Bytes of each unit; without one they are bytes.
UNITS = {"": 1, "b": 1}
UNITS |= {letter + end: 1_000**power for power, letter in enumerate("kmgtpe", start=1) for end in ("", "b")}
UNITS |= {f"{letter}ib": 1_024**power for power, letter in enumerate("kmgtpe", start=1)}


def _bytes(value: object) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value % 1 == 0:
        return int(value)
    text = value.strip() if isinstance(value, str) else ""
    parts = re.fullmatch(r"(\d+(?:_\d+)*(?:\.\d+)?)\s*([a-zA-Z]*)", text)
    if parts is None or parts[2].lower() not in UNITS:
        raise _Wrong("is a number of bytes, such as 67108864 or 64MiB")
    return int(float(parts[1]) * UNITS[parts[2].lower()])


def _one_of(*choices: str) -> Reader:
    def read(value: object) -> str:
        if value not in choices:
            raise _Wrong(f"is one of {', '.join(choices)}")
        return str(value)

    return read


def _list(read_member: Reader) -> Reader:
    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise _Wrong("is a list")
        members = []
        for at, member in enumerate(value):
            try:
                members.append(read_member(member))
            except _Wrong as wrong:
                raise wrong.below(f"[{at}]") from None
        return tuple(members)

    return read


def _names(read_member: Reader) -> Reader:
    """A list, or text with commas, as variables have it."""
    read_list = _list(read_member)

    def read(value: object) -> Any:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        return read_list(value)

    return read


def _host(value: object) -> str:
    name = _text(value).lower()
    if not re.fullmatch(r"\*|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?|[0-9a-f:]+", name):
        raise _Wrong('is a name without a port, such as "gateway.example", or "*" for any')
    return name


def _origin(value: object) -> str:
    site = _text(value).lower()
    if not re.fullmatch(r"https?://(?:[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?|\[[0-9a-f:]+\])(?::[0-9]{1,5})?", site):
        raise _Wrong('is a site as browsers write it, such as "https://app.example" or "http://localhost:3000"')
    return site


def _headers(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _Wrong("is a table")
    for name, text in value.items():
        if not isinstance(text, str):
            raise _Wrong("is text", f".{name}")
    return dict(value)


def _table(cls: type[Any]) -> Reader:
    def read(value: object) -> Any:
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise _Wrong("is a table")
        known = {each.name: each for each in fields(cls)}
        for name in value:
            if name not in known:
                raise _Unknown(_hint(name, sorted(known)), f".{name}")
        missing = [name for name, each in known.items() if name not in value and _is_required(each)]
        if missing:
            raise _Wrong("is missing", f".{missing[0]}")
        return cls(**{name: _read_field(known[name], raw) for name, raw in value.items()})

    return read


def _read_field(described: "Field[Any]", value: object) -> Any:
    if value is None and described.default is None:
        return None
    try:
        return described.metadata["read"](value)
    except _Wrong as wrong:
        raise wrong.below(f".{described.name}") from None


def _is_required(described: "Field[Any]") -> bool:
    return described.default is MISSING and described.default_factory is MISSING


def _unique(read: Reader, *names: str) -> Reader:
    """A list of tables in which these fields differ; a hash is not shown."""

    def read_unique(value: object) -> Any:
        tables = read(value)
        for name in names:
            values = [str(getattr(table, name)).lower() for table in tables if getattr(table, name)]
            twice = next((each for each in values if values.count(each) > 1), None)
            if twice is not None:
                raise _Wrong(f"has two tables of the same {name}" + ("" if name == "hash" else f", {twice!r}"))
        return tables

    return read_unique


def _hint(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"


# --- the fields ------------------------------------------------------------------------------------


def _set(read: Reader, help_text: str, default: Any = MISSING, *, secret: bool = False) -> Any:
    """A field with its reader and its description."""
    metadata = {"read": read, "help": help_text}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata, repr=not secret)
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one key may do; without a figure there is no limit."""

    requests_per_minute: int | None = _set(_whole(1), "Requests in any 60 seconds.", None)
    tokens_per_minute: int | None = _set(_whole(1), "Tokens sent in any 60 seconds.", None)
    at_once: int | None = _set(_whole(1), "Requests under way at the same time.", None)


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTable:
    """One client's key, known by its hash alone."""

    name: str = _set(_some_text, "Who it belongs to; shown in logs.")
    hash: str = _set(_sha256, "SHA-256 of the key, in hex.", secret=True)
    mode: Mode | None = _set(  # noqa: RUF009 - the value is immutable
        _one_of(*get_args(Mode)), "off, trim or auto; the gateway's own where it is not given.", None
    )
    recall: bool | None = _set(_truth, "Whether the recall tool is offered; the gateway's own if not given.", None)
    limits: Limits = _set(_table(Limits), "What the key may do.", NO_LIMITS)  # noqa: RUF009 - see mode


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamTable:
    """One server that answers."""

    name: str = _set(
        _matching(r"[^/\s]*", "has no blanks and no slashes"), "Its name; else the provider's or the host.", ""
    )
    url: str = _set(_some_text, "Its base address, with /v1, or the name of a known provider.", secret=True)
    key: str = _set(_text, 'Its key, or "env:NAME"; without one the client\'s own is passed on.', "", secret=True)
    key_env: str = _set(_text, "The variable that holds its key.", "")
    formats: tuple[str, ...] = _set(
        _list(_one_of(*FORMATS)), "The formats it speaks; all, or the provider's, if not given.", ()
    )
    models: tuple[str, ...] = _set(_list(_some_text), 'Patterns of the models it answers for, such as "claude-*".', ())
    headers: dict[str, str] = _set(  # noqa: RUF009 - a new dictionary each time
        _headers, "Headers sent along with every request.", {}, secret=True
    )
    strip_prefix: bool | None = _set(_truth, 'Whether "name/model" is sent on as "model".', None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What stands behind a name that a cloud's customer chose: the model, its window, or both."""

    model: str = _set(_some_text, "The model whose window, tokenizer and prices count.", "")
    window: int | None = _set(_whole(1), "Its window in tokens, if it is not the model's.", None)


def _deployments(value: object) -> dict[str, Deployment]:
    """Deployments by name, in lower case: clouds do not distinguish. Text is a model, a number a window."""
    if not isinstance(value, dict):
        raise _Wrong('is a table, such as my-name = "gpt-4o"')
    read, found = _table(Deployment), {}
    for name, told in value.items():
        shown = "window" if isinstance(told, int) else "model"
        try:
            found[name.lower()] = read({shown: told} if isinstance(told, str | int) else told)
        except _Wrong as wrong:
            raise wrong.below(f".{name}") from None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """The settings of `everlong serve`. Every field has a default that serves; `engine` are the engine's."""

    engine: Settings = ENGINE_DEFAULTS
    host: str = _set(_text, "The address to listen at.", "127.0.0.1")
    port: int = _set(_whole(0, 65_535), "The port to listen at; 0 takes a free one.", 8333)
    workers: int = _set(_whole(1), "Processes that serve, on one store.", 1)
    store: str = _set(_text, "The store's URL; a SQLite file of the user's if empty.", "", secret=True)
    upstream: str = _set(_text, "One server for everything: an address or a known provider.", "", secret=True)
    upstreams: tuple[UpstreamTable, ...] = _set(
        _unique(_list(_table(UpstreamTable)), "name"), "The servers that answer, by model pattern.", ()
    )
    keys: tuple[KeyTable, ...] = _set(
        _unique(_list(_table(KeyTable)), "name", "hash"), "The clients' keys; without any, everyone is served.", ()
    )
    open: bool = _set(_truth, "Listen beyond this machine although no keys are set.", False)
    hosts: tuple[str, ...] = _set(_names(_host), "Names by which it may be called, beside those of this machine.", ())
    origins: tuple[str, ...] = _set(_names(_origin), "Sites that may use the gateway from a browser.", ())
    deployments: Mapping[str, Deployment] = _set(
        _deployments, "The models behind names that a cloud's customers choose, or their windows.", {}
    )
    summary_model: str = _set(_text, "The model that writes them; the conversation's own if empty.", "")
    breakpoints: Literal["auto", "off"] = _set(
        _one_of("auto", "off"), "Whether cache marks are set for Anthropic clients that send none: auto, off.", "auto"
    )
    provider_compaction: Literal["ours", "theirs"] = _set(
        _one_of("ours", "theirs"), "Who shortens where a client asks its provider to: ours, theirs.", "ours"
    )
    ollama_num_ctx: int = _set(
        _whole(0), "Raise num_ctx of Ollama to this, within what the model takes; 0 does not.", 0
    )
    usage: Literal["sent", "original"] = _set(_one_of("sent", "original"), "The usage that clients are told.", "sent")
    keep: Keep = _set(  # noqa: RUF009 - see KeyTable.mode
        _one_of(*get_args(Keep)), "What is stored of a conversation.", "edits"
    )
    retention_days: float = _set(_seconds(zero=True), "Days after which it is deleted.", 7)
    recall_tool: bool = _set(_truth, "Offer a recall tool and answer it inside the gateway.", False)
    largest_body: int = _set(_bytes, "The largest request, in bytes.", 64 * MIB)
    header_timeout: float = _set(_seconds(), "Seconds that a client may take to send the head of a request.", 10.0)
    body_timeout: float = _set(_seconds(), "Seconds that a client may take to send a request.", 60.0)
    idle_timeout: float = _set(_seconds(), "Seconds that a connection may be idle between two requests.", 75.0)
    write_timeout: float = _set(_seconds(), "Seconds that a client may take nothing of its answer.", 60.0)
    connections: int = _set(_whole(1), "The most connections of a process; fewer where its files are fewer.", 4_096)
    connections_per_address: int = _set(
        _whole(0), "The most connections of one address to a process; 0 for no limit.", 512
    )
    trusted_proxies: tuple[str, ...] = _set(
        _names(_network), "Addresses or networks of proxies, whose connections are not limited by address.", ()
    )
    connect_timeout: float = _set(_seconds(), "Seconds that connecting to an upstream may take.", 10.0)
    silence_timeout: float = _set(_seconds(), "Seconds that an upstream may say nothing.", 600.0)
    keepalive_after: float = _set(_seconds(), "Seconds after which a waiting stream gets its first comment.", 5.0)
    keepalive_every: float = _set(_seconds(), "Seconds between the comments after that.", 10.0)
    grace: float = _set(_seconds(zero=True), "Seconds that shutting down waits for answers.", 20.0)
    app: bool = _set(_truth, "Serve the chat app at /, in one process.", True)
    access_log: bool = _set(_truth, "Write one line a request, without contents.", True)
    memory: int = _set(_bytes, "Bytes of conversations held in memory.", 64 * MIB)

    def deployment(self, name: str) -> Deployment:
        """Return what is known of the model that clients call by a name; without a word of the operator, the name."""
        told = self.deployments.get(name.lower(), Deployment())
        return told if told.model else replace(told, model=name)


#: The gateway's own fields, by name; and the names that the engine reads.
OWN: Mapping[str, "Field[Any]"] = {each.name: each for each in fields(GatewayConfig) if each.name != "engine"}
ENGINE = frozenset(option.name for option in SETTINGS)


# --- reading files, variables and options ----------------------------------------------------------


def load_config(file: str | None, options: Mapping[str, Any], environment: Mapping[str, str]) -> GatewayConfig:
    """Return the settings from a file, the environment and the options of a command; an option of None was not given.

    Raises InputError with one line: what is wrong, and where it was set.
    """
    path = _file_to_read(file, environment)
    in_file = {name.lower(): value for name, value in _read_file(path).items()} if path else {}
    in_file.pop(AGENT_TABLE, None)
    variables = _variables(environment)
    given = {name: value for name, value in options.items() if value is not None}
    origins = (
        dict.fromkeys(in_file, str(path))
        | {name: PREFIX + name.upper() for name in variables}
        | {name: "--" + name.replace("_", "-") for name in given}
    )
    config = _config_of(in_file | variables | given, origins)
    for layer in (in_file, variables, given):
        for name, line in unused_settings(layer, config.engine).items():
            raise InputError(f"{origins[name]}: {line}")
    if not (config.keys or config.open or is_loopback(config.host)):
        raise InputError(
            f"{config.host or 'an empty host'} can be reached from other machines and no keys are set: "
            "add [[keys]], or set open = true (--open) to serve everyone"
        )
    return config


def settings_here(options: Mapping[str, Any], environment: Mapping[str, str]) -> GatewayConfig:
    """Return the settings that `everlong serve` would have with these options in this folder. Raises InputError."""
    return load_config(None, options, environment)


def _config_of(values: Mapping[str, Any], origins: Mapping[str, str]) -> GatewayConfig:
    """The settings of all values; `origins` says where each was set. Raises InputError."""
    for name in values:
        if name not in OWN and name not in ENGINE:
            hint = _hint(name, sorted({*OWN, *ENGINE}))
            raise InputError(f"{origins[name]}: there is no field {name!r}{hint}")
    engine = ENGINE_DEFAULTS
    for name in sorted(ENGINE & values.keys()):
        engine = read_settings({name: values[name]}, base=engine, where=origins[name])
    own = {name: _own_value(name, value, origins[name]) for name, value in values.items() if name in OWN}
    return GatewayConfig(engine=engine, **own)


def _own_value(name: str, value: object, origin: str) -> Any:
    try:
        return OWN[name].metadata["read"](value)
    except _Unknown as unknown:
        raise InputError(f"{origin}: there is no field {name + unknown.place!r}{unknown.problem}") from None
    except _Wrong as wrong:
        shown = name not in SECRETS and isinstance(value, str | int | float)
        instead = f", not {repr(value)[:LONGEST_VALUE]}" if shown else ""
        raise InputError(f"{origin}: {name}{wrong.place} {wrong.problem}{instead}") from None


def _file_to_read(file: str | None, environment: Mapping[str, str]) -> Path | None:
    """The file that is named, which must be there; else the first of the usual ones that is."""
    named = file or environment.get("EVERLONG_CONFIG")
    if named:
        try:
            return Path(named).expanduser()
        except RuntimeError as error:  # ~nobody
            raise InputError(f"{named}: {error}") from None
    folder = Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    usual = (Path("everlong.toml"), folder / "everlong" / "gateway.toml")
    return next((path for path in usual if _is_there(path)), None)


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # another user's folder
        return False


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_input(path, LARGEST_CONFIG).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (at byte {error.start})") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def _variables(environment: Mapping[str, str]) -> dict[str, Any]:
    """What variables set, in capitals or not; lists of tables are written as JSON."""
    ours = {name.upper(): value for name, value in environment.items() if value}
    # Kubernetes tells every pod where a service named everlong-gateway is, in a variable that looks like our port.
    if ours.get(f"{PREFIX}PORT", "").startswith("tcp://"):
        del ours[f"{PREFIX}PORT"]
    own: dict[str, Any] = {name: ours[PREFIX + name.upper()] for name in OWN if PREFIX + name.upper() in ours}
    for name, what in (("keys", "a list of tables"), ("upstreams", "a list of tables"), ("deployments", "a table")):
        if name in own:
            try:
                own[name] = json.loads(own[name])
            except (ValueError, RecursionError):
                raise InputError(f"{PREFIX}{name.upper()}: {name} is {what}, written as JSON") from None
    return {**variables_of(ours, prefix=PREFIX), **own}


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server at that address. Example: "0.0.0.0" -> False"""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
