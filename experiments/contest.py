"""Who wins, pooling or attention: two maps of the theory, literal tokens at their borders, and what
balancing the classes does to the whole of a head."""

import numpy as np

from needle.data.tokens import SparseTokens
from needle.readout.contest import predict_contest, simulate_contest
from needle.steps.rates import calibrated_rate

Numbers = dict[str, float]
WAYS = {
    "small rates": {"lr_w": 0.05, "lr_b": 0.05},
    "calibrated": {"lr_b": None},
    "balanced": {"balanced": True},
}


def many(L: int, R: int, theta: float) -> tuple[SparseTokens, dict[str, float]]:
    """The task of the first map, four samples per dimension for the query and four for readouts."""
    task = SparseTokens(L, R, theta, 0.5)
    return task, {"alpha0": 4.0, "alpha": 4.0, "temperature": 1.0, "lam": 0.1}


def few(alpha: float) -> tuple[SparseTokens, dict[str, float]]:
    """The task of the second map, a quarter of alpha samples per dimension for the query."""
    task = SparseTokens(10, 1, 5.0, 0.5)
    return task, {"alpha0": alpha / 4, "alpha": 3 * alpha / 4, "temperature": 2.0, "lam": 0.1}


def strengths(L: int, R: int, theta: float, rng: np.random.Generator) -> Numbers:
    """A point of the first map."""
    task, options = many(L, R, theta)
    return predict_contest(task, **options)._asdict()


def cosines(alpha: float, cosine: float, rng: np.random.Generator) -> Numbers:
    """A point of the second map: pooling, and attention behind a query of this cosine."""
    task, options = few(alpha)
    found = predict_contest(task, cos=cosine, **options)
    return {"pooling": found.pooling, "attention": found.learned}


def strengths_on_tokens(L: int, R: int, theta: float, d: int, rng: np.random.Generator) -> Numbers:
    """A trial of the first map."""
    task, options = many(L, R, theta)
    return simulate_contest(task, d, rng=rng, **options)._asdict()


def cosines_on_tokens(alpha: float, cosine: float, d: int, rng: np.random.Generator) -> Numbers:
    """A trial of the second map."""
    task, options = few(alpha)
    found = simulate_contest(task, d, rng=rng, cos=cosine, **options)
    return {"pooling": found.pooling, "attention": found.learned}


def head(way: str, pi: float) -> tuple[SparseTokens, dict[str, float]]:
    """One strong needle among ten tokens; rates and weights of the steps, and the readout."""
    rates = {k: calibrated_rate(pi) if v is None else v for k, v in WAYS[way].items()}
    options = {"alpha0": 4.0, "alpha": 4.0, "temperature": 2.0, "lam": 0.01, **rates}
    return SparseTokens(10, 1, 5.0, pi), options


def heads(way: str, pi: float, d: int, rng: np.random.Generator) -> Numbers:
    """A whole head on tokens by one way to take the two steps; the error as a share of π."""
    task, options = head(way, pi)
    found = simulate_contest(task, d, rng=rng, **options)
    return {"cos": found.cos, "error": found.learned / pi}
