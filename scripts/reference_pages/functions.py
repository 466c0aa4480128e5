"""Functions and methods: the signature as it is written, the types that it names, and the errors that are raised."""

import ast
import re
from collections.abc import Sequence

from reference_pages.markdown import Link, code
from reference_pages.source import Function, Module, resolve

__all__ = ["NAMES", "raises_line", "signature", "types_lines"]

#: The names of types within a type as it is written.
NAMES = re.compile(r"(?<![\w.\"'])[A-Z]\w+")


def types_lines(module: Module, nodes: Sequence[Function], link: Link, own: str) -> list[str]:
    """Return links to the types that signatures name, and what those stand for that have no entry."""
    linked: dict[str, str] = {}
    meant: dict[str, str] = {}
    for node in nodes:
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        written = [module.annotation(each.annotation) for each in arguments if each is not None]
        for text in (*written, module.annotation(node.returns)):
            for name in NAMES.findall(text):
                if name != own and link(name):
                    linked.setdefault(name, f"[{code(name)}]({link(name)})")
                elif alias := _alias(module, name):
                    meant.setdefault(name, f"{code(name)} is {code(alias)}")
    lines = [f"Types: {', '.join(linked.values())}.", ""] if linked else []
    return [*lines, f"{'; '.join(meant.values())}.", ""] if meant else lines


def _alias(module: Module, name: str) -> str:
    """Return what a type alias stands for; "" for everything else."""
    found = resolve(module, name)
    if found is None or not isinstance(found.node, ast.AnnAssign) or found.node.value is None:
        return ""
    return found.module.annotation(found.node.value) if ast.unparse(found.node.annotation) == "TypeAlias" else ""


def raises_line(doc: str, node: Function, link: Link) -> list[str]:
    """Return the errors that a function raises itself and that its docstring does not name."""
    raised = {
        ast.unparse(each.exc.func if isinstance(each.exc, ast.Call) else each.exc)
        for each in ast.walk(node)
        if isinstance(each, ast.Raise) and each.exc is not None
    }
    unnamed = sorted(name for name in raised if _is_error(name, link) and name not in doc)
    return [f"Raises {', '.join(f'[{code(name)}]({link(name)})' for name in unnamed)}.", ""] if unnamed else []


def _is_error(name: str, link: Link) -> bool:
    """Whether a name is one of our errors."""
    return name[:1].isupper() and "errors.md#" in link(name)


def signature(
    module: Module, node: Function, *, name: str, method: bool = False, whole: Function | None = None
) -> tuple[str, list[str], str]:
    """Return a function's name, its parameters as they are written, and what it returns.

    `whole` is the function that an overload belongs to: it has the defaults.
    """
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: dict[str, ast.expr] = {**_defaults(node), **(_defaults(whole) if whole is not None else {})}

    def parameter(argument: ast.arg, prefix: str = "") -> str:
        typed = f": {module.annotation(argument.annotation)}" if argument.annotation is not None else ""
        default = defaults.get(argument.arg) if argument.arg in _defaults(node) else None
        equals = " = " if typed else "="
        return f"{prefix}{argument.arg}{typed}" + (f"{equals}{module.default(default)}" if default is not None else "")

    parameters = [parameter(each) for each in plain]
    if arguments.posonlyargs:
        parameters.insert(len(arguments.posonlyargs), "/")
    if method:
        parameters = parameters[1:]
    if arguments.vararg:
        parameters.append(parameter(arguments.vararg, "*"))
    elif arguments.kwonlyargs:
        parameters.append("*")
    parameters += [parameter(each) for each in arguments.kwonlyargs]
    if arguments.kwarg:
        parameters.append(parameter(arguments.kwarg, "**"))
    if node.name == "__init__":
        return name, parameters, ""
    result = module.annotation(node.returns)
    before = "async def " if isinstance(node, ast.AsyncFunctionDef) else "def "
    return before + name, parameters, f" -> {result}" if result else ""


def _defaults(node: Function) -> dict[str, ast.expr]:
    plain = [*node.args.posonlyargs, *node.args.args]
    with_default = plain[len(plain) - len(node.args.defaults) :]
    pairs = [*zip(with_default, node.args.defaults, strict=True)]
    pairs += [(each, value) for each, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value]
    return {argument.arg: value for argument, value in pairs}
