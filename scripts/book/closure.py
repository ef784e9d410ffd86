"""Which files of ours a piece of code rests on, found by reading imports.

A package whose names are loaded lazily, or whose `__init__` is a table of contents, is looked
through: a name leads to the module that defines it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def home(module: str) -> Path | None:
    """The file of a module of ours; None for any other."""
    path = ROOT.joinpath(*module.split("."))
    found = (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())
    return next(found, None) if module else None


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def origin(node: ast.ImportFrom, module: str) -> str:
    """The absolute name of what a statement in `module` imports from."""
    if not node.level:
        return str(node.module)
    file = home(module)
    parts = module.split(".") if file and file.name == "__init__.py" else module.split(".")[:-1]
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


@cache
def contents(package: str) -> dict[str, str]:
    """Where the names of a package come from."""
    file = home(package)
    if file is None or file.name != "__init__.py":
        return {}
    stub = file.with_suffix(".pyi")
    tree = parsed(stub if stub.is_file() else file)
    statements = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    return {alias.name: origin(node, package) for node in statements for alias in node.names}


def resolved(module: str, name: str) -> str:
    """The module that defines a name: through tables of contents, or a module of that name."""
    if name in contents(module):
        return resolved(contents(module)[name], name)
    inside = f"{module}.{name}"
    return inside if home(inside) else module


def imports(tree: ast.AST, module: str, at_once: bool) -> Iterator[str]:
    """The modules that some code imports; at once: not those of functions, nor of type hints."""
    nodes = tree.body if at_once and isinstance(tree, ast.Module) else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = origin(node, module)
            yield from (resolved(base, alias.name) for alias in node.names)


def reached(code: str, at_once: bool = False) -> set[str]:
    """All modules behind some code, ours with what they import in turn.

    `at_once` asks what runs when the imports are executed: packages on the way run too.
    """
    seen: set[str] = set()
    ahead = list(imports(ast.parse(code), "", at_once))
    while ahead:
        module = ahead.pop()
        if module in seen:
            continue
        seen.add(module)
        if file := home(module):
            ahead += imports(parsed(file), module, at_once)
            parts = module.split(".")
            if at_once:
                ahead += [".".join(parts[:k]) for k in range(1, len(parts))]
    return seen


def files(code: str) -> set[Path]:
    """The files of ours that some code rests on."""
    return {file for module in reached(code) if (file := home(module))}
