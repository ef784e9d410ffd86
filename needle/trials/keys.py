"""What a computed number depends on: the source of its function, of `needle`, and its arguments.

A name made here changes whenever one of them does, and is the same in every process and on every
machine.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import platform
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import joblib
import numpy as np

OURS = __name__.partition(".")[0]
HOME = Path(__file__).parents[1]


def digest(*parts: str) -> str:
    """A short name of some texts.

    >>> digest("a", "b") == digest("ab")
    False
    """
    joined = b"".join(hashlib.sha256(part.encode()).digest() for part in parts)
    return hashlib.sha256(joined).hexdigest()[:24]


def package_source(folder: Path) -> str:
    """A name of all source files below a folder."""
    files = sorted(folder.rglob("*.py"))
    return digest(*(t for f in files for t in (f.relative_to(folder).as_posix(), f.read_text())))


@lru_cache(maxsize=1)
def environment() -> str:
    """What decides about the last bits: our source, and the versions of what it stands on.

    A worker whose environment differs from that of the caller refuses to compute.
    """
    python = ".".join(platform.python_version_tuple()[:2])
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    return f"{OURS} {package_source(HOME)[:8]}, Python {python}, {libraries}"


def function_key(function: Callable, package: Path) -> str:
    """A name of a plain function, of all it calls outside installed packages, and of `needle`."""
    parts: list[str] = []
    core = function
    while isinstance(core, partial):
        parts += [value_key("args", core.args), value_key("keywords", core.keywords)]
        core = core.func
    if not inspect.isfunction(core):
        raise ValueError(f"function = {function!r} is not allowed: a cache needs a plain function")
    return digest(*parts, *_sources(core, set()), package_source(package))


def value_key(name: str, value: Any) -> str:
    """A name of an argument by its type and content; functions go by their source."""
    if value is None or type(value) in (bool, int, float, str):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, np.generic):
        return f"{type(value).__name__} {value.item()!r}"
    if type(value) in (tuple, list):
        inside = ", ".join(value_key(name, part) for part in value)
        return f"{type(value).__name__} ({inside})"
    if inspect.isfunction(value):
        return digest(*_sources(value, set()))
    try:
        return str(joblib.hash(value))
    except Exception as error:
        raise ValueError(
            f"{name} = {value!r} is not allowed: with a cache it must be data or a plain "
            f"function, and its content cannot be read ({type(error).__name__}: {error})"
        ) from error


def _sources(function: Callable, seen: set[int]) -> Iterator[str]:
    """The source of a function, and whatever it refers to outside installed packages."""
    seen.add(id(function))
    code = function.__code__
    source = ""
    with suppress(OSError):  # there is none where it was typed at a prompt
        source = inspect.getsource(function)
    yield source
    if not source or code.co_name == "<lambda>":  # several of which may stand in a line
        yield from _compiled(code)
    for default in (function.__defaults__, function.__kwdefaults__):
        if default:
            yield value_key(
                "a default", list(default.items() if isinstance(default, dict) else default)
            )
    for name, value in sorted(outer_values(function).items()):
        yield name
        yield from _content(name, value, seen)


def _content(name: str, value: Any, seen: set[int]) -> Iterator[str]:
    """What an outer value adds to the name of a function that refers to it."""
    if id(value) in seen:
        return
    if isinstance(value, functools._lru_cache_wrapper):
        value = inspect.unwrap(value)
    if isinstance(value, ModuleType):
        if is_local(value):
            seen.add(id(value))
            yield inspect.getsource(value)
    elif inspect.isfunction(value) or isinstance(value, type):
        if is_local(sys.modules.get(value.__module__)):
            if isinstance(value, type):
                yield from _class(value, seen)
            else:
                yield from _sources(value, seen)
    elif not inspect.isbuiltin(value) and not isinstance(value, np.ufunc):
        yield value_key(f"{name}, which the function uses,", value)


def _class(kind: type, seen: set[int]) -> Iterator[str]:
    """The source of a class and of what its methods refer to."""
    seen.add(id(kind))
    try:
        yield inspect.getsource(kind)
    except (OSError, TypeError):
        yield kind.__qualname__
    for name, value in sorted(vars(kind).items()):
        if inspect.isfunction(value) and value.__module__ == kind.__module__:
            for outer, used in sorted(outer_values(value).items()):
                yield f"{name} {outer}"
                yield from _content(outer, used, seen)


def outer_values(function: Callable) -> Mapping[str, Any]:
    """The global and enclosing values that a function refers to, also from functions inside it."""
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return found | {name: cell.cell_contents for name, cell in cells if _filled(cell)}


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _compiled(code: CodeType) -> Iterator[str]:
    for inner in _codes(code):
        plain = [x for x in inner.co_consts if not isinstance(x, CodeType)]
        yield f"{inner.co_code.hex()} {inner.co_names} {plain!r}"


@lru_cache(maxsize=1)
def _installed() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(
        Path(paths[key]).resolve() for key in ("stdlib", "platstdlib", "purelib", "platlib")
    )


def is_local(module: ModuleType | None) -> bool:
    """Whether a module is the reader's own: neither installed, nor built in, nor of `needle`."""
    if module is None or module.__name__ == "__main__":
        return True
    if module.__name__ == OURS or module.__name__.startswith(f"{OURS}."):
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ not in sys.builtin_module_names and hasattr(module, "__path__")
    return not any(Path(file).resolve().is_relative_to(folder) for folder in _installed())
