"""The gateway's settings: a TOML file, then the environment, then the options of a command; the later ones win.

The engine's settings are embedded, and read and checked by the engine. Here are the gateway's own fields, their
defaults, and the one line that says what is wrong with a value. A secret is in no representation and in no error.
`GatewayConfig(…)` reads nothing by itself; `load_config` reads.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from everlong.engine import SETTINGS, Mode, Settings, defaults_of, read_settings, unused_settings, variables_of
from everlong.errors import InputError
from everlong.folders import place
from everlong.gateway.surfaces import FORMATS
from everlong.gateway.values import (
    Unknown,
    Wrong,
    hint,
    list_of,
    matching,
    names_of,
    one_of,
    read_bytes,
    read_headers,
    read_host,
    read_network,
    read_origin,
    read_sha256,
    read_some_text,
    read_text,
    read_truth,
    seconds,
    setting,
    table_of,
    unique,
    whole_number,
)
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

#: The table of the agent in a file that both read.
AGENT_TABLE = "agent"
PREFIX = "EVERLONG_GATEWAY_"
MIB = 2**20
ENGINE_DEFAULTS = defaults_of("gateway")
#: Fields that may hold a secret: errors never repeat their values.
SECRETS = frozenset({"keys", "store", "upstream", "upstreams"})
LONGEST_VALUE = 60  # characters of a wrong value in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one key may do; without a figure there is no limit."""

    requests_per_minute: int | None = setting(whole_number(1), "Requests in any 60 seconds.", None)
    tokens_per_minute: int | None = setting(whole_number(1), "Tokens sent in any 60 seconds.", None)
    at_once: int | None = setting(whole_number(1), "Requests under way at the same time.", None)


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTable:
    """One client's key, known by its hash alone."""

    name: str = setting(read_some_text, "Who it belongs to; shown in logs.")
    hash: str = setting(read_sha256, "SHA-256 of the key, in hex.", secret=True)
    mode: Mode | None = setting(  # noqa: RUF009 - the value is immutable
        one_of(*get_args(Mode)), "off, trim or auto; the gateway's own where it is not given.", None
    )
    recall: bool | None = setting(
        read_truth, "Whether the recall tool is offered; the gateway's own if not given.", None
    )
    limits: Limits = setting(table_of(Limits), "What the key may do.", NO_LIMITS)  # noqa: RUF009 - see mode


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamTable:
    """One server that answers."""

    name: str = setting(
        matching(r"[^/\s]*", "has no blanks and no slashes"), "Its name; else the provider's or the host.", ""
    )
    url: str = setting(read_some_text, "Its base address, with /v1, or the name of a known provider.", secret=True)
    key: str = setting(
        read_text, 'Its key, or "env:NAME"; without one the client\'s own is passed on.', "", secret=True
    )
    key_env: str = setting(read_text, "The variable that holds its key.", "")
    formats: tuple[str, ...] = setting(
        list_of(one_of(*FORMATS)), "The formats it speaks; all, or the provider's, if not given.", ()
    )
    models: tuple[str, ...] = setting(
        list_of(read_some_text), 'Patterns of the models it answers for, such as "claude-*".', ()
    )
    headers: dict[str, str] = setting(  # noqa: RUF009 - a new dictionary each time
        read_headers, "Headers sent along with every request.", {}, secret=True
    )
    strip_prefix: bool | None = setting(read_truth, 'Whether "name/model" is sent on as "model".', None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What stands behind a name that a cloud's customer chose: the model, its window, or both."""

    model: str = setting(read_some_text, "The model whose window, tokenizer and prices count.", "")
    window: int | None = setting(whole_number(1), "Its window in tokens, if it is not the model's.", None)


def _deployments(value: object) -> dict[str, Deployment]:
    """Deployments by name, in lower case: clouds do not distinguish. Text is a model, a number a window."""
    if not isinstance(value, dict):
        raise Wrong('is a table, such as my-name = "gpt-4o"')
    read, found = table_of(Deployment), {}
    for name, told in value.items():
        shown = "window" if isinstance(told, int) else "model"
        try:
            found[name.lower()] = read({shown: told} if isinstance(told, str | int) else told)
        except Wrong as wrong:
            raise wrong.below(f".{name}") from None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """The settings of `everlong serve`. Every field has a default that serves; `engine` are the engine's."""

    engine: Settings = ENGINE_DEFAULTS
    host: str = setting(read_text, "The address to listen at.", "127.0.0.1")
    port: int = setting(whole_number(0, 65_535), "The port to listen at; 0 takes a free one.", 8333)
    workers: int = setting(whole_number(1), "Processes that serve, on one store.", 1)
    store: str = setting(read_text, "The store's URL; a SQLite file of the user's if empty.", "", secret=True)
    upstream: str = setting(read_text, "One server for everything: an address or a known provider.", "", secret=True)
    upstreams: tuple[UpstreamTable, ...] = setting(
        unique(list_of(table_of(UpstreamTable)), "name"), "The servers that answer, by model pattern.", ()
    )
    keys: tuple[KeyTable, ...] = setting(
        unique(list_of(table_of(KeyTable)), "name", "hash"), "The clients' keys; without any, everyone is served.", ()
    )
    open: bool = setting(read_truth, "Listen beyond this machine although no keys are set.", False)
    hosts: tuple[str, ...] = setting(
        names_of(read_host), "Names by which it may be called, beside those of this machine.", ()
    )
    origins: tuple[str, ...] = setting(names_of(read_origin), "Sites that may use the gateway from a browser.", ())
    deployments: Mapping[str, Deployment] = setting(
        _deployments, "The models behind names that a cloud's customers choose, or their windows.", {}
    )
    summary_model: str = setting(read_text, "The model that writes them; the conversation's own if empty.", "")
    breakpoints: Literal["auto", "off"] = setting(
        one_of("auto", "off"), "Whether cache marks are set for Anthropic clients that send none: auto, off.", "auto"
    )
    provider_compaction: Literal["ours", "theirs"] = setting(
        one_of("ours", "theirs"), "Who shortens where a client asks its provider to: ours, theirs.", "ours"
    )
    ollama_num_ctx: int = setting(
        whole_number(0), "Raise num_ctx of Ollama to this, within what the model takes; 0 does not.", 0
    )
    usage: Literal["sent", "original"] = setting(one_of("sent", "original"), "The usage that clients are told.", "sent")
    keep: Keep = setting(  # noqa: RUF009 - see KeyTable.mode
        one_of(*get_args(Keep)), "What is stored of a conversation.", "edits"
    )
    retention_days: float = setting(seconds(zero=True), "Days after which it is deleted.", 7)
    recall_tool: bool = setting(read_truth, "Offer a recall tool and answer it inside the gateway.", False)
    largest_body: int = setting(read_bytes, "The largest request, in bytes.", 64 * MIB)
    header_timeout: float = setting(seconds(), "Seconds that a client may take to send the head of a request.", 10.0)
    body_timeout: float = setting(seconds(), "Seconds that a client may take to send a request.", 60.0)
    idle_timeout: float = setting(seconds(), "Seconds that a connection may be idle between two requests.", 75.0)
    write_timeout: float = setting(seconds(), "Seconds that a client may take nothing of its answer.", 60.0)
    connections: int = setting(
        whole_number(1), "The most connections of a process; fewer where its files are fewer.", 4_096
    )
    connections_per_address: int = setting(
        whole_number(0), "The most connections of one address to a process; 0 for no limit.", 512
    )
    trusted_proxies: tuple[str, ...] = setting(
        names_of(read_network), "Addresses or networks of proxies, whose connections are not limited by address.", ()
    )
    connect_timeout: float = setting(seconds(), "Seconds that connecting to an upstream may take.", 10.0)
    silence_timeout: float = setting(seconds(), "Seconds that an upstream may say nothing.", 600.0)
    keepalive_after: float = setting(seconds(), "Seconds after which a waiting stream gets its first comment.", 5.0)
    keepalive_every: float = setting(seconds(), "Seconds between the comments after that.", 10.0)
    grace: float = setting(seconds(zero=True), "Seconds that shutting down waits for answers.", 20.0)
    app: bool = setting(read_truth, "Serve the chat app at /, in one process.", True)
    access_log: bool = setting(read_truth, "Write one line a request, without contents.", True)
    memory: int = setting(read_bytes, "Bytes of conversations held in memory.", 64 * MIB)

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
            meant = hint(name, sorted({*OWN, *ENGINE}))
            raise InputError(f"{origins[name]}: there is no field {name!r}{meant}")
    engine = ENGINE_DEFAULTS
    for name in sorted(ENGINE & values.keys()):
        engine = read_settings({name: values[name]}, base=engine, where=origins[name])
    own = {name: _own_value(name, value, origins[name]) for name, value in values.items() if name in OWN}
    return GatewayConfig(engine=engine, **own)


def _own_value(name: str, value: object, origin: str) -> Any:
    try:
        return OWN[name].metadata["read"](value)
    except Unknown as unknown:
        raise InputError(f"{origin}: there is no field {name + unknown.place!r}{unknown.problem}") from None
    except Wrong as wrong:
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
    usual = (Path("everlong.toml"), place("config", "gateway.toml", environment=environment))
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
