"""Classes: how one is made, its fields with types and defaults, its properties and methods."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any

from reference_pages.catalogue import Catalogue
from reference_pages.functions import NAMES, raises_line, signature, types_lines
from reference_pages.markdown import Link, code, line_of, prose, signature_block, table, without_items
from reference_pages.source import Definition, Function, Module, resolve

__all__ = ["LONGEST_VALUE", "class_attributes", "class_lines"]

ENUMS = {"Enum", "StrEnum", "IntEnum", "Flag", "IntFlag"}
PROPERTIES = {"property", "cached_property"}
LARGE_PROTOCOL = 8  # members
LONGEST_VALUE = 90  # characters of a value that is shown


def _members(definition: Definition, entries: Catalogue) -> Iterator[tuple[Module, ast.stmt]]:
    """Yield the statements of a class and of its bases that have no entry of their own, each with its module."""
    assert isinstance(definition.node, ast.ClassDef)
    seen: set[str] = set()
    for holder in (definition, *_bases_without_entry(definition, entries)):
        assert isinstance(holder.node, ast.ClassDef)
        for statement in holder.node.body:
            name = getattr(statement, "name", "") or _field_name(statement)
            if name not in seen or not name:
                yield holder.module, statement
            seen.add(name)


def _bases_without_entry(definition: Definition, entries: Catalogue) -> Iterator[Definition]:
    assert isinstance(definition.node, ast.ClassDef)
    for base in definition.node.bases:
        name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
        found = resolve(definition.module, name)
        if found is not None and isinstance(found.node, ast.ClassDef) and found.key not in entries.places:
            yield found
            yield from _bases_without_entry(found, entries)


def _field_name(statement: ast.stmt) -> str:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    return ""


def _decorators(node: ast.ClassDef | Function) -> set[str]:
    called = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return {ast.unparse(each).rpartition(".")[2] for each in called}


def class_lines(entries: Catalogue, page: str, definition: Definition, level: str) -> list[str]:
    """Return what is to be said of a class: how it is made, its fields, properties and methods."""
    node, module = definition.node, definition.module
    assert isinstance(node, ast.ClassDef)
    link = entries.link(page, module, definition.title)
    members = list(_members(definition, entries))
    methods = [(home, each) for home, each in members if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    made = next(((home, method) for home, method in methods if method.name == "__init__"), None)
    lines: list[str] = []
    if made is not None:
        lines += signature_block(signature(*made, method=True, name=definition.title))
    kind = _kind(definition, link, is_made=made is not None)
    lines += [kind, ""] if kind else []
    doc, said = without_items(definition.doc, {_field_name(each) for _, each in members} - {""})
    lines += prose(doc, link)
    if made is not None:
        lines += types_lines(made[0], [made[1]], link, definition.title)
    if {module.written(base) for base in node.bases} & ENUMS:
        lines += _enum_table(module, node, link)
    else:
        lines += _field_table(definition, members, said, link)
    contract = _contract(definition, entries)
    if contract is not None:
        described = _method_names(contract)
        methods = [(home, method) for home, method in methods if method.name not in described]
        lines += [f"Has every member of [{code(contract.title)}]({entries.address(page, contract)}).", ""]
    lines += _property_table(methods, link)
    for home, method in methods:
        lines += _method_lines(definition.title, home, method, link, level)
    return lines


def _contract(definition: Definition, entries: Catalogue) -> Definition | None:
    """Return the large protocol that a class meets: its members are described there, once."""
    own = _method_names(definition)
    for each in entries.definitions:
        if isinstance(each.node, ast.ClassDef) and _is_protocol(each) and each.key != definition.key:
            names = _method_names(each)
            if len(names) >= LARGE_PROTOCOL and names <= own:
                return each
    return None


def _is_protocol(definition: Definition) -> bool:
    assert isinstance(definition.node, ast.ClassDef)
    return any(ast.unparse(base).startswith("Protocol") for base in definition.node.bases)


def _method_names(definition: Definition) -> set[str]:
    assert isinstance(definition.node, ast.ClassDef)
    methods = (each for each in definition.node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    return {method.name for method in methods if not method.name.startswith("_")}


def _method_lines(owner: str, home: Module, method: Function, link: Link, level: str) -> list[str]:
    kinds = _decorators(method)
    if method.name.startswith("_") or kinds & {*PROPERTIES, "setter", "overload"}:
        return []
    own, doc = f"{owner}.{method.name}", ast.get_docstring(method) or ""
    lines = [f"{level} {code(own)}", ""]
    lines += signature_block(signature(home, method, method="staticmethod" not in kinds, name=own))
    lines += prose(doc, link)
    return [*lines, *types_lines(home, [method], link, owner), *raises_line(doc, method, link)]


def _kind(definition: Definition, link: Link, *, is_made: bool) -> str:
    """Return what kind of class it is, in one line; "" for an ordinary one."""
    node, module = definition.node, definition.module
    assert isinstance(node, ast.ClassDef)
    bases = [module.written(base) for base in node.bases]
    if any(base.startswith("Protocol") for base in bases):
        return "A protocol: any class with these members will do."
    if set(bases) & ENUMS:
        return "An enumeration."
    shown = [f"[{code(base)}]({link(base)})" for base in bases if link(base)]
    extends = f"Extends {', '.join(shown)}." if shown else ""
    if is_made or "dataclass" not in _decorators(node):
        return extends
    calls = [each for each in node.decorator_list if isinstance(each, ast.Call)]
    keywords = {word.arg for each in calls for word in each.keywords if ast.unparse(word.value) == "True"}
    frozen = "An immutable" if "frozen" in keywords else "A"
    given = "; its fields are given by name" if "kw_only" in keywords else ""
    return f"{extends} {frozen} dataclass{given}.".strip()


def _enum_table(module: Module, node: ast.ClassDef, link: Link) -> list[str]:
    rows = []
    for statement in node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = module.written(statement.value)
            said = line_of(module.comment(statement), link)
            rows.append((code(statement.targets[0].id), "" if "auto()" in value else code(value), said))
    return table(("member", "value", ""), rows) if rows else []


def _field_table(
    definition: Definition, members: Sequence[tuple[Module, ast.stmt]], items: Mapping[str, str], link: Link
) -> list[str]:
    """The fields; `items` are descriptions from the docstring, which say most."""
    described = _described_fields(definition)
    rows = []
    for home, statement in members:
        name = _field_name(statement)
        if isinstance(statement, ast.AnnAssign) and name and not name.startswith("_"):
            annotation = home.annotation(statement.annotation)
            default, said = described.get(name, ("", ""))
            default = default or _default(home, statement.value)
            said = items.get(name) or said or home.comment(statement)
            rows.append((code(name), _type_cell(annotation, link), default and code(default), line_of(said, link)))
        elif isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            rows += [
                (code(attribute), _type_cell(annotation, link), "", line_of(said, link))
                for attribute, annotation, said in _attributes(home, statement)
            ]
    return table(("field", "type", "default", ""), rows) if rows else []


def _attributes(module: Module, made: ast.FunctionDef) -> Iterator[tuple[str, str, str]]:
    """Yield the attributes that `__init__` sets and a comment describes, or that are a parameter: name, type, text."""
    given = {each.arg: module.annotation(each.annotation) for each in (*made.args.args, *made.args.kwonlyargs)}
    for statement in ast.walk(made):
        if not isinstance(statement, ast.Assign | ast.AnnAssign):
            continue
        target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
        if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"):
            continue
        said = module.comment(statement)
        if target.attr.startswith("_") or not (said or target.attr in given):
            continue
        annotation = module.annotation(statement.annotation) if isinstance(statement, ast.AnnAssign) else ""
        if isinstance(statement.value, ast.Call) and ast.unparse(statement.value.func)[:1].isupper():
            annotation = annotation or ast.unparse(statement.value.func)
        yield target.attr, annotation or given.get(target.attr, ""), said


def class_attributes(definition: Definition) -> list[tuple[str, str, str]]:
    """Return the attributes that a class sets when one is made: name, type, text."""
    assert isinstance(definition.node, ast.ClassDef)
    made = [each for each in definition.node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    return [attribute for method in made for attribute in _attributes(definition.module, method)]


def _type_cell(annotation: str, link: Link) -> str:
    """Return a type as code, which leads to the entry of the first name in it that has one."""
    names = NAMES.findall(annotation)
    address = next((link(name) for name in names if link(name)), "")
    shown = code(annotation) if annotation else ""
    return f"[{shown}]({address})" if address and shown else shown


def _default(module: Module, value: ast.expr | None) -> str:
    """Return a field's default as it is written; that of `field(…)` is its default or what its factory makes."""
    if value is None:
        return ""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("field", "msgspec.field"):
        for word in value.keywords:
            if word.arg == "default":
                return module.default(word.value)
            if word.arg == "default_factory":
                return f"{module.written(word.value)}()" if not isinstance(word.value, ast.Lambda) else "…"
        return ""
    text = module.default(value)
    return text if len(text) <= LONGEST_VALUE else "…"


def _described_fields(definition: Definition) -> dict[str, tuple[str, str]]:
    """Return defaults and descriptions of fields that are described by a value, as those of settings are."""
    node = definition.node
    assert isinstance(node, ast.ClassDef)
    described = [
        statement
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func) in ("_setting", "_option", "setting")
    ]
    if not described:
        return {}
    value: Any = getattr(import_module(definition.module.name), definition.name)
    assert is_dataclass(value)
    found = {}
    for each in fields(value):
        default = "…" if each.default is MISSING else repr(each.default)
        plain = isinstance(each.default, str | int | float | tuple | None) and len(default) <= LONGEST_VALUE
        if each.metadata:
            found[each.name] = (default.replace("'", '"') if plain else "…", str(each.metadata.get("help", "")))
    return found


def _property_table(methods: Sequence[tuple[Module, Function]], link: Link) -> list[str]:
    rows = []
    for home, method in methods:
        if _decorators(method) & PROPERTIES and not method.name.startswith("_"):
            said = line_of(ast.get_docstring(method) or "", link)
            rows.append((code(method.name), _type_cell(home.annotation(method.returns), link), said))
    return table(("property", "type", ""), rows) if rows else []
