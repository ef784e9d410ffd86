"""The best learner: message passing on its own terms, two gradient steps beside it, and maps."""

import numpy as np
from scipy import special

from needle.data.classifiers import attention, pooled
from needle.data.tokens import SparseTokens
from needle.learning.amp import simulate_learning
from needle.learning.limit import (
    learning_thresholds,
    predict_learning,
)
from needle.learning.verdicts import bayes_error
from needle.readout.fit import fit_readout
from needle.readout.limit import predict_readout
from needle.steps.alignment import predict_alignment, simulate_alignment
from needle.steps.rule import two_steps

Numbers = dict[str, float]


def rounds(L: int, R: int, theta: float, alpha: float, d: int, rng: np.random.Generator) -> Numbers:
    """Cosine after each of seven rounds of message passing from nothing."""
    model = SparseTokens(L, R, theta, 0.5)
    path = simulate_learning(model, d, alpha, rng, method="exact", rounds=7, fresh=1).path
    path = np.pad(path, (0, 7 - len(path)), mode="edge")
    return {f"round {k}": float(cos) for k, cos in enumerate(path, 1)}


def learner(
    L: int,
    theta: float,
    alpha: float,
    d: int,
    start: str,
    rng: np.random.Generator,
    method: str = "exact",
    fresh: int = 100_000,
) -> Numbers:
    """Message passing from nothing or from the truth: cosine, error, free entropy, and whether the
    cosine ends above one half."""
    run = simulate_learning(
        SparseTokens(L, 1, theta, 0.5), d, alpha, rng,
        method=method, informed=start == "truth", fresh=fresh,
    )  # fmt: skip
    names = ("cos", "test_error", "free_entropy")
    return {**{name: getattr(run, name) for name in names}, "found": float(run.cos > 0.5)}


def fixed_point(
    L: int, R: int, theta: float, pi: float, alpha: float, d: int, rng: np.random.Generator
) -> Numbers:
    """Cosine and free entropy where message passing from nothing ends."""
    model = SparseTokens(L, R, theta, pi)
    run = simulate_learning(model, d, alpha, rng, method="exact", fresh=1)
    return {"cos": run.cos, "free_entropy": run.free_entropy}


def one_round(height: float, d: int, rng: np.random.Generator) -> float:
    """The height of a needle after one round of readout→query: L = 1000, θ = 8, α = 1, T = 1."""
    law = attention(SparseTokens(1000, 1, 8.0, 0.5), temperature=1.0, cos=height / 8.0)
    F, y = law.sample(d, d, rng)
    w = ((y > 0) - np.mean(y > 0)) @ F
    return float(8.0 * w[0] / np.linalg.norm(w))


def all_twice(alpha: float, d: int, rng: np.random.Generator) -> float:
    """Literal tokens (L = 10, θ = 5): two steps and a readout on the same samples, λ = 0.1."""
    model = SparseTokens(10, 1, 5.0, 0.5)
    X, y, _ = model.sample(round(alpha * d), d, rng)
    query = two_steps(X, y, lr_b=4.0).q
    query *= 2.5 / np.linalg.norm(query)

    def attend(X: np.ndarray) -> np.ndarray:
        return np.einsum("nl,nld->nd", special.softmax(X @ query, axis=1), X)

    fit = fit_readout(attend(X), y, 0.1)
    X, y, _ = model.sample(1000, d, rng)
    return float(np.mean((attend(X) @ fit.w + fit.b > 0) != (y > 0)))


def two_step_error(L: int, theta: float, d: int, rng: np.random.Generator) -> float:
    """Bayes' rule along the query of two steps on 2d samples."""
    model = SparseTokens(L, 1, theta, 0.5)
    cosine = simulate_alignment(model, d, 2.0, rng, lr_b=4.0).query_cos
    return float(bayes_error(model, theta * max(cosine, 0.0)))


def unknown_strength(alpha: float, guess: float, d: int, rng: np.random.Generator) -> Numbers:
    """θ = 5 learned on the way from a first guess of the needle's height (0: θ known); L = 200."""
    model = SparseTokens(200, 1, 5.0, 0.5)
    run = simulate_learning(
        model, d, alpha, rng, method="exact", height=guess if guess else None, fresh=1
    )
    return {"cos": run.cos, "found": float(run.cos > 0.5)}


# theory of the larger maps: no chance in it, one trial


def split_in_two(L: int, theta: float, alpha: float, rng: np.random.Generator | None) -> float:
    """Two steps and a readout on split data: the best of four shares and two ridges, T = 2.5."""
    model, errors = SparseTokens(L, 1, theta, 0.5), []
    for share in (0.25, 0.5, 0.7, 0.85):
        cosine = predict_alignment(model, share * alpha, lr_b=4.0).query_cos
        law = attention(model, temperature=2.5, cos=cosine, resolution=192)
        errors += [predict_readout(law, (1 - share) * alpha, lam).test_error for lam in (0.1, 0.8)]
    return min(errors)


def halfway(L: int, theta: float, rng: np.random.Generator | None) -> float:
    """The α at which Bayes' rule along the query of two steps is halfway to the oracle."""
    model = SparseTokens(L, 1, theta, 0.5)
    goal = (0.5 + float(bayes_error(model, theta))) / 2
    low, high = np.array([0.1, 100]) * L * np.sqrt(2 * np.log(L)) / theta**4
    for _ in range(12):
        middle = np.sqrt(low * high)
        cosine = predict_alignment(model, middle, lr_b=4.0).query_cos
        found = float(bayes_error(model, theta * cosine)) < goal
        low, high = (low, middle) if found else (middle, high)
    return float(np.sqrt(low * high))


def plane(L: int, R: int, theta: float, rng: np.random.Generator | None) -> Numbers:
    """The thresholds of information and of message passing; for R = 1 `halfway` as well."""
    found = learning_thresholds(SparseTokens(L, R, theta, 0.5))
    numbers = {"information": found.information, "algorithm": found.algorithm}
    return {**numbers, "steps": halfway(L, theta, None)} if R == 1 and L < 10**7 else numbers


def needed(learner: str, L: int, rng: np.random.Generator | None) -> float:
    """The strength at which a learner errs on 5 % at 2 bags per dimension."""

    def along_query(model: SparseTokens) -> float:
        cosine = predict_alignment(model, 2.0, lr_b=4.0).query_cos
        return float(bayes_error(model, model.theta * cosine))

    error = {
        "oracle": lambda m: float(bayes_error(m, m.theta)),
        "linear": lambda m: min(
            predict_readout(pooled(m), 2.0, lam).test_error for lam in (0.1, 1.0)
        ),
        "two steps": along_query,
        "message passing": lambda m: predict_learning(m, 2.0).test_error,
        "information": lambda m: predict_learning(m, 2.0, informed=True).test_error,
    }[learner]
    low = 2.0 if learner == "oracle" else 0.97 * needed("oracle", L, None)
    high = 12.0 if learner == "oracle" else 4 + 3 * L**0.25
    low, high = low, 8 * L**0.5 if learner == "linear" else high
    for _ in range(14):
        middle = np.sqrt(low * high)
        above = error(SparseTokens(L, 1, float(middle), 0.5)) > 0.05
        low, high = (middle, high) if above else (low, middle)
    return float(np.sqrt(low * high))
