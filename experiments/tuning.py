"""Maps of theory over what one can tune, and simulated points on both sides of their boundaries."""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np

from needle.data.classifiers import attention, pooled
from needle.data.tokens import SparseTokens
from needle.planning.planner import plan as planned
from needle.planning.tuner import Recipe
from needle.planning.tuner import Tuner as AnyTuner
from needle.readout.fit import simulate_readout
from needle.readout.limit import predict_readout
from needle.steps.alignment import predict_alignment, simulate_alignment
from needle.steps.rates import RATE_W, calibrated_rate

plan, Tuner = (partial(made, balanced=False) for made in (planned, AnyTuner))  # labels as they come


def sharpness_map(
    temperature: float, cos: float, d: int = 0, *, rng: np.random.Generator
) -> dict[str, float]:
    """Error at L = 100, R = 1, θ = 6, π = 0.3, α₁ = 2, λ = 0.03: theory, or a simulation at d."""
    model = SparseTokens(L=100, R=1, theta=6.0, pi=0.3)
    law = attention(model, temperature=temperature, cos=cos, resolution=192, bits=12)
    if d:
        return {"error": simulate_readout(law, d, 2.0, 0.03, rng).test_error}
    average = predict_readout(pooled(model), 2.0, 0.03).test_error
    return {"error": predict_readout(law, 2.0, 0.03).test_error, "pooled": average}


def split_map(
    share: float, ridge: float, d: int = 0, *, rng: np.random.Generator
) -> dict[str, float]:
    """Error at the engineer's setting, θ = 5, T = 2: theory, or both stages drawn at d."""
    model, alpha = SparseTokens(L=1000, R=3, theta=5.0, pi=0.3), 4000 / 512
    rates = {"lr_w": RATE_W, "lr_b": calibrated_rate(0.3)}
    rest = (1 - share) * alpha
    if d:
        cos = simulate_alignment(model, d, share * alpha, rng, **rates).query_cos
        law = attention(model, temperature=2.0, cos=cos, resolution=24, bits=8)
        return {"error": simulate_readout(law, d, rest, ridge, rng).test_error, "cos": cos}
    cos = predict_alignment(model, share * alpha, **rates).query_cos
    law = attention(model, temperature=2.0, cos=cos, resolution=192, bits=12)
    return {"error": predict_readout(law, rest, ridge).test_error, "cos": cos}


def best_recipe(L: int, alpha: float, factor: float, rng: np.random.Generator) -> dict[str, float]:
    """The best recipe at `factor` times the θ that a usual one needs for 5 %; R = 1, π = ½."""
    desk = Tuner(L, 1, 1000, round(1000 * alpha), 0.5)
    low, high = math.sqrt(2 * math.log(L)), 4 * L**0.4
    for _ in range(9):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if desk.quick_error(middle) < 0.05 else (middle, high)
    found = desk.split(factor * high)
    names = ("share", "temperature", "ridge", "cosine", "error")
    return {"theta": factor * high, **{name: getattr(found, name) for name in names}}


def needed_strength(L: int, pi: float, rng: np.random.Generator) -> dict[str, float]:
    """The θ each learner needs for a quarter of always-no's error; R = 1, n = 8d."""
    made = plan(L=L, R=1, d=1000, n=8000, pi=pi, theta=L**0.3 + 3, error=min(pi, 1 - pi) / 4)
    return {name: made.search(name) for name in ("pooled", "attention", "best_possible")}


def beside_needed(
    L: int, pi: float, theta: float, d: int, rng: np.random.Generator
) -> dict[str, float]:
    """Both stages drawn at d with the best recipe, R = 1, n = 8d, near the strength needed."""
    found, rates = _advised(L, pi, theta), {"lr_w": RATE_W, "lr_b": calibrated_rate(pi)}
    model = SparseTokens(L=L, R=1, theta=theta, pi=pi)
    cos = simulate_alignment(model, d, 8 * found.share, rng, **rates).query_cos
    law = attention(model, temperature=found.temperature, cos=cos, resolution=24, bits=8)
    error = simulate_readout(law, d, 8 * (1 - found.share), found.ridge, rng).test_error
    return {"error": error, "promised": found.error}


@lru_cache(maxsize=32)
def _advised(L: int, pi: float, theta: float) -> Recipe:
    return Tuner(L, 1, 1000, 8000, pi).split(theta)
