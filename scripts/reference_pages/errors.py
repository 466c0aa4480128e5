"""The page of the errors: the tree, and for each when it is raised, what it knows and what to do."""

import ast
import re
from collections.abc import Iterator

from reference_pages.catalogue import ERRORS_PAGE, Catalogue, definitions_of
from reference_pages.classes import class_attributes
from reference_pages.markdown import code, generated, prose, table
from reference_pages.source import Definition

__all__ = ["errors_page"]

INTRODUCTION = """\
Every error that Everlong raises on purpose is one of these. Its message is one line that you can show to a person; the
figures in it are attributes too. Import them from `everlong` or `everlong.errors`.
"""
WHAT_TO_DO = re.compile(r"What to do: (.*)", re.DOTALL)


def errors_page(entries: Catalogue) -> str:
    """Return the page of all errors."""
    errors = {each.name: each for each in definitions_of("everlong.errors")}
    lines = [generated("`everlong.errors`"), "# Errors", "", *INTRODUCTION.split("\n")]
    lines += ["```text", *_tree(errors, "Exception", ""), "```", ""]
    for name in _in_order(errors, "Exception"):
        lines += _entry(entries, errors[name])
    return "\n".join(lines).rstrip() + "\n"


def _below(errors: dict[str, Definition], base: str) -> list[str]:
    return [
        name
        for name, each in errors.items()
        if isinstance(each.node, ast.ClassDef) and base in [ast.unparse(parent) for parent in each.node.bases]
    ]


def _tree(errors: dict[str, Definition], base: str, indent: str) -> Iterator[str]:
    names = _below(errors, base)
    for name in names:
        last = name == names[-1]
        drawn = "" if base == "Exception" else ("└── " if last else "├── ")
        yield f"{indent}{drawn}{name}"
        deeper = "" if base == "Exception" else ("    " if last else "│   ")
        yield from _tree(errors, name, indent + deeper)


def _in_order(errors: dict[str, Definition], base: str) -> Iterator[str]:
    for name in _below(errors, base):
        yield name
        yield from _in_order(errors, name)


def _entry(entries: Catalogue, error: Definition) -> list[str]:
    assert isinstance(error.node, ast.ClassDef)
    link = entries.link(ERRORS_PAGE, error.module, error.title)
    advice = WHAT_TO_DO.search(error.doc)
    assert advice is not None, f"the docstring of {error.title} does not say what to do"
    lines = [f"## {code(error.title)}", ""]
    parents = [ast.unparse(base) for base in error.node.bases]
    lines += [f"Extends [{code(parent)}]({link(parent)})." for parent in parents if link(parent)]
    lines += [""] if lines[-1] else []
    lines += prose(error.doc[: advice.start()], link)
    rows = [
        (code(name), code(annotation) if annotation else "", said) for name, annotation, said in class_attributes(error)
    ]
    lines += table(("attribute", "type", ""), rows) if rows else []
    (first, *rest) = prose(advice[1], link)
    return [*lines, f"**What to do:** {first}", *rest]
