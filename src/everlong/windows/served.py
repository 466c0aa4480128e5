"""Read the window that a server reports from the JSON of its endpoints.

A local server is often set to far less than its model supports, and then truncates silently. So each figure says
whether it is the window in force or only the largest that the model supports. This module never contacts a server.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from everlong.core import Json, JsonObject
from everlong.windows.entries import tokens

__all__ = ["Served", "listing_window", "llama_cpp_window", "ollama_running_window", "ollama_show_window", "row_window"]


@dataclass(frozen=True, slots=True)
class Served:
    """A window in tokens. `in_force` is False if it is only the largest that the model supports."""

    context: int
    in_force: bool = True


#: The fields of a model listing that have the window, best first: path, whether it is in force, and which servers use
#: it.
ROW_FIELDS: tuple[tuple[tuple[str, ...], bool, str], ...] = (
    (("loaded_context_length",), True, "LM Studio, loaded"),
    (("max_model_len",), True, "vLLM, SGLang"),
    (("meta", "n_ctx"), True, "llama.cpp"),
    (("top_provider", "context_length"), True, "OpenRouter, where it is routed"),
    (("context_length",), True, "OpenRouter, Together, Moonshot, Ollama"),
    (("context_window",), True, "Groq"),
    (("capabilities", "limits", "max_context_window_tokens"), True, "GitHub Copilot"),
    (("max_input_tokens",), True, "Anthropic"),
    (("inputTokenLimit",), True, "Google"),
    (("max_context_length",), False, "Mistral; LM Studio, what could be loaded"),
    (("meta", "n_ctx_train"), False, "llama.cpp, as trained"),
)
#: The fields that name a row's model.
ROW_NAMES = ("id", "name", "model", "key", "root", "canonical_slug")
NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d+)\s*$", re.MULTILINE)


def llama_cpp_window(props: Json) -> Served | None:
    """Return the window from llama.cpp's /props. The figure is already that of one slot."""
    return _served(_at(props, ("default_generation_settings", "n_ctx")))


def ollama_show_window(show: Json) -> Served | None:
    """Return the window from Ollama's /api/show: `num_ctx` of the model file if set, otherwise the model's largest."""
    parameters = _at(show, ("parameters",))
    set_to = NUM_CTX.findall(parameters) if isinstance(parameters, str) else []
    if set_to:
        return _served(set_to[-1])
    facts = _at(show, ("model_info",))
    lengths = (value for name, value in _fields(facts) if name.endswith(".context_length"))
    return next((found for found in (_served(value, in_force=False) for value in lengths) if found), None)


def ollama_running_window(running: Json, model: str) -> Served | None:
    """Return the window allocated for a loaded model, from Ollama's /api/ps. "llama3" means "llama3:latest"."""
    tagged = model if ":" in model else f"{model}:latest"
    for row in _rows(running):
        if _names(row) & {model.lower(), tagged.lower()}:
            return _served(_at(row, ("context_length",)))
    return None


def listing_window(listing: Json, model: str) -> Served | None:
    """Return the window of `model` from a listing (/v1/models, or LM Studio's /api/v0/models and /api/v1/models).

    A server with one model answers to any name, so a single row counts whatever its name is.
    """
    rows = _rows(listing)
    named = [row for row in rows if model.lower() in _names(row)]
    chosen = named or (rows if len(rows) == 1 else [])
    return row_window(chosen[0]) if chosen else None


def row_window(row: Json) -> Served | None:
    """Return the window in one row of a listing."""
    instances = _at(row, ("loaded_instances",))
    if isinstance(instances, list) and instances:
        loaded = _served(_at(instances[0], ("config", "context_length")))
        if loaded is not None:
            return loaded
    for path, in_force, _ in ROW_FIELDS:
        found = _served(_at(row, path), in_force=in_force)
        if found is not None:
            return found
    return None


def _served(value: Json, *, in_force: bool = True) -> Served | None:
    context = tokens(value)
    return None if context is None else Served(context, in_force)


def _rows(listing: Json) -> list[JsonObject]:
    """Return the rows of a listing: under "data" or "models", or the listing itself."""
    for name in ("data", "models"):
        if isinstance(_at(listing, (name,)), list):
            listing = _at(listing, (name,))
    return [row for row in listing if isinstance(row, dict)] if isinstance(listing, list) else []


def _names(row: JsonObject) -> set[str]:
    names = (row.get(name) for name in ROW_NAMES)
    return {name.lower().removeprefix("models/") for name in names if isinstance(name, str)}


def _fields(value: Json) -> Iterable[tuple[str, Json]]:
    return value.items() if isinstance(value, dict) else ()


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
