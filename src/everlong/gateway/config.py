"""What the gateway is told: a TOML file, the environment, the options of a command, in that order of weight.

Owns the fields, their defaults and the one line that says what is wrong with one. A secret is in no representation
and in no error. `GatewayConfig(…)` reads nothing by itself; `load_config` reads.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ByteSize, ConfigDict, Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from everlong.compress import PRESET_NAMES
from everlong.engine import DEFAULT_THRESHOLD, HIGHEST_THRESHOLD, LOWEST_THRESHOLD, Mode, Settings, Summarizing
from everlong.errors import InputError
from everlong.gateway.request import DIALECTS

__all__ = [
    "GatewayConfig",
    "KeyTable",
    "LimitsTable",
    "UpstreamTable",
    "first_problem",
    "load_config",
    "reject_bool",
    "require_unique",
]

#: Fields that may hold a secret: what stands in them is never repeated.
SECRETS = {"keys", "store", "upstream", "upstreams"}

LONGEST_VALUE = 60  # characters of a wrong value

#: What a field should be, by the name that pydantic gives to the problem.
WORDS: Mapping[str, str] = {
    "bool_parsing": "is true or false",
    "bool_type": "is true or false",
    "byte_size": "is a number of bytes, such as 67108864 or 64MiB",
    "byte_size_unit": "is a number of bytes, such as 67108864 or 64MiB",
    "dict_type": "is a table",
    "finite_number": "is a finite number",
    "float_parsing": "is a number",
    "float_type": "is a number",
    "greater_than": "is more than {gt:g}",
    "greater_than_equal": "is at least {ge:g}",
    "int_from_float": "is a whole number",
    "int_parsing": "is a whole number",
    "int_parsing_size": "is a whole number of fewer digits",
    "int_type": "is a whole number",
    "less_than_equal": "is at most {le:g}",
    "literal_error": "is one of {expected}",
    "missing": "is missing",
    "model_type": "is a table",
    "string_too_short": "is empty",
    "string_type": "is text",
    "tuple_type": "is a list",
    "value_error": "{error}",
}


def first_problem(error: ValidationError, model: type[BaseModel], origins: Mapping[str, str]) -> str:
    """The first problem, an unknown field before all others. `origins` says where each field was set.

    Example: port = "x" in gateway.toml -> "gateway.toml: port is a whole number, not 'x'"
    """
    problems = error.errors(include_url=False)
    problem = next((one for one in problems if one["type"] == "extra_forbidden"), problems[0])
    first, *rest = problem["loc"]
    field = str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)
    origin = origins[str(first)]
    if problem["type"] == "extra_forbidden":
        return f"{origin}: {_unknown(field, _fields_beside(model, problem['loc']))}"
    words = WORDS.get(problem["type"], "cannot be used").format(**problem.get("ctx", {}))
    value = problem["input"]
    shown = first not in SECRETS and isinstance(value, str | int | float)
    return f"{origin}: {field} {words}" + (f", not {repr(value)[:LONGEST_VALUE]}" if shown else "")


def reject_bool(annotation: Any, value: Any) -> Any:
    """The value, unless it is true or false where something else is asked for: pydantic takes true for a 1."""
    if isinstance(value, bool) and bool not in (annotation, *get_args(annotation)):
        raise ValueError("does not take a yes or no")
    return value


def require_unique(what: str, values: Sequence[str], *, shown: bool = True) -> None:
    """Raises ValueError if two tables of a list have the same."""
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise ValueError(f"has two tables of the same {what}" + (f", {twice!r}" if shown else ""))


def _unknown(field: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(field.rpartition(".")[2].lower(), known, n=1, cutoff=0.5)
    return f"there is no field {field!r}" + (f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}")


def _fields_beside(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """The fields of the table that an unknown one stands in.

    Example: ("keys", 0, "limits", "at_onc") -> ["at_once", "requests_per_minute", "tokens_per_minute"]
    """
    for step in place[:-1]:
        if isinstance(step, str):
            asked = model.model_fields[step].annotation
            tables = [one for one in (asked, *get_args(asked)) if isinstance(one, type) and issubclass(one, BaseModel)]
            model = tables[0]
    return sorted(model.model_fields)


#: The table of the agent in a file that both read.
OTHERS = "agent"
PREFIX = "EVERLONG_GATEWAY_"
MIB = 2**20


def _known_format(fmt: str) -> str:
    if fmt not in DIALECTS:
        raise ValueError(f"is one of {', '.join(DIALECTS)}")
    return fmt


def _sha256(text: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise ValueError("is the SHA-256 of the key, 64 hex digits")
    return text.lower()


def _plain_name(name: str) -> str:
    if not re.fullmatch(r"[^/\s]*", name):
        raise ValueError("has no blanks and no slashes")
    return name


def _known_preset(name: str) -> str:
    if name not in PRESET_NAMES:
        raise ValueError(f"is one of {', '.join(PRESET_NAMES)}")
    return name


Format = Annotated[str, AfterValidator(_known_format)]
Some = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Table(BaseModel):
    """A table in the file. What it does not know, it refuses; true and false are no numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: Any) -> Any:
        return reject_bool(cls.model_fields[info.field_name].annotation, value)


class LimitsTable(_Table):
    """What one key may do; without a figure there is no limit."""

    requests_per_minute: Count | None = Field(default=None, description="Requests in any 60 seconds.")
    tokens_per_minute: Count | None = Field(default=None, description="Tokens sent in any 60 seconds.")
    at_once: Count | None = Field(default=None, description="Requests under way at the same time.")


class KeyTable(_Table):
    """One client's key, known by its hash alone."""

    name: Some = Field(description="Who it belongs to; shown in logs.")
    hash: Annotated[str, AfterValidator(_sha256)] = Field(repr=False, description="SHA-256 of the key, in hex.")
    mode: Mode | None = Field(default=None, description="off, trim or auto; the gateway's own where it is not given.")
    recall: bool | None = Field(
        default=None, description="Whether the recall tool is offered; the gateway's own if not given."
    )
    limits: LimitsTable = Field(default=LimitsTable(), description="What the key may do.")


class UpstreamTable(_Table):
    """One server that answers."""

    name: Annotated[str, AfterValidator(_plain_name)] = Field(
        default="", description="Its name; else the provider's or the host."
    )
    url: Some = Field(repr=False, description="Its base address, with /v1, or the name of a known provider.")
    key: str = Field(
        default="", repr=False, description='Its key, or "env:NAME"; without one the client\'s own is passed on.'
    )
    key_env: str = Field(default="", description="The variable that holds its key.")
    formats: tuple[Format, ...] = Field(
        default=(), description="The formats it speaks; all, or the provider's, if not given."
    )
    models: tuple[Some, ...] = Field(
        default=(), description='Patterns of the models it answers for, such as "claude-*".'
    )
    headers: dict[str, str] = Field(default={}, repr=False, description="Headers sent along with every request.")
    strip_prefix: bool | None = Field(default=None, description='Whether "name/model" is sent on as "model".')


class GatewayConfig(BaseSettings):
    """The settings of `everlong serve`. Every field has a default that serves."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=PREFIX, env_ignore_empty=True, hide_input_in_errors=True
    )

    host: str = Field(default="127.0.0.1", description="The address to listen at.")
    port: int = Field(default=8333, ge=0, le=65_535, description="The port to listen at; 0 takes a free one.")
    workers: Count = Field(default=1, description="Processes that serve, on one store.")
    store: str = Field(default="", repr=False, description="The store's URL; a SQLite file of the user's if empty.")
    upstream: str = Field(
        default="", repr=False, description="One server for everything: an address or a known provider."
    )
    upstreams: tuple[UpstreamTable, ...] = Field(default=(), description="The servers that answer, by model pattern.")
    keys: tuple[KeyTable, ...] = Field(default=(), description="The clients' keys; without any, everyone is served.")
    open: bool = Field(default=False, description="Listen beyond this machine although no keys are set.")
    mode: Mode = Field(default="auto", description="off changes nothing, trim cuts, auto also summarises.")
    preset: Annotated[str, AfterValidator(_known_preset)] = Field(default="auto", description="How a history is cut.")
    threshold: float = Field(
        default=DEFAULT_THRESHOLD,
        ge=LOWEST_THRESHOLD,
        le=HIGHEST_THRESHOLD,
        description="The share of the room at which a cut is due.",
    )
    low_mark: float | None = Field(
        default=None,
        gt=0,
        le=HIGHEST_THRESHOLD,
        description="The share that a cut goes down to; else by price and window.",
    )
    soft_cap: int | None = Field(
        default=None, gt=0, description="Tokens above which nobody wants to pay; the marks are then shares of it."
    )
    summaries: Summarizing = Field(default="auto", description="Whether summaries are written: auto, on, off.")
    summary_model: str = Field(default="", description="The model that writes them; the conversation's own if empty.")
    breakpoints: Literal["auto", "off"] = Field(
        default="auto", description="Whether cache marks are set for Anthropic clients that send none: auto, off."
    )
    usage: Literal["sent", "original"] = Field(default="sent", description="The usage that clients are told.")
    keep: Literal["nothing", "edits", "text"] = Field(default="edits", description="What is stored of a conversation.")
    retention_days: float = Field(default=7, ge=0, allow_inf_nan=False, description="Days after which it is deleted.")
    recall_tool: bool = Field(default=False, description="Offer a recall tool and answer it inside the gateway.")
    largest_body: ByteSize = Field(default=ByteSize(64 * MIB), description="The largest request, in bytes.")
    body_timeout: Seconds = Field(default=60.0, description="Seconds that a client may take to send a request.")
    connect_timeout: Seconds = Field(default=10.0, description="Seconds that connecting to an upstream may take.")
    silence_timeout: Seconds = Field(default=600.0, description="Seconds that an upstream may say nothing.")
    keepalive_after: Seconds = Field(
        default=5.0, description="Seconds after which a waiting stream gets its first comment."
    )
    keepalive_every: Seconds = Field(default=10.0, description="Seconds between the comments after that.")
    grace: float = Field(
        default=20.0, ge=0, allow_inf_nan=False, description="Seconds that shutting down waits for answers."
    )
    app: bool = Field(default=True, description="Serve the chat app at /, in one process.")
    access_log: bool = Field(default=True, description="Write one line a request, without contents.")
    memory: ByteSize = Field(default=ByteSize(64 * MIB), description="Bytes of conversations held in memory.")

    _no_truth = field_validator("*", mode="before")(
        lambda cls, value, info: reject_bool(cls.model_fields[info.field_name].annotation, value)
    )

    @field_validator("keys")
    @classmethod
    def _keys_differ(cls, keys: tuple[KeyTable, ...]) -> tuple[KeyTable, ...]:
        require_unique("name", [key.name for key in keys])
        require_unique("hash", [key.hash for key in keys], shown=False)
        return keys

    @field_validator("upstreams")
    @classmethod
    def _upstreams_differ(cls, upstreams: tuple[UpstreamTable, ...]) -> tuple[UpstreamTable, ...]:
        require_unique("name", [one.name.lower() for one in upstreams if one.name])
        return upstreams

    @classmethod
    def settings_customise_sources(  # the signature is pydantic's
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        *others: PydanticBaseSettingsSource,  # noqa: ARG003
        **more: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is handed in, and nothing else: `load_config` has read the file and the environment."""
        return (init_settings,)

    def settings(self) -> Settings:
        """What the engine is told."""
        return Settings(
            mode=self.mode,
            preset=self.preset,
            threshold=self.threshold,
            low_mark=self.low_mark,
            soft_cap=self.soft_cap,
            summaries=self.summaries,
        )


def load_config(file: str | None, options: Mapping[str, Any], environment: Mapping[str, str]) -> GatewayConfig:
    """The settings from a file, the environment and the options of a command; an option that is None was not given.

    Raises InputError with one line: what is wrong, and where it was said.
    """
    path = _file_to_read(file, environment)
    told = _read(path) if path else {}
    told.pop(OTHERS, None)
    said = _from_environment(environment)
    given = {name: value for name, value in options.items() if value is not None}
    origins = (
        dict.fromkeys(told, str(path))
        | {name: PREFIX + name.upper() for name in said}
        | {name: "--" + name.replace("_", "-") for name in given}
    )
    try:
        config = GatewayConfig(**(told | said | given))
    except ValidationError as error:
        raise InputError(first_problem(error, GatewayConfig, origins)) from None
    if not (config.keys or config.open or _is_loopback(config.host)):
        raise InputError(
            f"{config.host or 'an empty host'} can be reached from other machines and no keys are set: "
            "add [[keys]], or set open = true to serve everyone"
        )
    return config


# --- reading -----------------------------------------------------------------------------------


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


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (at byte {error.start})") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


class _Variables(EnvSettingsSource):
    """The variables of a given environment, not of this process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        super().__init__(GatewayConfig)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in self._environment.items() if value}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    # Kubernetes tells every pod where a service named everlong-gateway is, in a variable that looks like our port.
    own = {
        name: value
        for name, value in environment.items()
        if not (name.upper() == f"{PREFIX}PORT" and value.startswith("tcp://"))
    }
    try:
        return _Variables(own)()
    except SettingsError as error:
        field = str(error).partition('field "')[2].partition('"')[0]
        raise InputError(f"{PREFIX}{field.upper()}: {field} is a list of tables, written as JSON") from None


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
