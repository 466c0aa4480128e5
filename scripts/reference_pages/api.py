"""The pages of the Python API: one a door, with every name that it shows."""

import ast
from collections.abc import Iterator, Sequence

from reference_pages.catalogue import ADAPTERS, DOORS, Catalogue, Door, definitions_of
from reference_pages.classes import LONGEST_VALUE, class_lines
from reference_pages.functions import raises_line, signature, types_lines
from reference_pages.markdown import Link, code, generated, line_of, prose, signature_block, table, text_of
from reference_pages.source import SOURCE, Definition, read_module

__all__ = ["adapter_modules", "api_pages"]

SINGULAR = {"Functions": "function", "Classes": "class", "Types and constants": "type or constant"}


def adapter_modules() -> list[str]:
    """Return the modules that adapt a framework: those with names of their own to show."""
    modules = []
    for path in sorted((SOURCE / "adapters").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.stem != "__init__" and "raise missing(" in text:
            modules.append(f"everlong.adapters.{path.stem}")
    return modules


def api_pages(entries: Catalogue) -> dict[str, str]:
    """Return the pages of all doors by their path in docs/reference."""
    pages = {door.page: door_page(entries, door) for door in DOORS}
    pages[ADAPTERS.page] = adapters_page(entries)
    return pages


def door_page(entries: Catalogue, door: Door) -> str:
    """Return the page of one door."""
    module = read_module(door.package)
    assert module is not None
    link = entries.link(door.page, module)
    lines = [generated(f"`{door.package}`"), f"# {code(door.package)}", ""]
    lines += prose(ast.get_docstring(module.tree) or "", link)
    if door.package not in ("everlong", "everlong.testing"):
        lines += ["These names are for programs that build on the parts. They may still change before 1.0.", ""]
    here: list[Definition] = []
    elsewhere: list[Definition] = []
    for definition in definitions_of(door.package):
        (here if entries.described_on(door.page, definition) else elsewhere).append(definition)
    for title, group in grouped(here):
        rows = [(f"[{code(each.title)}]({entries.address(door.page, each)})", summary(each)) for each in group]
        lines += table((SINGULAR[title], ""), rows)
    if elsewhere:
        names = (f"[{code(each.title)}]({entries.address(door.page, each)})" for each in elsewhere)
        lines += [f"Described elsewhere, and importable from here too: {', '.join(names)}.", ""]
    for title, group in grouped(here):
        lines += [f"## {title}", ""]
        for definition in group:
            lines += entry_lines(entries, door.page, definition)
    return "\n".join(lines).rstrip() + "\n"


def adapters_page(entries: Catalogue) -> str:
    """Return the page of all adapters."""
    lines = [generated("`everlong.adapters`"), "# `everlong.adapters`", ""]
    lines += [
        "One module for each framework; importing one needs that framework. [Adapters](../../adapters/README.md) shows "
        "how to use them and what they measure.",
        "",
    ]
    for name in adapter_modules():
        module = read_module(name)
        assert module is not None
        lines += [
            f"## {code(name)}",
            "",
            *prose(ast.get_docstring(module.tree) or "", entries.link(ADAPTERS.page, module)),
        ]
        for definition in definitions_of(name):
            lines += entry_lines(entries, ADAPTERS.page, definition)
    return "\n".join(lines).rstrip() + "\n"


def grouped(definitions: Sequence[Definition]) -> Iterator[tuple[str, list[Definition]]]:
    """Yield functions, classes and values, each group with its title."""
    for title, kinds in (
        ("Functions", (ast.FunctionDef, ast.AsyncFunctionDef)),
        ("Classes", (ast.ClassDef,)),
        ("Types and constants", (ast.Assign, ast.AnnAssign)),
    ):
        group = [each for each in definitions if isinstance(each.node, kinds)]
        if group:
            yield title, group


def summary(definition: Definition) -> str:
    """Return the first sentence about a name, without links: the row has one already."""
    return line_of(text_of(definition.doc))


def entry_lines(entries: Catalogue, page: str, definition: Definition, level: str = "###") -> list[str]:
    """Return the entry of a name: heading, signature, docstring, and the members of a class."""
    lines = [f"{level} {entries.heading(definition)}", ""]
    node, module = definition.node, definition.module
    link = entries.link(page, module, definition.title)
    if isinstance(node, ast.ClassDef):
        return [*lines, *class_lines(entries, page, definition, level + "#")]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        shown = [signature(module, each, name=definition.title, whole=node) for each in definition.overloads or (node,)]
        lines += signature_block(*shown)
        return [
            *lines,
            *prose(definition.doc, link),
            *types_lines(module, (node, *definition.overloads), link, definition.title),
            *raises_line(definition.doc, node, link),
        ]
    return [*lines, *value_lines(definition, link)]


def value_lines(definition: Definition, link: Link) -> list[str]:
    """Return the entry of a type alias or a constant: its value if it is short, and its comment."""
    node, module = definition.node, definition.module
    assert isinstance(node, ast.Assign | ast.AnnAssign)
    annotation = module.annotation(node.annotation) if isinstance(node, ast.AnnAssign) else ""
    value = module.written(node.value) if node.value is not None else ""
    alias = annotation == "TypeAlias"
    lone = isinstance(node, ast.AnnAssign) or isinstance(node.targets[0], ast.Name)
    if not lone:
        value = _one_of_several(definition, node) if isinstance(node, ast.Assign) else ""
    typed = f": {annotation}" if annotation and not alias else ""
    short = f"{definition.title}{typed} = {value}"
    if alias or (len(short) <= LONGEST_VALUE and not value.startswith("_")):
        block = ["```py", f"{definition.title} = {value}" if alias else short, "```", ""]
    else:
        block = ["```py", f"{definition.title}{typed or ' = …'}", "```", ""]
    return [*block, *prose(definition.doc, link)] if definition.doc else block


def _one_of_several(definition: Definition, node: ast.Assign) -> str:
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for name, each in zip(target.elts, value.elts, strict=True):
            if isinstance(name, ast.Name) and name.id == definition.name:
                return definition.module.written(each)
    return "…"
