"""The heavy runs of Chapter 11: long bags, other lengths, other noise, more heads, more layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import softmax

from experiments.depth import scores, train
from needle.data.classifiers import attention
from needle.data.tokens import SparseTokens
from needle.learning import simulate_guessing, simulate_learning
from needle.oracle.heads import sample_signed, second_moment_query
from needle.readout.fit import fit_readout, simulate_readout
from needle.readout.lengths import RULES, rescaled
from needle.steps.alignment import simulate_alignment
from needle.steps.colored import TokenNoise, predict_noisy_alignment, sample_bags, whiten
from needle.steps.rule import two_steps
from needle.training.relay import simulate_relay

NOISES: dict[str, dict[str, Any]] = {
    "white": {},
    "correlated": {"noise": TokenNoise(decay=0.5)},
    "strongly correlated": {"noise": TokenNoise(decay=0.8)},
    "t6 sizes": {"noise": TokenNoise(freedom=6.0)},
    "t3 sizes": {"noise": TokenNoise(freedom=3.0)},
    "t6 coordinates": {"noise": TokenNoise(freedom=6.0, heavy="coordinate")},
    "t3 coordinates": {"noise": TokenNoise(freedom=3.0, heavy="coordinate")},
    "two directions": {"directions": 2},
    "random R": {"counts": np.array([0, 1, 1, 2])},
}


def attend(X: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Features Xᵀ softmax(Xq) of literal tokens."""
    return np.einsum("nl,nld->nd", softmax(X @ query, axis=1), X)


def normalize(X: np.ndarray) -> np.ndarray:
    """Tokens x√d/|x|."""
    return X * (math.sqrt(X.shape[2]) / np.linalg.norm(X, axis=2, keepdims=True))


def _wrong(fit: Any, F: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((F @ fit.w + fit.b > 0) != (y > 0)))


def long_errors(L: int, lr_b: float, d: int, rng: np.random.Generator) -> dict[str, float]:
    """Two steps and a readout at α₀ = α₁ = 2, θ⁴ = 3L√(2 log L)/(α₀π²), sharpness √(2 log L)."""
    model = SparseTokens(L, 1, (6 * L * math.sqrt(2 * math.log(L))) ** 0.25, 0.5)
    cos = simulate_alignment(model, d, 2.0, rng, lr_b=lr_b).query_cos
    law = attention(model, temperature=math.sqrt(2 * math.log(L)), cos=cos)
    found = simulate_readout(law, d, 2.0, 0.1, rng)
    return {"cos": cos, "flipped": float(cos < 0), "error": found.test_error}


def flips(L: int, lr_b: float, d: int, rng: np.random.Generator) -> dict[str, float]:
    """The query alone of `long_errors`, which is cheap: how often is it reversed?"""
    model = SparseTokens(L, 1, (6 * L * math.sqrt(2 * math.log(L))) ** 0.25, 0.5)
    cos = simulate_alignment(model, d, 2.0, rng, lr_b=lr_b).query_cos
    return {"cos": cos, "flipped": float(cos < 0)}


def with_norms(L: int, theta: float, norms: int, rng: np.random.Generator) -> dict[str, float]:
    """Message passing on literal tokens 100 wide, α = 1, with or without norms."""
    model = SparseTokens(L, 1, theta, 0.5)
    found = simulate_learning(model, 100, 1.0, rng, norms=bool(norms), fresh=400_000)
    return {"cos": found.cos, "error": found.test_error}


def guessed(alpha: float, rng: np.random.Generator) -> dict[str, float]:
    """L = 4000, θ = 5.3, d = 200: from nothing, from guesses in three bags, from the truth."""
    model, seed = SparseTokens(4000, 1, 5.3, 0.5), int(rng.integers(2**32))
    found = {
        name: simulate_learning(
            model, 200, alpha, np.random.default_rng(seed), informed=informed, norms=True, fresh=1
        ).cos
        for name, informed in (("nothing", False), ("truth", True))
    }
    again = np.random.default_rng(seed)  # the same bags
    found["guesses"] = simulate_guessing(model, 200, alpha, again, bags=3, fresh=1).cos
    return {name: float(cos > 0.7) for name, cos in found.items()}


def rules(T: float, L: int, rng: np.random.Generator, d: int = 60) -> dict[str, float]:
    """Literal tokens: trained at 20 tokens (s_q = .9, α = 4, λ = .01), tested at L, all rules.

    "… rate": with the intercept moved until half of 400 fresh bags are called positive.
    """
    short, long = SparseTokens(20, 1, 5.0, 0.5), SparseTokens(L, 1, 5.0, 0.5)
    q = np.zeros(d)
    q[:2] = 0.9, math.sqrt(1 - 0.81)
    X, y, _ = short.sample(4 * d, d, rng)
    fit = fit_readout(attend(X, T * q), y, 0.01)
    found = {}
    one, two = (long.sample(400, d, rng)[:2] for _ in range(2))
    for rule in RULES:
        sharp = rescaled(T, 20, L, rule=rule)
        z, other = (attend(X, sharp * q) @ fit.w + fit.b for X, _ in (one, two))
        found[rule] = float(np.mean((z > 0) != (one[1] > 0)))
        level = np.quantile(other, 0.5)
        found[f"{rule}, rate"] = float(np.mean((z > level) != (one[1] > 0)))
    return found


def relay(n: int, rng: np.random.Generator) -> dict[str, float]:
    """Two hops learned by three gradient steps: L = 20, m = 20, θ = (5, 5, 3), κ = 5."""
    found = simulate_relay(20, 20, n, rng, theta=(5, 5, 3), kappa=5, fresh=2000)
    return {name: float(value) for name, value in vars(found).items()}


def noise_cosine(noise: str, d: int, rng: np.random.Generator) -> dict[str, float]:
    """Cosine of the two-step query (L = 100, θ = 6, α₀ = 2, η_b = 4) minus its prediction."""
    model, law = SparseTokens(100, 1, 6.0, 0.5), NOISES[noise]
    X, y, _ = sample_bags(model, 2 * d, d, rng, **law)
    fourth = None
    if "coordinates" in noise:  # the sample's own: (E z⁴ − 3)/d is the share of single coordinates
        fourth = 1 + max(0.0, float((X**4).mean()) - 3) / d
    elif "sizes" in noise:
        fourth = max(1.0, float(((X**2).mean(axis=2) ** 2).mean()) / (1 + 2 / d))
    predicted = predict_noisy_alignment(model, d, 2.0, lr_b=4.0, fourth=fourth, **law).query_cos
    query = two_steps(X, y, lr_b=4.0).q
    cos = float(query.sum() / math.sqrt(d) / np.linalg.norm(query))
    return {"cos": cos, "predicted": predicted, "gap": cos - predicted}


def noise_errors(noise: str, rng: np.random.Generator, d: int = 60) -> dict[str, float]:
    """Test errors on literal tokens, L = 50, θ = 6, α = 4 in all, logistic loss, λ = .1.

    "attention": two steps on half (η_b = 4), readout on the other half, T = 2; "pooled": all data;
    "whitened" and "normalized": attention after Σ̂^{−1/2} of the negatives, or x√d/|x|.
    """
    model, law = SparseTokens(50, 1, 6.0, 0.5), NOISES[noise]
    X, y, _ = sample_bags(model, 4 * d, d, rng, **law)
    fresh, truth, _ = sample_bags(model, 1000, d, rng, **law)
    root = whiten(X, y)[1]
    half, errors = 2 * d, {}
    for name, act in {
        "attention": lambda X: X, "whitened": lambda X: X @ root, "normalized": normalize,
    }.items():  # fmt: skip
        A, B = act(X), act(fresh)
        query = two_steps(A[:half], y[:half], lr_b=4.0).q
        query *= 2 / np.linalg.norm(query)
        fit = fit_readout(attend(A[half:], query), y[half:], 0.1)
        errors[name] = _wrong(fit, attend(B, query), truth)
    fit = fit_readout(X.mean(axis=1), y, 0.1)
    return {**errors, "pooled": _wrong(fit, fresh.mean(axis=1), truth)}


def signed(theta: float, rng: np.random.Generator, d: int = 60, L: int = 50) -> dict[str, float]:
    """Needles of both signs, α = 4 in all, all data used twice; T = 2, λ = .1, logistic loss."""
    model = SparseTokens(L, 1, theta, 0.5)
    X, y, _ = sample_signed(model, 4 * d, d, rng)
    fresh, truth, _ = sample_signed(model, 1000, d, rng)
    leading, step = second_moment_query(X, y), two_steps(X, y, lr_b=4.0).q
    step /= np.linalg.norm(step)
    views = {
        "pooled": lambda X: X.mean(axis=1),
        "two steps": lambda X: attend(X, 2 * step),
        "one head": lambda X: attend(X, 2 * leading),
        "two heads": lambda X: np.hstack([attend(X, 2 * leading), attend(X, -2 * leading)]),
    }
    errors = {
        name: _wrong(fit_readout(view(X), y, 0.1), view(fresh), truth)
        for name, view in views.items()
    }
    alone = second_moment_query(X, y, positives=True)
    squares = {"cos2": float(leading[0] ** 2), "cos2 of positives": float(alone[0] ** 2)}
    return squares | errors


def depth(
    kind: str, R: int, theta: float, alpha: float, lam: float, rng: np.random.Generator
) -> dict[str, float]:
    """A network trained end to end on αd bags of 20 tokens in d = 40; fresh literal tokens."""
    d, model = 40, SparseTokens(20, R, theta, 0.5)
    X, y, _ = model.sample(round(alpha * d), d, rng)
    found = train(kind, X, y, lam, rng, starts=2)
    fresh, truth, _ = model.sample(2000, d, rng)
    wrong = np.mean((scores(kind, found.parameters, fresh) > 0) != (truth > 0))
    extra = {"u": float(found.parameters[-2])} if kind == "two layers" else {}
    return {"error": float(wrong), "train_loss": found.train_loss, **extra}
