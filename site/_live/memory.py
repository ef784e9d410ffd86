"""The variables of a page as bytes, so that they outlive its thread."""

from __future__ import annotations

import functools
import io
import pickle
import types
from collections.abc import Callable
from typing import Any

LARGEST_ARRAY, LARGEST = 32_000_000, 100_000_000  # bytes that are kept, of one variable and of all
Space = dict[str, Any]


def snapshot(space: Space, own: Space) -> tuple[bytes, list[str]]:
    """All variables but the page's own, and the names of those that cannot be kept."""
    ours = {name: v for name, v in space.items() if name not in own or v is not own[name]}
    variables = {name: v for name, v in ours.items() if bytes_of(v) <= LARGEST_ARRAY}
    try:
        content = pickled(variables, space)
    except Exception:
        variables = {name: v for name, v in variables.items() if can_be_kept(v, space)}
        content = pickled(variables, space)
    if len(content) > LARGEST:
        variables, content = {}, b""
    return content, sorted(k for k in ours if k not in variables and not k.startswith("_"))


def restore(space: Space, content: bytes) -> None:
    """Bring variables back; functions see the variables of the page, as before."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, name: str) -> Space:
            return space

    space.update(Unpickler(io.BytesIO(content)).load())


def pickled(value: Any, space: Space) -> bytes:
    """Bytes of anything that a cell may define, functions, classes and closures included.

    The variables of the page are named, not copied: what a function reads is what the page has.
    """
    import cloudpickle

    class Pickler(cloudpickle.CloudPickler):
        def persistent_id(self, item: Any) -> str | None:
            return "page" if item is space else None

        def reducer_override(self, item: Any) -> Any:
            if isinstance(item, functools._lru_cache_wrapper) and item.__module__ == "__main__":
                return remembering, (item.__wrapped__, *item.cache_parameters().values())
            return super().reducer_override(item)

        def _dynamic_function_reduce(self, function: types.FunctionType) -> Any:
            reduced = super()._dynamic_function_reduce(function)
            if function.__globals__ is space:
                reduced[2][1]["__globals__"] = {}
            return reduced

    target = io.BytesIO()
    pickler = Pickler(target, protocol=5)
    pickler.globals_ref[id(space)] = space
    pickler.dump(value)
    return target.getvalue()


def remembering(function: Callable, maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize=maxsize, typed=typed)(function)


def bytes_of(value: Any) -> int:
    """Those of an array; others are small, or are found out when they are written."""
    count = getattr(value, "nbytes", 0)
    return count if isinstance(count, int) else 0


def can_be_kept(value: Any, space: Space) -> bool:
    try:
        pickled(value, space)
        return True
    except Exception:
        return False
