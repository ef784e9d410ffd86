"""One clock for all: the wall's, and the least of several calls, which load can only raise.

What runs in one thread may be told in CPU seconds instead, which other work disturbs less.
"""

from __future__ import annotations

import time
from collections.abc import Callable

now = time.perf_counter


def seconds(
    work: Callable[[], object], repeats: int = 5, clock: Callable[[], float] = now
) -> float:
    """Least time of one call, after a first one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def cpu_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The same in CPU seconds of this process."""
    return seconds(work, repeats, time.process_time)
