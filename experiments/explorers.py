"""What the tables of the explorers are tested against: direct answers at a thousand random points.

A point is a random setting of an explorer's sliders and, where a curve is drawn between tabulated
places, a random place on it. The numbers are those of `utils` for that one point, without a table.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from needle.data.classifiers import attention, pooled
from needle.data.law import FeatureLaw
from needle.data.noise import Noise, sample_noise
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.learning.limit import all_solutions, learning_thresholds, state_evolution
from needle.learning.posterior import channel
from needle.learning.verdicts import bayes_error
from needle.oracle.separation import oracle_error
from needle.readout.capacity import predict_capacity
from needle.readout.limit import learning_curve
from utils.explorers.values import EXPLORERS

POINTS = 100  # a batch
TABLED = ("detection", "curves", "capacity", "phase")


def points(explorer: str, batch: int) -> list[dict[str, Any]]:
    """Settings of the sliders, each with a place `at` ∈ [0, 1) on the curves."""
    rng = np.random.default_rng([TABLED.index(explorer), batch])
    sliders = EXPLORERS[explorer].sliders
    return [
        {s.name: s.stops[rng.integers(len(s.stops))] for s in sliders}
        | {"at": float(rng.uniform())}
        for _ in range(POINTS)
    ]


def between(low: float, high: float, at: float) -> float:
    """The place `at` on a logarithmic axis."""
    return low * (high / low) ** at


@cache
def noise(L: int) -> Noise:
    """The same 2000 bags of noise for all points of a size."""
    return sample_noise(L, 1, 2000, np.random.default_rng(0))


@cache
def laws(theta: float, pi: float, T: float, cos: float) -> dict[str, FeatureLaw]:
    """The three classifiers of `curves`, whose laws many points share."""
    model = SparseTokens(L=10, R=1, theta=theta, pi=pi)
    law = attention(model, temperature=T, cos=cos)
    return {"pooled": pooled(model), "vectorized": vectorized(model), "attention": law}


def detection(p: dict[str, Any]) -> dict[str, float]:
    """Errors at the slider's strength, of attention from 2000 bags."""
    model = SparseTokens(L=p["L"], R=1, theta=p["theta"], pi=0.5)
    return {
        "pooled": float(oracle_error("pooled", model)),
        "attention": float(oracle_error("attention", model, tau=p["tau"], noise=noise(model.L))),
        "largest": float(oracle_error("attention", model, tau=math.inf)),
        "bayes": float(bayes_error(model, model.theta)),
    }


def curves(p: dict[str, Any]) -> dict[str, float]:
    """Errors and losses of the three classifiers at one number of samples per dimension."""
    alpha, loss = between(0.25, 64, p["at"]), ("logistic", "square")[p["loss"]]
    found = {}
    for kind, features in laws(p["theta"], p["pi"], p["T"], p["cos"]).items():
        [result] = learning_curve(features, [alpha], p["lam"], loss=loss)
        found |= {f"{kind}/error": result.test_error, f"{kind}/loss": result.train_loss}
    return found


def capacity(p: dict[str, Any]) -> dict[str, float]:
    """Capacities: of averages, and of attention at the sliders, at a cosine and at a sharpness."""
    model = SparseTokens(L=10, R=1, theta=p["theta"], pi=p["pi"])
    places = {
        "attention": (p["T"], p["cos"]),
        "by_cosine": (p["T"], p["at"]),
        "by_sharpness": (between(0.5, 5, p["at"]), p["cos"]),
    }
    found = {
        name: predict_capacity(attention(model, temperature=T, cos=cos))
        for name, (T, cos) in places.items()
    }
    return {"pooled": predict_capacity(pooled(model)), **found}


def phase(p: dict[str, Any]) -> dict[str, float]:
    """The map at one m, its lowest and highest fixed points, 60 rounds, and the thresholds."""
    model, alpha = SparseTokens(L=p["L"], R=1, theta=p["theta"], pi=p["pi"]), p["alpha"]
    m = round(100 * p["at"]) / 100
    weight = float(channel(model.L, 1).log_weight(model.theta**2 * m))
    gain = alpha * model.pi * model.theta**2 * math.exp(weight)
    fixed = sorted(solution.cos**2 for solution in all_solutions(model, alpha))
    limits = learning_thresholds(model)
    return {
        "map": gain / (1 + gain),
        "lowest": fixed[0],
        "highest": fixed[-1],
        "last": float(state_evolution(model, alpha, 60)[-1] ** 2),
        "information": limits.information,
        "algorithm": limits.algorithm,
    }


def explorer_points(explorer: str, batch: int, rng: np.random.Generator) -> dict[str, float]:
    """The direct answers of a batch of points, numbered."""
    answer = {"detection": detection, "curves": curves, "capacity": capacity, "phase": phase}
    return {
        f"{name}/{k}": value
        for k, point in enumerate(points(explorer, batch))
        for name, value in answer[explorer](point).items()
    }
