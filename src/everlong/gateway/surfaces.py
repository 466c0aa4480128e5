"""The paths of models: one row for each path of each API.

A format has its own paths; clouds offer some formats under other paths, with the model's name in the path. A request is
forwarded to the path that its client used, below the upstream's own address.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote

from everlong.errors import Refused
from everlong.wire import ANTHROPIC, AWS_FRAMES, FORMATS as WIRE_FORMATS, OPENAI_CHAT, OPENAI_RESPONSES, Format, Framing

__all__ = [
    "AZURE",
    "BEDROCK",
    "DEFAULT_FORMAT",
    "FORMATS",
    "SURFACES",
    "VERTEX",
    "Address",
    "Surface",
    "checked_path",
]

#: Clouds with paths of their own, as the registry of windows names them.
AZURE, VERTEX, BEDROCK = "azure", "google-vertex", "amazon-bedrock"

#: The formats that clients may speak to the gateway: every wire format that says how a server serves it.
FORMATS: Mapping[str, Format] = {name: each for name, each in WIRE_FORMATS.items() if each.server_side is not None}
#: The format for a client that does not show which one it speaks.
DEFAULT_FORMAT = OPENAI_CHAT

MODEL = "model"
MODELS = "/models/"
NAMES = re.compile(r"\{([a-z]+)\}")
LONGEST_PATH = 1_024
PLAIN_PATH = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,=:@-]|%[0-9A-Fa-f]{2})+)+/?")
#: Bytes that may not be percent-encoded in a path, because servers read them differently. An encoded slash is allowed,
#: because names of models contain slashes; the path is then checked in its decoded form.
NEVER_ENCODED = frozenset(range(0x20)) | frozenset(b"#%.;?\\\x7f")
ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """One path of an API.

    "{model}" in it is the model's name; any other "{name}" is forwarded as the client wrote it.
    """

    format: Format
    #: The end of the base URL of a server with this path.
    base: str
    #: The path below the base.
    path: str
    #: Other bases that clients write before it; at the upstream it is below `base` anyway.
    aliases: tuple[str, ...] = ()
    #: Whether the path asks for a stream; None if a field of the body decides.
    stream: bool | None = None
    #: Whether the answer is the number of tokens.
    counts: bool = False
    #: Whether the answer is the compacted conversation.
    compacts: bool = False
    #: Whether a single prompt is completed, which cannot be shortened.
    prompts: bool = False
    #: The cloud whose paths these are; "" if any server may have them.
    cloud: str = ""
    #: The framing of its streams, if it differs from the format's.
    framing: Framing | None = None
    #: A field that all of the format's bodies have here; a body without it is in an unknown format.
    sign: str = ""
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = NAMES.split(self.path)  # text, name, text, name, …
        pattern = "".join(f"(?P<{part}>[^/]+?)" if at % 2 else re.escape(part) for at, part in enumerate(names))
        # Some clients expect the version in their base URL, others add it themselves; so it may occur twice or not at
        # all.
        bases = "|".join(re.escape(base) for base in (self.base, *self.aliases, *([""] if self.base == "/v1" else ())))
        object.__setattr__(self, "_pattern", re.compile(rf"(?:/v1)?(?:{bases}){pattern}/?"))

    @property
    def names_model(self) -> bool:
        """Whether the path names the model."""
        return f"{{{MODEL}}}" in self.path

    def address(self, path: str) -> "Address | None":
        """Return the address of a request's path, still encoded; None if it is not a path of this surface."""
        found = self._pattern.fullmatch(path)
        return None if found is None else Address(surface=self, values=tuple(found.groupdict().items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A surface with the names that a client wrote into its path."""

    surface: Surface
    #: The names in the path with their values, still encoded.
    values: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """The path below the surface's base, as it is written in a request."""
        return self._path(self.values)

    @property
    def any_models(self) -> str:
        """The path with "{model}" in place of the model's name."""
        return self._path([(name, value) for name, value in self.values if name != MODEL])

    def _path(self, values: Sequence[tuple[str, str]]) -> str:
        path = self.surface.path
        for name, value in values:
            path = path.replace(f"{{{name}}}", value)
        return path

    @property
    def model(self) -> str:
        """The model that the path names; "" if it names none."""
        return unquote(dict(self.values).get(MODEL, ""))

    def with_model(self, model: str) -> "Address":
        """Return the address of the same surface for another model."""
        others = tuple((name, quote(model, safe=":@") if name == MODEL else value) for name, value in self.values)
        return Address(surface=self.surface, values=others)


def checked_path(path: str) -> str:
    """Return the path of a request, unchanged (still encoded), if it is safe to append to an upstream's address.

    Example: "/files/file-1" -> "/files/file-1"; "/../admin", "//host", "/a%2F..%2Fb" -> Refused (400, "bad_path")
    """
    whole = path if path.startswith("/") else "/" + path
    written_out = ENCODED_SLASH.sub("/", whole)
    # A segment that begins with an at sign could be mistaken for a host.
    tricky = any(segment in (".", "..") or segment.startswith(("@", "%40")) for segment in written_out.split("/"))
    hidden = any(int(digits, 16) in NEVER_ENCODED for digits in re.findall(r"%([0-9A-Fa-f]{2})", whole))
    if tricky or hidden or len(whole) > LONGEST_PATH or not PLAIN_PATH.fullmatch(written_out):
        raise Refused("the gateway does not forward this path", status=400, kind="bad_path")
    return whole


def _own(format_: Format) -> Iterator[Surface]:
    """The paths of the format's own API."""
    api = format_.api
    for base in api.bases:
        aliases = api.base_aliases if base == api.base else ()
        for head in (MODELS, *api.other_heads):
            first = Surface(format=format_, base=base, aliases=aliases, path=api.path.replace(MODELS, head))
            yield replace(first, stream=False) if api.stream_path else first
            if api.stream_path:
                yield replace(first, path=api.stream_path.replace(MODELS, head), stream=True)
            if api.count_path:
                yield replace(first, path=api.count_path.replace(MODELS, head), counts=True)
            if api.compact_path:
                yield replace(first, path=api.compact_path, stream=False, compacts=True)
    if api.prompt_path:
        yield Surface(format=format_, base=api.base, path=api.prompt_path, prompts=True)


def _azure() -> Iterator[Surface]:
    """Azure's paths, in which a deployment's name replaces the model.

    Azure also has OpenAI's API below another base and Anthropic's below a third; other providers have these two as
    well.
    """
    yield Surface(format=OPENAI_CHAT, base="/openai", path="/deployments/{model}/chat/completions", cloud=AZURE)
    yield Surface(format=OPENAI_RESPONSES, base="/openai", path="/responses", cloud=AZURE)
    yield Surface(format=OPENAI_CHAT, base="", path="/models/chat/completions", cloud=AZURE)
    for format_, base in ((OPENAI_CHAT, "/openai/v1"), (OPENAI_RESPONSES, "/openai/v1"), (ANTHROPIC, "/anthropic/v1")):
        yield from (replace(surface, base=base, aliases=()) for surface in _own(format_))


#: The field that only bodies for Anthropic's models have in clouds.
VERSION_FIELD = "anthropic_version"
PROJECT = "/projects/{project}/locations/{location}"


def _vertex() -> Iterator[Surface]:
    """Vertex's paths, below two versions: Anthropic's models, formats whose own paths name a model, and OpenAI's."""
    for base in ("/v1", "/v1beta1"):
        claude = f"{PROJECT}/publishers/anthropic/models"
        yield Surface(format=ANTHROPIC, base=base, path=f"{claude}/count-tokens:rawPredict", counts=True, cloud=VERTEX)
        for verb in ("rawPredict", "streamRawPredict"):
            path = f"{claude}/{{model}}:{verb}"
            yield Surface(format=ANTHROPIC, base=base, path=path, cloud=VERTEX, sign=VERSION_FIELD)
        path = f"{PROJECT}/endpoints/{{endpoint}}/chat/completions"
        yield Surface(format=OPENAI_CHAT, base=base, path=path, cloud=VERTEX)
        for surface in _named():
            for before in (PROJECT, ""):
                path = f"{before}/publishers/google{surface.path}"
                yield replace(surface, base=base, path=path, aliases=(), cloud=VERTEX)


def _named() -> Iterator[Surface]:
    """The usual paths of formats whose paths name a model."""
    for api, surface in ((format_.api, each) for format_ in FORMATS.values() for each in _own(format_)):
        usual = surface.path in (api.path, api.stream_path, api.count_path) and surface.base == api.base
        if usual and surface.names_model:
            yield surface


def _bedrock() -> Iterator[Surface]:
    """Bedrock's paths for bodies of Anthropic's models; other models have other paths."""
    path, sign = "/model/{model}/invoke", VERSION_FIELD
    yield Surface(format=ANTHROPIC, base="", path=path, stream=False, cloud=BEDROCK, sign=sign)
    streamed = f"{path}-with-response-stream"
    yield Surface(format=ANTHROPIC, base="", path=streamed, stream=True, framing=AWS_FRAMES, cloud=BEDROCK, sign=sign)


#: Every path of a model; those of the formats' own APIs come first.
SURFACES: tuple[Surface, ...] = (
    *(surface for format_ in FORMATS.values() for surface in _own(format_)),
    *_azure(),
    *_vertex(),
    *_bedrock(),
)
