"""Read and write the message objects of other libraries without loss. A library's module is imported only on use.

A library is one module with one `LIBRARY`, and a row in `MODULES`. Rows of a wire format (dicts and SDK objects) need
neither: their format reads them.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, cast

from everlong.core import Message
from everlong.errors import InputError
from everlong.wire.documents import list_format
from everlong.wire.formats import OPENAI_CHAT
from everlong.wire.libraries.library import Library, Unit
from everlong.wire.libraries.rows import plain, rows_library

__all__ = ["MODULES", "library_named", "library_of", "object_library"]

#: The module for each package whose objects are messages. "a.b" is tried before "a".
MODULES: Mapping[str, str] = {
    "agent_framework": "agent_framework",
    "autogen_core": "autogen",
    "google.genai": "google_genai",
    "haystack": "haystack",
    "langchain_core": "langchain",
    "llama_index": "llama_index",
    "pydantic_ai": "pydantic_ai",
    "smolagents": "smolagents",
    "strands": "strands",
}

#: Fields that identify the whole answer of an SDK, and where its message is.
WHOLE_ANSWERS = {"choices": ".choices[0].message", "candidates": ".candidates[0].content"}


def _read_ours(messages: Sequence[Message]) -> list[Unit[Message]]:
    if not all(isinstance(message, Message) for message in messages):
        raise InputError("messages are either all Messages or all of another kind")
    return [Unit((message,), (message,)) for message in messages]


OURS: Library[Message] = Library(name="everlong", packages=("everlong",), read=_read_ours, write=list)


def library_of(items: Sequence[object], fmt: str = OPENAI_CHAT.name) -> Library[Any]:
    """Return the library of these messages. The first object of a known library decides.

    Dicts and SDK objects are rows of a wire format, which is recognised; plain text, which is the same in all formats,
    counts as `fmt`.
    """
    library = object_library(items)
    if library is not None:
        return library
    return rows_library(list_format([plain(item) for item in items], plain=fmt))


def object_library(items: Sequence[object]) -> Library[Any] | None:
    """Return the library whose objects are in a list; None if all items are rows."""
    for item in items:
        if isinstance(item, dict):
            continue
        if isinstance(item, Message):
            return OURS
        module = _module_for(type(item))
        if module is not None:
            return library_named(module)
        for name, part in WHOLE_ANSWERS.items():
            if hasattr(item, name):
                raise InputError(f"a whole {type(item).__name__} is not a message: pass its {part}")
    return None


def library_named(name: str) -> Library[Any]:
    """Return the library with this module's name. Raises ImportError if the package is not installed."""
    module = import_module(f"everlong.wire.libraries.{name}")
    return cast("Library[Any]", module.LIBRARY)


def _module_for(kind: type) -> str | None:
    for base in kind.__mro__:  # your own class may derive from a library's
        package, _, rest = base.__module__.partition(".")
        found = MODULES.get(f"{package}.{rest.partition('.')[0]}") or MODULES.get(package)
        if found is not None:
            return found
    return None
