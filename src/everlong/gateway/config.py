"""The gateway's settings: from a TOML file, the environment and the options of a command; later ones win.

The engine's settings are embedded, and the engine reads and checks them. This module has the gateway's own fields,
their defaults, and the one-line errors for wrong values. Secrets appear in no repr and in no error. `GatewayConfig(…)`
itself reads nothing; `load_config` does.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from everlong.engine import (
    SETTINGS,
    Mode,
    Settings,
    defaults_of,
    operator_settings,
    read_settings,
    unused_settings,
    variables_of,
)
from everlong.errors import InputError
from everlong.folders import NO_FILE, place
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
    tokens,
    unique,
    whole_number,
)
from everlong.store import LARGEST_CONFIG, read_input

__all__ = [
    "NO_LIMITS",
    "AddressTable",
    "GatewayConfig",
    "Keep",
    "KeyTable",
    "Limits",
    "UpstreamTable",
    "is_loopback",
    "load_config",
    "settings_here",
]

#: What to store of a conversation: nothing, edits, text.
Keep: TypeAlias = Literal["nothing", "edits", "text"]

#: Where background work is done.
Working: TypeAlias = Literal["here", "apart"]

#: The agent's table in a file that both read.
AGENT_TABLE = "agent"
PREFIX = "EVERLONG_GATEWAY_"
HERE = Path("everlong.toml")  # the file in the current folder
MIB = 2**20
ENGINE_DEFAULTS = defaults_of("gateway")
#: Fields that may hold a secret: errors never repeat their values.
SECRETS = frozenset({"keys", "store", "upstream", "upstreams"})
LONGEST_VALUE = 60  # characters of a wrong value in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one key. A limit that is not set does not apply."""

    requests_per_minute: int | None = setting(whole_number(1), "Requests in any 60 seconds.", None)
    tokens_per_minute: int | None = setting(tokens(1), "Tokens sent in any 60 seconds.", None)
    at_once: int | None = setting(whole_number(1), "Requests running at the same time.", None)
    requests_per_day: int | None = setting(whole_number(1), "Requests per day (UTC).", None)
    tokens_per_day: int | None = setting(tokens(1), "Tokens per day (UTC), answers included.", None)
    dollars_per_day: float | None = setting(seconds(), "US dollars per day (UTC).", None)
    dollars_per_month: float | None = setting(seconds(), "US dollars per month (UTC).", None)

    @property
    def by_dollars(self) -> bool:
        """Whether the cost of requests is limited."""
        return self.dollars_per_day is not None or self.dollars_per_month is not None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTable:
    """The key of one client, stored as a hash."""

    name: str = setting(read_some_text, "The key's owner, as logs show it.")
    hash: str = setting(read_sha256, "SHA-256 of the key, in hex.", secret=True)
    mode: Mode | None = setting(  # noqa: RUF009 - the value is immutable
        one_of(*get_args(Mode)), "off, trim or auto; by default the gateway's mode.", None
    )
    recall: bool | None = setting(read_truth, "Whether to offer the recall tool; by default as the gateway does.", None)
    operator: bool = setting(read_truth, "Whether it may create, change and revoke keys over HTTP.", False)
    limits: Limits = setting(table_of(Limits), "The limits of the key.", NO_LIMITS)  # noqa: RUF009 - see mode


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressTable:
    """Another address with the same models as an upstream."""

    url: str = setting(read_some_text, "Its base URL, in the same form as the upstream's.", secret=True)
    key: str = setting(read_text, 'Its key, or "env:NAME"; by default that of the upstream.', "", secret=True)
    key_env: str = setting(read_text, "The variable that holds its key.", "")
    weight: int = setting(
        whole_number(1, 1_000), "Its share of the conversations. Set it for every address or for none.", 0
    )


def _addresses(value: object) -> tuple[AddressTable, ...]:
    """Read a list of addresses; a text is an address without other fields."""
    read = table_of(AddressTable)
    found: tuple[AddressTable, ...] = list_of(lambda one: read({"url": one} if isinstance(one, str) else one))(value)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamTable:
    """One upstream: a server that answers requests."""

    name: str = setting(
        matching(r"[^/\s]*", "must not contain spaces or slashes"),
        "Its name; by default the provider's or the host's.",
        "",
    )
    url: str = setting(read_some_text, "Its base URL, with /v1, or the name of a known provider.", secret=True)
    also: tuple[AddressTable, ...] = setting(
        _addresses, "Other addresses with the same models, used when this one fails: URLs or tables.", ()
    )
    weight: int = setting(
        whole_number(1, 1_000), "Its share of the conversations. Set it for every address or for none.", 0
    )
    key: str = setting(
        read_text, 'Its key, or "env:NAME"; without one the client\'s key is forwarded.', "", secret=True
    )
    key_env: str = setting(read_text, "The variable that holds its key.", "")
    formats: tuple[str, ...] = setting(
        list_of(one_of(*FORMATS)), "The formats it supports; by default the provider's, or all.", ()
    )
    models: tuple[str, ...] = setting(
        list_of(read_some_text), 'Patterns of the models it serves, such as "claude-*".', ()
    )
    headers: dict[str, str] = setting(  # noqa: RUF009 - a new dictionary each time
        read_headers, "Headers to add to every request.", {}, secret=True
    )
    strip_prefix: bool | None = setting(read_truth, 'Whether to forward "name/model" as "model".', None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersTable:
    """How the app identifies its users: one person, a header of a proxy, or an OpenID provider."""

    by: Literal["none", "proxy", "oidc"] = setting(
        one_of("none", "proxy", "oidc"),
        "none: one person; proxy: a header names the user; oidc: users sign in.",
        "none",
    )
    header: str = setting(read_some_text, "proxy: the header that names the user.", "x-forwarded-user")
    issuer: str = setting(read_text, "oidc: the issuer URL of the provider.", "")
    client_id: str = setting(read_text, "oidc: the client id of this app at the provider.", "")
    client_secret_env: str = setting(
        read_text, "oidc: the environment variable with the client secret.", "EVERLONG_OIDC_SECRET"
    )
    address: str = setting(read_text, "oidc: the public URL of the app, for the redirect after sign-in.", "")
    scopes: tuple[str, ...] = setting(
        list_of(read_some_text), "oidc: the scopes to request.", ("openid", "profile", "email")
    )
    domains: tuple[str, ...] = setting(
        list_of(read_some_text), "oidc: domains whose verified email addresses may sign in; all if empty.", ()
    )
    groups: tuple[str, ...] = setting(list_of(read_some_text), "oidc: groups that may sign in; all if empty.", ())
    groups_claim: str = setting(read_some_text, "oidc: the claim that contains the groups.", "groups")
    session_hours: float = setting(seconds(), "oidc: hours until a user has to sign in again.", 12.0)
    tools: bool = setting(read_truth, "Whether users may switch on tools. Tools run as the user of this server.", False)


NO_USERS = UsersTable()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The model or the context window behind a deployment name at a cloud provider."""

    model: str = setting(read_some_text, "The model whose window, tokenizer and prices apply.", "")
    window: int | None = setting(tokens(1), "Its context window in tokens, if it differs from the model's.", None)


def _deployments(value: object) -> dict[str, Deployment]:
    """Return deployments by lower-case name, because clouds ignore case. A text is a model, a number is a window."""
    if not isinstance(value, dict):
        raise Wrong('must be a table, such as my-name = "gpt-4o"')
    read, found = table_of(Deployment), {}
    for name, entry in value.items():
        shown = "window" if isinstance(entry, int) else "model"
        try:
            found[name.lower()] = read({shown: entry} if isinstance(entry, str | int) else entry)
        except Wrong as wrong:
            raise wrong.below(f".{name}") from None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """The settings of `everlong serve`. Every field has a default; `engine` has the engine's settings."""

    engine: Settings = ENGINE_DEFAULTS
    host: str = setting(read_text, "The address to listen on.", "127.0.0.1")
    port: int = setting(whole_number(0, 65_535), "The port to listen on; 0 chooses a free one.", 8333)
    workers: int = setting(whole_number(1), "The number of server processes, all on one store.", 1)
    store: str = setting(
        read_text, "The store's URL; by default a SQLite file in the user's data folder.", "", secret=True
    )
    upstream: str = setting(read_text, "One upstream for all models: a URL or a known provider.", "", secret=True)
    upstreams: tuple[UpstreamTable, ...] = setting(
        unique(list_of(table_of(UpstreamTable)), "name"), "The upstreams, by model pattern.", ()
    )
    keys: tuple[KeyTable, ...] = setting(
        unique(list_of(table_of(KeyTable)), "name", "hash"),
        "The clients' keys, in addition to those in the store. Without keys, everyone is served.",
        (),
    )
    open: bool = setting(read_truth, "Whether other machines may connect although no keys are set.", False)
    hosts: tuple[str, ...] = setting(
        names_of(read_host), "Host names that clients may use, in addition to those of this machine.", ()
    )
    origins: tuple[str, ...] = setting(names_of(read_origin), "Web sites that may use the gateway from a browser.", ())
    deployments: Mapping[str, Deployment] = setting(
        _deployments, "The models (or windows) behind deployment names that you chose at a cloud provider.", {}
    )
    summary_model: str = setting(read_text, "The model that writes summaries; by default the conversation's own.", "")
    breakpoints: Literal["auto", "off"] = setting(
        one_of("auto", "off"),
        "Whether to set cache breakpoints for Anthropic clients that set none: auto, off.",
        "auto",
    )
    provider_compaction: Literal["ours", "theirs"] = setting(
        one_of("ours", "theirs"), "Who compacts when a client asks its provider to: ours (the gateway), theirs.", "ours"
    )
    ollama_num_ctx: int = setting(
        whole_number(0), "Raise Ollama's num_ctx to this, up to what the model supports; 0 leaves it alone.", 0
    )
    usage: Literal["sent", "original"] = setting(
        one_of("sent", "original"),
        "The usage to report to clients: of the request as sent, or of their original.",
        "sent",
    )
    keep: Keep = setting(  # noqa: RUF009 - see KeyTable.mode
        one_of(*get_args(Keep)), "What to store of a conversation: nothing, edits, text.", "edits"
    )
    retention_days: float = setting(seconds(zero=True), "Days until a conversation is deleted.", 7)
    recall_tool: bool = setting(
        read_truth, "Whether to offer models a recall tool, which the gateway answers itself.", False
    )
    largest_body: int = setting(read_bytes, "The largest request, in bytes.", 64 * MIB)
    header_timeout: float = setting(seconds(), "Seconds that a client has to send the headers of a request.", 10.0)
    body_timeout: float = setting(seconds(), "Seconds that a client has to send the whole request.", 60.0)
    idle_timeout: float = setting(seconds(), "Seconds that a connection may stay idle between two requests.", 75.0)
    write_timeout: float = setting(seconds(), "Seconds a client may go without reading its response.", 60.0)
    connections: int = setting(
        whole_number(1), "Maximum connections per process; lower if the open-file limit is low.", 4_096
    )
    connections_per_address: int = setting(
        whole_number(0), "The most connections of one client address to a process; 0 for no limit.", 512
    )
    trusted_proxies: tuple[str, ...] = setting(
        names_of(read_network), "Addresses or networks of proxies. Their connections are not limited by address.", ()
    )
    connect_timeout: float = setting(seconds(), "Seconds to wait for a connection to an upstream.", 10.0)
    silence_timeout: float = setting(seconds(), "Seconds to wait for data from an upstream.", 600.0)
    circuit_failures: int = setting(
        whole_number(1), "Failures in a row after which an upstream address is not used for a while.", 5
    )
    circuit_pause: float = setting(seconds(), "The most seconds until an address that failed is tried again.", 30.0)
    keepalive_after: float = setting(
        seconds(), "Seconds until a waiting stream gets its first keep-alive comment.", 5.0
    )
    keepalive_every: float = setting(seconds(), "Seconds between later keep-alive comments.", 10.0)
    drain_delay: float = setting(
        seconds(zero=True),
        "Seconds after SIGTERM in which it still accepts requests but reports that it is not ready.",
        0.0,
    )
    grace: float = setting(seconds(zero=True), "Seconds that a shutdown waits for running answers.", 20.0)
    app: bool = setting(
        read_truth, "Whether to serve the chat app at /. Several processes need Postgres for that.", True
    )
    app_lease: float = setting(
        seconds(), "Seconds of silence after which a process's turns in the app are ended.", 15.0
    )
    jobs: Working = setting(  # noqa: RUF009 - see KeyTable.mode
        one_of(*get_args(Working)),
        "Where summaries and other background jobs run: here, apart (in `everlong worker`).",
        "here",
    )
    jobs_at_once: int = setting(whole_number(1), "Background jobs that a process runs at the same time.", 4)
    jobs_lease: float = setting(
        seconds(), "Seconds of silence after which other processes take over a process's jobs.", 20.0
    )
    trace_upstream: bool = setting(read_truth, "Whether to send upstreams a traceparent header of our own.", False)
    users: UsersTable = setting(  # noqa: RUF009 - see KeyTable.mode
        table_of(UsersTable), "How the app tells its users apart; by default there is one user.", NO_USERS
    )
    access_log: bool = setting(read_truth, "Whether to write one log line per request, without contents.", True)
    memory: int = setting(read_bytes, "Bytes of conversations to hold in memory.", 64 * MIB)

    @property
    def closed(self) -> bool:
        """Whether a key is always needed: keys are set, or other machines can connect and `open` is off."""
        return bool(self.keys) or not (self.open or is_loopback(self.host))

    def deployment(self, name: str) -> Deployment:
        """Return the deployment behind a model's name; without a setting, the model is the name itself."""
        deployment = self.deployments.get(name.lower(), Deployment())
        return deployment if deployment.model else replace(deployment, model=name)


#: The gateway's own fields, by name; and the names that the engine reads.
OWN: Mapping[str, "Field[Any]"] = {each.name: each for each in fields(GatewayConfig) if each.name != "engine"}
ENGINE = frozenset(option.name for option in SETTINGS)


# --- reading files, variables and options ----------------------------------------------------------


def load_config(file: str | None, options: Mapping[str, Any], environment: Mapping[str, str]) -> GatewayConfig:
    """Return the settings from a file, the environment and the options of a command; options of None are ignored.

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
    if path == HERE and not file and not environment.get("EVERLONG_CONFIG"):
        _check_found({name: value for name, value in in_file.items() if origins[name] == str(path)})
    config = _config_of(in_file | variables | given, origins)
    for layer in (in_file, variables, given):
        for name, line in unused_settings(layer, config.engine).items():
            raise InputError(f"{origins[name]}: {line}")
    problem = _users_problem(config)
    if problem:
        raise InputError(f"{origins.get('users', 'users')}: users{problem}")
    return config


def _check_found(values: Mapping[str, Any]) -> None:
    """Raise InputError if a file that was only found in the current folder would run code.

    Its author may be someone else: in a cloned repository, for example.
    """
    for name in operator_settings(values):
        if ":" in str(values[name]) and not _is_folder(str(values[name])):  # a folder of Windows has a colon too
            raise InputError(
                f"{HERE}: {name} {values[name]} would run code; to allow that, name the file with --config {HERE} or "
                "EVERLONG_CONFIG"
            )


def _users_problem(config: GatewayConfig) -> str:
    """Return why the app cannot identify its users; "" if it can."""
    users = config.users
    if users.by == "proxy" and not config.trusted_proxies:
        return '.by = "proxy" needs trusted_proxies: the addresses whose header is trusted'
    if users.by == "oidc":
        for name in ("issuer", "client_id", "address"):
            value = getattr(users, name)
            if not value:
                return f'.by = "oidc" needs users.{name}'
        for name in ("issuer", "address"):
            if not re.fullmatch(
                r"https://[^\s?#]+|http://(127\.0\.0\.1|localhost)(:\d+)?[^\s?#]*", getattr(users, name)
            ):
                return f".{name} must be an https address"
    return ""


def settings_here(options: Mapping[str, Any], environment: Mapping[str, str]) -> GatewayConfig:
    """Return the settings that `everlong serve` would have in this folder with these options. Raises InputError."""
    return load_config(None, options, environment)


def _config_of(values: Mapping[str, Any], origins: Mapping[str, str]) -> GatewayConfig:
    """Return the settings from all values; `origins` says where each was set. Raises InputError."""
    for name in values:
        if name not in OWN and name not in ENGINE:
            meant = hint(name, sorted({*OWN, *ENGINE}))
            raise InputError(f"{origins[name]}: unknown setting {name!r}{meant}")
    engine = ENGINE_DEFAULTS
    for name in sorted(ENGINE & values.keys()):
        engine = read_settings({name: values[name]}, base=engine, where=origins[name], modules=True)
    own = {name: _own_value(name, value, origins[name]) for name, value in values.items() if name in OWN}
    return GatewayConfig(engine=engine, **own)


def _own_value(name: str, value: object, origin: str) -> Any:
    try:
        return OWN[name].metadata["read"](value)
    except Unknown as unknown:
        raise InputError(f"{origin}: unknown setting {name + unknown.place!r}{unknown.problem}") from None
    except Wrong as wrong:
        shown = name not in SECRETS and isinstance(value, str | int | float)
        instead = f", not {repr(value)[:LONGEST_VALUE]}" if shown else ""
        raise InputError(f"{origin}: {name}{wrong.place} {wrong.problem}{instead}") from None


def _file_to_read(file: str | None, environment: Mapping[str, str]) -> Path | None:
    """Return the named file, which must exist; else the first of the usual files that exists."""
    named = file or environment.get("EVERLONG_CONFIG")
    if named == NO_FILE:
        return None
    if named:
        try:
            return Path(named).expanduser()
        except RuntimeError as error:  # such as ~nobody
            raise InputError(f"{named}: {error}") from None
    usual = (HERE, place("config", "gateway.toml", environment=environment))
    return next((path for path in usual if _is_there(path)), None)


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):
        return False


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as another user's folder
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
    """Return the values of the environment variables, in any case; lists of tables are JSON."""
    ours = {name.upper(): value for name, value in environment.items() if value}
    # Kubernetes gives every pod a variable with the address of a service named everlong-gateway; it looks like our
    # port.
    if ours.get(f"{PREFIX}PORT", "").startswith("tcp://"):
        del ours[f"{PREFIX}PORT"]
    own: dict[str, Any] = {name: ours[PREFIX + name.upper()] for name in OWN if PREFIX + name.upper() in ours}
    for name, what in (
        ("keys", "a list of tables"),
        ("upstreams", "a list of tables"),
        ("deployments", "a table"),
        ("users", "a table"),
    ):
        if name in own:
            try:
                own[name] = json.loads(own[name])
            except (ValueError, RecursionError):
                raise InputError(f"{PREFIX}{name.upper()}: {name} must be {what}, written as JSON") from None
    return {**variables_of(ours, prefix=PREFIX), **own}


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server at this address. Example: "0.0.0.0" -> False"""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
