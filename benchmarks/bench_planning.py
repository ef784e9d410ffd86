"""Promises of `needle.planning.planner`: the default table on one core in ten seconds."""

from __future__ import annotations

import numpy as np

from benchmarks.clock import seconds
from needle.bags.portrait import estimate
from needle.data.tokens import SparseTokens
from needle.learning import limit as learning
from needle.learning import posterior
from needle.planning.planner import plan


def table(**task: float) -> None:
    """The default table, the tables behind it included."""
    for cached in (learning._curve, posterior.channel, posterior._bags):
        cached.cache_clear()
    plan(**task)


def portrait() -> float:
    """Seconds of a portrait of 400 bags of 50 tokens in 100 dimensions."""
    X, y, _ = SparseTokens(50, 2, 4.0, 0.3).sample(400, 100, np.random.default_rng(0))
    return seconds(lambda: estimate(X, y), 1)


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
    return [
        {
            "what": what,
            "ours": ours,
            "other": other,
            "ratio": other / ours if other else "",
            "required": required,
        }
        for what, ours, other, required in rows
    ]
