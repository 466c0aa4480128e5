"""Which name is described on which page, and the links between them."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from reference_pages.markdown import Link, slug
from reference_pages.source import Definition, Module, door_names, find, resolve

__all__ = ["ADAPTERS", "DOORS", "ERRORS_PAGE", "Catalogue", "Door", "catalogue"]

ERRORS_PAGE = "errors.md"


@dataclass(frozen=True)
class Door:
    """A package that programs import from: its page, and what a reader finds there."""

    package: str
    page: str
    purpose: str


#: In the order in which readers need them; a name that several doors show is described at the first.
DOORS = (
    Door("everlong", "api/everlong.md", "What most programs need"),
    Door("everlong.testing", "api/testing.md", "Scripted models and servers for your own tests"),
    Door("everlong.engine", "api/engine.md", "The engine's other values: events, costs, previews, contracts"),
    Door("everlong.agent", "api/agent.md", "Tools, permissions, sandbox and events of the agent"),
    Door("everlong.compress", "api/compress.md", "Presets and the steps that they are made of"),
    Door("everlong.store", "api/store.md", "Stores, imports and exports"),
    Door("everlong.llm", "api/llm.md", "Models over HTTP, endpoints, the refresh of the model tables"),
    Door("everlong.core", "api/core.md", "Messages, rounds, edits, compaction points, events: the values"),
    Door("everlong.windows", "api/windows.md", "Context windows, limits and prices of models"),
    Door("everlong.tokens", "api/tokens.md", "Token counts of texts, messages and pictures"),
    Door("everlong.wire", "api/wire.md", "Provider formats, session files, repair, usage and refusals"),
    Door("everlong.summarize", "api/summarize.md", "Prompts, parsing and audit of summaries"),
)
#: Each module is a door of its own; all of them are on one page.
ADAPTERS = Door("everlong.adapters", "api/adapters.md", "The adapters for agent frameworks")


@dataclass
class Catalogue:
    """Where every name is described, by the module and name of its definition."""

    places: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    by_name: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    definitions: list[Definition] = field(default_factory=list)

    def add(self, page: str, definitions: Iterable[Definition]) -> None:
        """Enter names that this page describes; those that another page has already stay there."""
        taken = {anchor for at, anchor in self.places.values() if at == page}
        for definition in definitions:
            if definition.key in self.places:
                continue
            heading = definition.title
            if slug(heading) in taken:
                heading = f"{definition.title} (function)"
            taken.add(slug(heading))
            self.places[definition.key] = (page, slug(heading))
            self.definitions.append(definition)
            self.by_name.setdefault(definition.title, []).append((page, slug(heading)))

    def described_on(self, page: str, definition: Definition) -> bool:
        """Whether the full entry of a name is on this page."""
        return self.places[definition.key][0] == page

    def heading(self, definition: Definition) -> str:
        """Return the heading of an entry, which is its anchor too."""
        anchor = self.places[definition.key][1]
        return f"`{definition.title}`" + (" (function)" if anchor.endswith("-function") else "")

    def address(self, page: str, definition: Definition | None) -> str:
        """Return the link from a page to the entry of a name; "" if it has none."""
        if definition is None or definition.key not in self.places:
            return ""
        return relative(page, *self.places[definition.key])

    def link(self, page: str, module: Module | None = None, own: str = "") -> Link:
        """Return how names in the text of a module become links on a page; `own` is the entry that they stand in."""

        def address(name: str) -> str:
            if not re.fullmatch(r"[A-Za-z_][\w.]*", name) or name == own:
                return ""
            found = resolve(module, name) if module is not None else None
            if found is not None:
                return self.address(page, found)
            places = self.by_name.get(name, [])
            known_word = name[:1].isupper() and not name.isupper()
            return relative(page, *places[0]) if len(places) == 1 and known_word else ""

        return address


def relative(page: str, target: str, anchor: str) -> str:
    """Return the address of an anchor as a link on a page."""
    if page == target:
        return f"#{anchor}"
    start = os.path.dirname(page)  # noqa: PTH120 - a path within the section
    return f"{os.path.relpath(target, start or '.')}#{anchor}".replace(os.sep, "/")


def definitions_of(package: str) -> list[Definition]:
    """Return the definitions behind the names of a door."""
    definitions = []
    for name in door_names(package):
        found = find(package, name)
        assert found is not None, f"{package}: no definition of {name}"
        definitions.append(replace(found, shown=name))
    return definitions


def catalogue(adapters: Iterable[str]) -> Catalogue:
    """Return the catalogue of all pages; `adapters` are the modules of the adapters."""
    entries = Catalogue()
    entries.add(ERRORS_PAGE, definitions_of("everlong.errors"))
    for door in DOORS:
        ordered = sorted(definitions_of(door.package), key=lambda each: (each.title[:1].islower(), each.title.lower()))
        entries.add(door.page, ordered)
    for module in adapters:
        entries.add(ADAPTERS.page, definitions_of(module))
    return entries
