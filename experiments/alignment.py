"""Two gradient steps at full scale: cosines and norms, and what a head behind them needs."""

from __future__ import annotations

import numpy as np

from needle.data.classifiers import pooled
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.kit.records import Alignment
from needle.readout.fit import simulate_readout
from needle.readout.pipeline import FAR, strength_in_law, strength_on_tokens, train_head
from needle.steps.alignment import simulate_alignment


def two_steps(d: int, alpha: float, loss: str, rng: np.random.Generator) -> Alignment:
    """Everything two steps return, in the task of Figure 4.1."""
    return simulate_alignment(SparseTokens(10, 3, 6.0, 0.2), d, alpha, rng, loss=loss)


def strength(L: int, centre: float, d_query: int, d: int, rng: np.random.Generator) -> float:
    """The strength at which a head in law errs on 5 %."""
    return strength_in_law(L, centre, d_query, d, rng)


def literal_strength(L: int, centre: float, d: int, kind: str, rng: np.random.Generator) -> float:
    """The same on literal tokens, or in law at the same small dimension."""
    if kind == "tokens":
        return strength_on_tokens(L, centre, d, rng)
    return strength_in_law(L, centre, d, d, rng, factors=FAR)


def literal(task: str, d: int, rng: np.random.Generator) -> Alignment:
    """Both steps taken literally on tokens: the task of Figure 4.1, or one with the square loss."""
    if task == "square":
        rates = {"lr_w": 1.0, "lr_b": 0.2}
        other = SparseTokens(5, 1, 3.0, 0.6)
        return simulate_alignment(other, d, 3.0, rng, loss="square", method="dense", **rates)
    return simulate_alignment(SparseTokens(10, 3, 6.0, 0.2), d, 2.0, rng, method="dense")


def test_error(model: str, L: int, d: int, rng: np.random.Generator) -> float:
    """Test error at θ = 10 with four samples per dimension: two linear models and attention."""
    task = SparseTokens(L, 1, 10.0, 0.5)
    if model == "attention":
        return train_head(task, 100_000, d, rng)
    law, ridge = (pooled, 1 / L) if model == "pooled" else (vectorized, 1.0)
    return simulate_readout(law(task), d, 4.0, ridge, rng).test_error


def other_strength(
    steps: int, L: int, centre: float, d_query: int, rng: np.random.Generator
) -> float:
    """The strength of a head in law whose query took one step, or none: given (d = 200)."""
    return strength_in_law(L, centre, d_query, 200, rng, steps=steps)
