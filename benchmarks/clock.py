"""One clock for all: the wall's, and the least of several calls, which load can only raise."""

from __future__ import annotations

import time
from collections.abc import Callable

now = time.perf_counter


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Least time of one call, after a first one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        start = now()
        work()
        times.append(now() - start)
    return min(times)
