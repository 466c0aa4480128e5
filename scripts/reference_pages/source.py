"""The source of the package as it is written: definitions, signatures, docstrings and comments, read without importing.

Importing would lose types as they are written and the comments at fields, and would need every framework that an
adapter is for.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

__all__ = [
    "ROOT",
    "SOURCE",
    "Definition",
    "Function",
    "Module",
    "door_names",
    "find",
    "module_of",
    "read_module",
    "resolve",
]

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "everlong"
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Named: TypeAlias = ast.ClassDef | Function | ast.Assign | ast.AnnAssign

#: Comments for tools, not for readers.
FOR_TOOLS = re.compile(r"\s*(noqa|type:|pragma)")


@dataclass(frozen=True, eq=False)
class Module:
    """A module of the package: its name, its lines and its tree."""

    name: str
    is_package: bool
    lines: tuple[str, ...]
    tree: ast.Module

    def written(self, node: ast.AST) -> str:
        """Return an expression as it is written, on one line."""
        place = ast.copy_location(ast.Pass(), node)
        first, last = place.lineno - 1, (place.end_lineno or place.lineno) - 1
        lines = [line.encode() for line in self.lines[first : last + 1]]
        lines[-1] = lines[-1][: place.end_col_offset]  # offsets are in bytes
        lines[0] = lines[0][place.col_offset :]
        if len(lines) == 1:
            return lines[0].decode()
        text = " ".join(re.sub(r"\s+# .*$", "", line.decode()).strip() for line in lines)
        return re.sub(r",? ([)\]}])", r"\1", re.sub(r"([(\[{]) ", r"\1", text))

    def default(self, node: ast.expr) -> str:
        """Return a default value as it is written; for the name of a plain constant, what it stands for."""
        if isinstance(node, ast.Name):
            found = find(self.name, node.id)
            value = found.node.value if found and isinstance(found.node, ast.Assign | ast.AnnAssign) else None
            if found is not None and isinstance(value, ast.Constant):
                return found.module.written(value)
        return self.written(node)

    def annotation(self, node: ast.expr | None) -> str:
        """Return a type as it is written; "" if there is none."""
        if node is None:
            return ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        return re.sub(r'(?<!Literal)\["(\w+)"\]', r"[\1]", self.written(node))

    def comment(self, node: ast.stmt) -> str:
        """Return the `#:` lines above a statement, else the comment at the end of its line."""
        above: list[str] = []
        line = node.lineno - 2
        while line >= 0 and self.lines[line].strip().startswith("#:"):
            above.insert(0, self.lines[line].strip().removeprefix("#:").strip())
            line -= 1
        if above:
            return " ".join(above)
        end = self.lines[(node.end_lineno or node.lineno) - 1][node.end_col_offset or 0 :]
        _, _, comment = end.partition("#")
        return "" if FOR_TOOLS.match(comment) else comment.strip().removeprefix(":").strip()


@dataclass(frozen=True, eq=False)
class Definition:
    """A name where it is defined; `overloads` are the signatures that stand before it, `shown` what a door calls it."""

    name: str
    module: Module
    node: Named
    overloads: tuple[Function, ...] = ()
    shown: str = ""

    @property
    def title(self) -> str:
        """The name by which readers know it."""
        return self.shown or self.name

    @property
    def key(self) -> tuple[str, str]:
        """The module and the name: the same for every door that shows it."""
        return self.module.name, self.name

    @property
    def doc(self) -> str:
        """The docstring, or for a value the comment that stands at it."""
        if isinstance(self.node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            return ast.get_docstring(self.node) or ""
        return self.module.comment(self.node)


def module_of(path: Path) -> str:
    """Return the name of the module in a file."""
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


@cache
def read_module(name: str) -> Module | None:
    """Return a module of the package by its name; None if there is none."""
    base = SOURCE.parent.joinpath(*name.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    if name.partition(".")[0] != "everlong" or not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    return Module(name, base.is_dir(), tuple(text.splitlines()), ast.parse(text))


def door_names(package: str) -> list[str]:
    """Return the names that a door shows, in their order: those of its TYPE_CHECKING block, else `__all__`."""
    module = read_module(package)
    assert module is not None, package
    names = [alias.asname or alias.name for line in _typed_imports(module) for alias in line.names]
    for node in module.tree.body:
        if not names and isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = ast.literal_eval(node.value)
    return sorted(names, key=lambda name: (name.lower(), name))


def _typed_imports(module: Module) -> Iterator[ast.ImportFrom]:
    for node in module.tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and node.orelse:
            yield from (line for line in node.body if isinstance(line, ast.ImportFrom))


def _imports(module: Module) -> Iterator[ast.ImportFrom]:
    for node in module.tree.body:
        inner = node.body if isinstance(node, ast.If | ast.Try) else [node]
        yield from (line for line in inner if isinstance(line, ast.ImportFrom))


def _targets(node: ast.stmt) -> Iterator[str]:
    """The names that a statement defines; several where a line gives a value to each."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def _is_overload(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
        isinstance(decorator, ast.Name) and decorator.id == "overload" for decorator in node.decorator_list
    )


@cache
def find(module_name: str, name: str) -> Definition | None:
    """Return where a name that a module knows is defined, however many doors it came through; None if not by us."""
    module = read_module(module_name)
    if module is None:
        return None
    same = [node for node in module.tree.body if name in _targets(node)]
    if same:
        overloads = tuple(node for node in same if _is_overload(node))
        last = next(node for node in same if node not in overloads)
        return Definition(name, module, last, overloads)  # type: ignore[arg-type]
    for line in _imports(module):
        for alias in line.names:
            if (alias.asname or alias.name) == name and line.module:
                return find(line.module, alias.name)
    return None


def resolve(module: Module, name: str) -> Definition | None:
    """Return the definition that a name or dotted name means in a module; None if it is not one of ours."""
    head, _, rest = name.partition(".")
    if head == "everlong" and rest:
        package, _, last = name.rpartition(".")
        return find(package, last)
    return find(module.name, head)
