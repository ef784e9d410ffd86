"""Promises of `needle.planning`: the default table in ten seconds; slopes against a lattice.

In CPU seconds of one thread, all rows from one run.
"""

from __future__ import annotations

import numpy as np

from benchmarks.clock import cpu_seconds as seconds
from benchmarks.lattice import lattice, reached
from needle.bags.portrait import estimate
from needle.data.tokens import SparseTokens
from needle.learning import limit as learning
from needle.learning import posterior, verdicts
from needle.planning.planner import plan
from needle.planning.tuner import Tuner


def table(**task: float) -> None:
    """The default table, the tables behind it included."""
    for cached in (learning._curve, posterior.channel, verdicts._bags):
        cached.cache_clear()
    plan(**task)


def portrait() -> float:
    """Seconds of a portrait of 400 bags of 50 tokens in 100 dimensions."""
    X, y, _ = SparseTokens(50, 2, 4.0, 0.3).sample(400, 100, np.random.default_rng(0))
    return seconds(lambda: estimate(X, y), 1)


STRENGTHS = {20: (3.3, 3.8, 4.3, 5.0), 1000: (4.4, 4.8, 5.4, 6.0)}


def searches(L: int, R: int, d: int, n: int, pi: float) -> list[dict[str, object]]:
    """Both searches from the same start: their times, and the larger of the errors reached."""
    pairs = [
        [find(Tuner(L, R, d, n, pi), theta) for find in (Tuner.split, lattice)]
        for theta in STRENGTHS[L]
    ]
    desk = Tuner(L, R, d, n, pi)
    worst = max(
        reached(desk, theta, ours) / reached(desk, theta, other)
        for theta, (ours, other) in zip(STRENGTHS[L], pairs, strict=True)
    )
    times = [
        seconds(lambda find=find: [find(Tuner(L, R, d, n, pi), t) for t in STRENGTHS[L]], 3)
        for find in (Tuner.split, lattice)
    ]
    what = f"recipes at four strengths, L = {L}: slopes against a lattice"
    return [
        {"what": what, "ours": times[0], "other": times[1], "ratio": times[1] / times[0],
         "required": 2.5},
        {"what": f"the same: error by slopes over error by lattice, the worst ({worst:.3f})",
         "ours": worst, "other": 1.0, "ratio": 1.0 / worst, "required": 0.95},
    ]  # fmt: skip


def run() -> list[dict[str, object]]:
    """One row for each promise."""
    short = {"L": 20, "R": 2, "d": 100, "n": 300, "pi": 0.3}
    long = short | {"L": 1000, "R": 3, "d": 512, "n": 4000}
    rows = [
        (f"plan at {', '.join(f'{k} = {v}' for k, v in task.items())}, against 10 s",
         seconds(lambda task=task: table(**task), 1), 10.0, 1)
        for task in (short, long)
    ]  # fmt: skip
    rows.append(("portrait of 400 bags of 50 tokens, d = 100: seconds", portrait(), "", ""))
    return [*searches(**short), *searches(**long)] + [
        {
            "what": what,
            "ours": ours,
            "other": other,
            "ratio": other / ours if other else "",
            "required": required,
        }
        for what, ours, other, required in rows
    ]
