"""One BLAS thread where small products are many: threads that wait for one another cost far more
than they bring, and how many there are must not depend on a variable of the environment."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

Array = np.ndarray
P = ParamSpec("P")
T = TypeVar("T")


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """All that computes in threads, looked up again when modules have been loaded."""
    return ThreadpoolController()


class _OneThread:
    """One BLAS thread as long as anything asks for it in this process.

    Some libraries count for each thread that calls them and some for the process. So each caller
    sets its own back, and the last one also what the first one found.
    """

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.found: Any = None

    def __reduce__(self) -> tuple[type[_OneThread], tuple[()]]:
        return _OneThread, ()  # what travels to a worker counts there

    @contextmanager
    def __call__(self) -> Iterator[None]:
        libraries = _libraries(len(sys.modules))
        with self.lock:
            own = libraries.limit(limits=1)
            if not self.inside:
                self.found = own
            self.inside += 1
        try:
            yield
        finally:
            with self.lock:
                self.inside -= 1
                own.restore_original_limits()
                if not self.inside:
                    self.found.restore_original_limits()


one_thread = _OneThread()


def in_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function, computing on one BLAS thread.

    >>> @in_one_thread
    ... def double(x: float) -> float:
    ...     return 2 * x
    >>> double(1.5)
    3.0
    """

    @wraps(function)
    def alone(*args: P.args, **options: P.kwargs) -> T:
        with one_thread():
            return function(*args, **options)

    return alone


def in_one_thread_below(
    size: int,
) -> Callable[[Callable[Concatenate[Array, P], T]], Callable[Concatenate[Array, P], T]]:
    """The same for a function whose first argument is an array with fewer numbers than `size`."""

    def chosen(
        function: Callable[Concatenate[Array, P], T],
    ) -> Callable[Concatenate[Array, P], T]:
        alone = in_one_thread(function)

        @wraps(function)
        def either(array: Array, *args: P.args, **options: P.kwargs) -> T:
            return (alone if array.size < size else function)(array, *args, **options)

        return either

    return chosen
