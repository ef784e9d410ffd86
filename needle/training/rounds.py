"""More than two steps: rounds of gradient steps on readout and query, on fresh data or the same.

The literal recipe is unstable from the third step on, since the length of the query runs away.
Here a step only turns: the intercept is solved so that the pulls γ̄ = y₊ − n₊/n
add up to zero, as at the start, and the query is set back to sharpness T. A round is

- "readout": w = Σ γ̄_i X_iᵀ s_i with s = softmax(Xq), then q = T w/|w|; one step;
- "repeat": the same w, then q = T × the direction of Σ γ̄_i X_iᵀ (s_i∘(X_i w − ⟨s_i, X_i w⟩)); two.

The first round of "repeat" from q = 0 is the two steps of Chapter 4 with a calibrated intercept and
vanishing rates. With fresh bags in every step each direction is a mean in the span of ξ, q and w
plus noise, and its products follow from expectations over one bag (`needle.training.flow`).
Chapter 8, prop-8-rounds.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import softmax

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_choice, check_flag, check_integer, check_real, check_rng
from .flow import Cloud, State, bags, frame_of, products, sample_cloud

__all__ = ["predict_rounds", "simulate_rounds"]

Array = np.ndarray
KINDS = ("readout", "repeat")
_BITS, _ENTRIES, _BLOCK = 12, 2**22, 2**22


def _direction(
    model: SparseTokens, cloud: Cloud, state: State, alpha: float, names: tuple[str, ...],
    square: str,
) -> tuple[Array, float]:  # fmt: skip
    """Products of a step with ξ, q and w (`names`), and its squared length, at mean pull 0."""
    frame, along, noise = frame_of(state), np.zeros(len(names)), 0.0
    for bag in bags(model, cloud, frame.size, state.query):
        θ, pull = model.theta * (bag.y > 0), (bag.y > 0) - model.pi
        height = {"xi": θ, "q": θ * state.query, "w": θ * state.readout}
        found = products(bag, frame, height)

        def mean(name: str, found: dict = found) -> float:
            constant, *rest = found[name]  # the means of 1, e and e² are 1, 0 and 1
            return float(np.mean(constant) + (np.mean(rest[1]) if len(rest) > 1 else 0.0))

        along += bag.share * pull * np.array([mean(name) for name in names])
        noise += bag.share * pull**2 * mean(square) / alpha
    gram = np.array([
        [1.0, state.query, state.readout],
        [state.query, state.query_square, state.overlap],
        [state.readout, state.overlap, state.readout_square],
    ])[: len(names), : len(names)]  # fmt: skip
    return along, float(along @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ along) + noise


def predict_rounds(
    model: SparseTokens, alpha: float, rounds: int, *, kind: str = "repeat", sharpness: float = 1.0
) -> Array:
    """The cosine of the query with ξ after each round, with alpha·d fresh bags in every step.

    Parameters
    ----------
    model, rounds : the tokens, and how many rounds
    alpha : bags of one step over d; a round is one step ("readout") or two ("repeat")
    kind, sharpness : the kind of round, and T > 0

    Examples
    --------
    >>> model = SparseTokens(L=50, R=1, theta=6.0, pi=0.5)
    >>> predict_rounds(model, 0.5, 4, kind="readout").round(2)
    array([0.29, 0.65, 0.91, 0.93])
    """
    model, T = check_model(model), check_real("sharpness", sharpness, 0, open_low=True)
    alpha = check_real("alpha", alpha, 0, open_low=True)
    rounds, kind = check_integer("rounds", rounds, 1), check_choice("kind", kind, KINDS)
    bits = min(_BITS, int(math.log2(_ENTRIES / model.L)))
    cloud, cos, path, size = sample_cloud(model, bits, 0), 0.0, [], 0.0
    for _ in range(rounds):
        state = State(size * cos, 0.0, size**2, 1.0, 0.0, 0.0)
        along, square = _direction(model, cloud, state, alpha, ("s·h", "s·u"), "s·s")
        along = along / math.sqrt(square)
        if kind == "repeat":
            state = State(size * cos, along[0], size**2, 1.0, along[1], 0.0)
            names = ("k·h", "k·u", "k·v")
            along, square = _direction(model, cloud, state, alpha, names, "k·k")
            along = along / math.sqrt(square)
        cos, size = float(along[0]), T
        path.append(cos)
    return np.array(path)


def simulate_rounds(
    model: SparseTokens,
    d: int,
    alpha: float,
    rounds: int,
    rng: np.random.Generator,
    *,
    kind: str = "repeat",
    sharpness: float = 1.0,
    fresh: bool = False,
) -> Array:
    """The cosine of the query with ξ after each round on literal tokens.

    Without `fresh` all steps read the same round(alpha·d) bags, held in memory; with it every step
    draws as many new ones.

    Examples
    --------
    >>> model, rng = SparseTokens(L=50, R=1, theta=6.0, pi=0.5), np.random.default_rng(0)
    >>> simulate_rounds(model, 200, 1.0, 4, rng, kind="readout").round(1)
    array([0.3, 0.8, 1. , 1. ])
    """
    model, T = check_model(model), check_real("sharpness", sharpness, 0, open_low=True)
    rng, fresh = check_rng(rng), check_flag("fresh", fresh)
    rounds, kind = check_integer("rounds", rounds, 1), check_choice("kind", kind, KINDS)
    d = check_integer("d", d, 2)
    n = max(2, round(check_real("alpha", alpha, 0, open_low=True) * d))
    q, path = np.zeros(d), []
    X, y, _ = model.sample(n, d, rng)
    for _ in range(rounds):
        w = _collect(X, y, q, None)
        w /= np.linalg.norm(w) or 1.0  # bags of one class teach nothing: cosine 0
        step = w
        if fresh:
            X, y, _ = model.sample(n, d, rng)
        if kind == "repeat":
            step = _collect(X, y, q, w)
            if fresh:
                X, y, _ = model.sample(n, d, rng)
        q = T * step / (np.linalg.norm(step) or 1.0)
        path.append(q[0] / T)
    return np.array(path)


def _collect(X: Array, y: Array, q: Array, w: Array | None) -> Array:
    """Σ γ̄ Xᵀs, or with a readout Σ γ̄ Xᵀ(s∘(Xw − ⟨s, Xw⟩)); block by block."""
    pull, total = (y > 0) - np.mean(y > 0), np.zeros(X.shape[2])
    size = max(1, _BLOCK // (X.shape[1] * X.shape[2]))
    for first in range(0, len(y), size):
        tokens, weight = X[first : first + size], pull[first : first + size, None]
        marks = softmax(tokens @ q, axis=1)
        if w is not None:
            v = tokens @ w
            marks = marks * (v - np.einsum("nl,nl->n", marks, v)[:, None])
        total += (weight * marks).ravel() @ tokens.reshape(-1, X.shape[2])
    return total
