"""What the page "Your own numbers" interpolates, and what its interpolation is tested against.

Whole plans at random settings: sizes and shares from the stops of the sliders, any number of
samples per dimension, five strengths in the window of `utils.explorers.numbers`. Averaging alone at
random signal-to-noise ratios. And the channel of one bag, for the best learner, at every size.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from needle.data.tokens import SparseTokens
from needle.learning.posterior import channel
from needle.learning.verdicts import bayes_error, bayes_rates
from needle.planning.planner import EVIDENCE
from needle.planning.planner import plan as planned
from needle.planning.tuner import Tuner
from utils.explorers.numbers import (
    BUDGET,
    NEEDLES,
    SHARES,
    TOKENS,
    edge,
    heights,
    steps_capacity,
    strength,
)

CHOICES = ("none", "pooled", "attention", "twice")
STRENGTHS = 5
plan = partial(planned, balanced=False)  # labels as they come


def setting(stream: int, number: int) -> dict[str, Any]:
    """L, R, π, d, n and strengths of one setting; stream 3 has a thousand bags, 4 any number."""
    rng = np.random.default_rng([number, stream])
    chosen = {"L": int(rng.choice(TOKENS)), "R": int(rng.choice(NEEDLES))}
    chosen |= {"pi": float(rng.choice(SHARES))}
    alpha = float(np.exp(rng.uniform(*np.log(BUDGET))))
    n = 1000 if stream == 3 else int(np.exp(rng.uniform(math.log(200), math.log(50_000))))
    d = max(2, round(n / alpha))
    w = (np.arange(STRENGTHS) + rng.uniform(size=STRENGTHS)) / STRENGTHS * 2 - 1
    height = edge(chosen["L"], chosen["R"], chosen["pi"], n / d)
    return {**chosen, "d": d, "n": n, "theta": strength(height, w).tolist()}


def usual(number: int) -> dict[str, Any]:
    """One needle in half of the bags, each length with two budgets.

    Many readers begin there, and random settings have an edge there.
    """
    L, alpha = TOKENS[number % len(TOKENS)], (1.0, 5.0)[number // len(TOKENS)]
    w = np.linspace(-0.9, 0.9, STRENGTHS) + 0.05 * (-1) ** number
    n, d = round(1000 * alpha), 1000
    theta = strength(edge(L, 1, 0.5, n / d), w).tolist()
    return {"L": L, "R": 1, "pi": 0.5, "d": d, "n": n, "theta": theta}


def own_plans(stream: int, number: int, rng: np.random.Generator) -> dict[str, float]:
    """The rows of one plan, and the capacity behind the better of its two queries."""
    return planned(setting(stream, number))


def own_usual(number: int, rng: np.random.Generator) -> dict[str, float]:
    """The same at the usual settings."""
    return planned(usual(number))


def planned(chosen: dict[str, Any]) -> dict[str, float]:
    """The rows of one plan as numbers."""
    found = {name: float(chosen[name]) for name in ("L", "R", "pi", "d", "n")}
    for k, row in enumerate(plan(**chosen).rows):
        numbers = {
            "theta": row.theta, "pooled": row.pooled, "split": row.attention, "share": row.share,
            "split_T": row.temperature, "split_ridge": row.ridge, "twice": row.twice,
            "twice_T": row.twice_temperature, "twice_ridge": row.twice_ridge,
            "best": row.best_possible, "auc_best": row.auc["best_possible"],
            "auc_steps": max(row.auc["attention"], row.auc.get("twice", 0.0)),
            "capacity": steps_capacity(chosen["L"], chosen["R"], chosen["pi"], row),
            "choice": CHOICES.index(row.choice),
        }  # fmt: skip
        found |= {
            f"{name}/{k}": math.nan if value is None else value for name, value in numbers.items()
        }
    return found


def own_averages(tens: int, ones: int, rng: np.random.Generator) -> dict[str, float]:
    """Averaging at its best ridge, for a random δ = θR/√L, share and number of samples."""
    rng = np.random.default_rng(10 * tens + ones)
    delta, alpha = np.exp([rng.uniform(*np.log((0.03, 30))), rng.uniform(*np.log(BUDGET))])
    pi = float(rng.choice(SHARES))
    tuner = Tuner(100, 1, 1000, round(1000 * alpha), pi)
    found = tuner.average(10 * float(delta))
    return {
        "delta": float(delta),
        "pi": pi,
        "alpha": tuner.alpha,
        "error": found.error,
        "auc": found.auc,
    }


def own_channels(L: int, R: int, rng: np.random.Generator) -> dict[str, float]:
    """log W along √s; errors of Bayes' rule at every share, and its AUC, along the strength."""
    ends, bag = heights(L), channel(L, R)
    found = {f"weight/{k}": float(bag.log_weight(r * r)) for k, r in enumerate(ends.weight)}
    odds = [math.log((1 - pi) / pi) for pi in SHARES]
    for k, r in enumerate(ends.bayes[1:], 1):
        missed, raised = bayes_rates(SparseTokens(L, R, r, 0.5), r, [*odds, *EVIDENCE])
        for pi in SHARES:
            found[f"bayes/{pi}/{k}"] = float(bayes_error(SparseTokens(L, R, r, pi), r))
        low = np.concatenate([[0.0], missed[len(odds) :], [1.0]])
        high = np.concatenate([[1.0], raised[len(odds) :], [0.0]])
        found[f"auc/{k}"] = float(-np.sum(np.diff(high) * (1 - (low[1:] + low[:-1]) / 2)))
    return found
