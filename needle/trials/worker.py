"""What a worker does: one trial after the other on one BLAS thread, and what travels to it.

The function and the points travel by value, so that workers need this package and nothing else of
the caller's; a worker whose package, Python or NumPy differs refuses to compute.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..kit.threads import one_thread
from .keys import environment, is_local

BRIEF = 0.05  # seconds after which a worker hands back what is left of its batch

Message = tuple[bytes, int, tuple[int, ...]]  # parameters, seed, stream
Reply = tuple[list[tuple[bytes, float]], tuple[str, bytes | None] | None]


def _clock() -> float:
    """CPU seconds of this thread; those of the wall where nobody counts them, as in a browser."""
    try:
        return time.thread_time()
    except (AttributeError, OSError):
        return time.perf_counter()


def timed(
    function: Callable, point: Mapping[str, Any], seed: int, stream: tuple[int, ...]
) -> tuple[Any, float]:
    """One trial on one BLAS thread: its result and CPU seconds."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))
    with one_thread():
        start = _clock()
        result = function(**point, rng=rng)
        return result, _clock() - start


@lru_cache(maxsize=8)
def _unpacked(packed: bytes) -> Any:
    import cloudpickle

    return cloudpickle.loads(packed)


def work(expected: str, packed: bytes, batch: list[Message]) -> Reply:
    """The results of some trials, and the failure of the next; after BRIEF seconds, of fewer."""
    import cloudpickle

    if environment() != expected:
        raise RuntimeError(f"the worker has {environment()}, and the caller {expected}")
    function = _unpacked(packed)
    done: list[tuple[bytes, float]] = []
    end = time.monotonic() + BRIEF
    for point, seed, stream in batch:
        try:
            result, seconds = timed(function, _unpacked(point), seed, stream)
            done.append((cloudpickle.dumps(result), seconds))
        except Exception as error:
            error.add_note(f"In the worker:\n{traceback.format_exc()}")
            cause = None
            with suppress(Exception):
                cause = cloudpickle.dumps(error)
            return done, (f"{type(error).__name__}: {error}", cause)
        if time.monotonic() > end:
            break
    return done, None


def pack(function: Callable) -> bytes:
    """A function by value, with what stands beside it, unless that cannot be copied."""
    import cloudpickle

    core = function
    while isinstance(core, partial):
        core = core.func
    module = sys.modules.get(getattr(core, "__module__", None) or "")
    if module is None or module.__name__ == "__main__" or not is_local(module):
        return cloudpickle.dumps(function)
    package = sys.modules.get(module.__name__.partition(".")[0], module)
    known = package.__name__ in cloudpickle.list_registry_pickle_by_value()
    try:
        cloudpickle.register_pickle_by_value(package)
        return cloudpickle.dumps(function)
    except Exception:
        cloudpickle.unregister_pickle_by_value(package)
        return cloudpickle.dumps(function)
    finally:
        if not known and package.__name__ in cloudpickle.list_registry_pickle_by_value():
            cloudpickle.unregister_pickle_by_value(package)
