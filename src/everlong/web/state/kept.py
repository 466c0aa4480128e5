"""What a person keeps for all threads: assistants (presets of a thread's options) and prompts. Stored as facts.

Both are short lists with bounds. A list is read, changed and written under a lock: two pages may change it at once.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Generic, Protocol, TypeVar
from uuid import uuid4

from everlong.core import Json, JsonObject
from everlong.engine import Threads
from everlong.errors import Refused
from everlong.web.fields import flag, invalid, optional_text, required_text
from everlong.web.state.options import NO_OPTIONS, Options, changed_options
from everlong.web.state.settings import FACTS

__all__ = ["MOST_IMPORTED", "Assistant", "Kept", "Prompt"]

ASSISTANTS, PROMPTS = "assistants", "prompts"  # the names of the facts
MOST_ASSISTANTS, MOST_PROMPTS = 100, 500
MOST_IMPORTED = 500  # prompts at once
LARGEST = 2_000_000  # characters of a whole list
LONGEST_NAME = 60
LONGEST_ICON = 8  # an emoji may be several code points
LONGEST_TITLE = 120
LONGEST_PROMPT = 20_000


class _Entry(Protocol):
    """An entry of a list."""

    @property
    def id(self) -> str: ...

    def shown(self) -> JsonObject:
        """Return the entry as the page reads it and the store keeps it."""


Entry = TypeVar("Entry", bound=_Entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assistant:
    """A preset for new threads. `model` is SOURCE/NAME, "" is the one chosen last; at most one is the `default`."""

    id: str
    name: str
    icon: str = ""
    model: str = ""
    options: Options = NO_OPTIONS
    default: bool = False

    def shown(self) -> JsonObject:
        """Return the assistant as the page reads it and the store keeps it."""
        return {
            "id": self.id,
            "name": self.name,
            "icon": self.icon,
            "model": self.model,
            "options": self.options.shown(),
            "default": self.default,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A text to begin a message with; the page asks for the values of its {placeholders}."""

    id: str
    title: str
    text: str

    def shown(self) -> JsonObject:
        """Return the prompt as the page reads it and the store keeps it."""
        return {"id": self.id, "title": self.title, "text": self.text}


def _assistant(body: JsonObject, base: Assistant | None, name: str) -> Assistant:
    """Return an assistant with the fields of a body over those of another. Raises Refused if one is wrong."""
    base = base or Assistant(id=name, name="")
    options = body.get("options")
    if options is not None and not isinstance(options, dict):
        raise invalid("options must be an object")
    icon, model, default = optional_text(body, "icon"), optional_text(body, "model"), flag(body, "default")
    if icon is not None and (len(icon.strip()) > LONGEST_ICON or not icon.isprintable()):
        raise invalid("icon must be a single emoji or character")
    return Assistant(
        id=base.id,
        name=required_text(body, "name", most=LONGEST_NAME).strip() if "name" in body or not base.name else base.name,
        icon=base.icon if icon is None else icon.strip(),
        model=base.model if model is None else model,
        options=base.options if options is None else changed_options(base.options, options),
        default=base.default if default is None else default,
    )


def _prompt(body: JsonObject, base: Prompt | None, name: str) -> Prompt:
    """Return a prompt with the fields of a body over those of another. Raises Refused if one is wrong."""
    base = base or Prompt(id=name, title="", text="")
    title, text = base.title, base.text
    if "title" in body or not title:
        title = required_text(body, "title", most=LONGEST_TITLE).strip()
    if "text" in body or not text:
        text = required_text(body, "text", most=LONGEST_PROMPT)
    return Prompt(id=base.id, title=title, text=text)


class _Shelf(Generic[Entry]):
    """A list of one kind of entries in one fact."""

    def __init__(
        self, threads: Threads, fact: str, most: int, read: Callable[[JsonObject, Entry | None, str], Entry]
    ) -> None:
        self._threads = threads
        self._fact = fact
        self._most = most
        self._read = read
        self._lock = Lock()

    def all(self) -> tuple[Entry, ...]:
        """Return the entries that can be read."""
        try:
            stored = json.loads(self._threads.fact(FACTS, self._fact) or "[]")
        except (ValueError, RecursionError):
            return ()
        entries: list[Entry] = []
        for row in stored if isinstance(stored, list) else ():
            try:
                entries.append(self._read(row, None, str(row["id"])))
            except (Refused, LookupError, TypeError, AttributeError):
                continue
        return tuple(entries)

    def add(self, bodies: Sequence[JsonObject], adjust: "Callable[[list[Entry], Entry], None] | None" = None) -> Entry:
        """Add entries and return the last. Raises Refused; then none is added."""
        with self._lock:
            entries = list(self.all())
            for body in bodies:
                entry = self._read(body, None, uuid4().hex)
                entries.append(entry)
                if adjust is not None:
                    adjust(entries, entry)
            self._write(entries)
            return entries[-1]

    def change(
        self, name: str, body: JsonObject, adjust: "Callable[[list[Entry], Entry], None] | None" = None
    ) -> Entry:
        """Change an entry by the fields of a body and return it. Raises Refused."""
        with self._lock:
            entries = list(self.all())
            at = self._at(entries, name)
            entries[at] = entry = self._read(body, entries[at], name)
            if adjust is not None:
                adjust(entries, entry)
            self._write(entries)
            return entry

    def remove(self, name: str) -> None:
        """Remove an entry. Raises Refused if there is none of that name."""
        with self._lock:
            entries = list(self.all())
            del entries[self._at(entries, name)]
            self._write(entries)

    def _at(self, entries: Sequence[Entry], name: str) -> int:
        at = next((at for at, entry in enumerate(entries) if entry.id == name), None)
        if at is None:
            raise Refused("it no longer exists", status=404, kind="gone")
        return at

    def _write(self, entries: Sequence[Entry]) -> None:
        if len(entries) > self._most:
            raise invalid(f"there can be at most {self._most} {self._fact}; remove one first")
        text = json.dumps([entry.shown() for entry in entries], ensure_ascii=False)
        if len(text) > LARGEST:
            raise invalid(f"all {self._fact} together can have at most {LARGEST:,} characters")
        self._threads.keep_fact(FACTS, self._fact, text)


class Kept:
    """The assistants and the prompts of the app. Safe in any operating system thread; reads and writes the store."""

    def __init__(self, threads: Threads) -> None:
        self._assistants = _Shelf(threads, ASSISTANTS, MOST_ASSISTANTS, _assistant)
        self._prompts = _Shelf(threads, PROMPTS, MOST_PROMPTS, _prompt)

    def shown(self) -> JsonObject:
        """Return everything that is kept, as the page reads it."""
        assistants: list[Json] = [entry.shown() for entry in self._assistants.all()]
        prompts: list[Json] = [entry.shown() for entry in self._prompts.all()]
        return {ASSISTANTS: assistants, PROMPTS: prompts}

    def assistant(self, name: str | None) -> Assistant | None:
        """Return the assistant of that id, the default one for None, none for "". Raises Refused if it is gone."""
        if name == "":
            return None
        found = (each for each in self._assistants.all() if (each.default if name is None else each.id == name))
        assistant = next(found, None)
        if assistant is None and name is not None:
            raise Refused("this assistant no longer exists; choose another", status=404, kind="no_assistant")
        return assistant

    def add_assistant(self, body: JsonObject) -> Assistant:
        """Keep an assistant. Raises Refused if a field is wrong, or there are too many."""
        return self._assistants.add([body], _one_default)

    def change_assistant(self, name: str, body: JsonObject) -> Assistant:
        """Change the fields of an assistant that a body names. Raises Refused."""
        return self._assistants.change(name, body, _one_default)

    def remove_assistant(self, name: str) -> None:
        """Remove an assistant; threads that were begun with it keep their options."""
        self._assistants.remove(name)

    def add_prompt(self, body: JsonObject) -> Prompt:
        """Keep a prompt. Raises Refused if a field is wrong, or there are too many."""
        return self._prompts.add([body])

    def change_prompt(self, name: str, body: JsonObject) -> Prompt:
        """Change the fields of a prompt that a body names. Raises Refused."""
        return self._prompts.change(name, body)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt."""
        self._prompts.remove(name)

    def import_prompts(self, bodies: Sequence[JsonObject]) -> int:
        """Keep prompts of a file, all or none, and return how many were new: existing ones are left out."""
        known = {(prompt.title, prompt.text) for prompt in self._prompts.all()}
        read = [_prompt(body, None, "") for body in bodies]
        new = {(prompt.title, prompt.text): prompt for prompt in read if (prompt.title, prompt.text) not in known}
        if new:
            self._prompts.add([prompt.shown() for prompt in new.values()])
        return len(new)


def _one_default(entries: list[Assistant], newest: Assistant) -> None:
    """Remove the default mark from all others, if this one has it."""
    if newest.default:
        entries[:] = [each if each.id == newest.id else replace(each, default=False) for each in entries]
