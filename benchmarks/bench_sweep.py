"""Sweeps: what processes, a cluster and the cache cost. Needs a machine at rest to be believed.

Two workers are timed against the work that one process does, with trials of 50 ms; the overhead of
a trial against the executor's own for an empty call; a finished sweep against running it again.
"""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from benchmarks.clock import now, seconds
from needle.trials.grid import sweep


def busy(rng: np.random.Generator) -> float:
    """50 ms of computing, by the processor's own clock."""
    end = time.thread_time() + 0.05
    total = 0.0
    while time.thread_time() < end:
        total += float(rng.standard_normal(200).sum())
    return total


def nothing() -> None:
    """A call that costs only what the executor does."""


def empty(rng: np.random.Generator) -> float:
    return 0.0


def both_at_once(trials: int) -> tuple[float, float]:
    """Wall seconds of a sweep with one process and with two; start-up of workers not counted."""
    sweep(empty, {}, trials=4, seed=0, n_jobs=2)
    found = []
    for jobs in (1, 2):
        start = now()
        sweep(busy, {}, trials=trials, seed=0, n_jobs=jobs)
        found.append(now() - start)
    return found[0], found[1]


def overhead(executor: Any, calls: int) -> tuple[float, float]:
    """Seconds for each trial of a sweep of empty trials, and for each empty call."""

    def plain() -> None:
        for future in [executor.submit(nothing, pure=False) if dask else executor.submit(nothing)
                       for _ in range(calls)]:  # fmt: skip
            future.result()

    dask = type(executor).__module__.startswith("distributed")
    ours = seconds(lambda: sweep(empty, {}, trials=calls, seed=0, executor=executor), repeats=2)
    return ours / calls, seconds(plain, repeats=2) / calls


def resumed(trials: int) -> tuple[float, float]:
    """Seconds to read a finished sweep back, and to run it."""
    with tempfile.TemporaryDirectory() as folder:
        grid = {"k": range(100)}

        def draw(k: int, rng: np.random.Generator) -> dict[str, float]:
            return {"error": float(rng.random()), "loss": float(rng.random())}

        def call() -> object:
            return sweep(draw, grid, trials=trials // 100, seed=0, n_jobs=1, cache=folder)

        start = now()
        call()
        first = now() - start
        return seconds(call, repeats=2), first


def run() -> list[dict[str, Any]]:
    load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    rows = []
    one, two = both_at_once(40)
    rows.append({
        "what": f"40 trials of 50 ms on two processes, against one; efficiency ({load})",
        "ours": two, "other": one, "ratio": one / two / 2, "required": 0.85,
    })  # fmt: skip
    with ProcessPoolExecutor(2) as executor:
        ours, bare = overhead(executor, 300)
    rows.append({
        "what": "an empty trial through ProcessPoolExecutor, beside an empty call; 2 ms more "
        f"are allowed ({load})",
        "ours": ours, "other": bare, "ratio": 0.002 / max(ours - bare, 1e-6), "required": 1.0,
    })  # fmt: skip
    ours, first = resumed(10_000)
    rows.append({
        "what": "a finished sweep of 10,000 trials again, beside the first time; 1 s is allowed "
        f"({load})",
        "ours": ours, "other": first, "ratio": 1.0 / ours, "required": 1.0,
    })  # fmt: skip
    return rows + through_dask(load)


def through_dask(load: str) -> list[dict[str, Any]]:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        return [{"what": "Dask is not installed (extra `cluster`)"}]
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        executor = client.get_executor(pure=False)
        ours, bare = overhead(executor, 300)
        start = now()
        sweep(busy, {}, trials=40, seed=0, executor=executor)
        dask = now() - start
    _, local = both_at_once(40)
    return [
        {
            "what": "an empty trial through Dask, beside an empty call; 2 ms more are allowed "
            f"({load})",
            "ours": ours, "other": bare, "ratio": 0.002 / max(ours - bare, 1e-6), "required": 1.0,
        },
        {
            "what": "40 trials of 50 ms through Dask's two workers, against two local ones "
            f"({load})",
            "ours": dask, "other": local, "ratio": local / dask, "required": "",
        },
    ]  # fmt: skip
