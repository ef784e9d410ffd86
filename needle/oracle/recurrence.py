"""Recurrences over tokens: what a linear state can see, and what a gate adds.

A linear state-space layer, of any dimension and depth, ends in a score Σ⟨W_ℓ, x_ℓ⟩ + b: a
vectorized classifier. With a gate 0 ≤ g_ℓ ≤ 1 that looks at the token,

    m_ℓ = (1 − g_ℓ) m_{ℓ−1} + g_ℓ x_ℓ,   m_L = Σ s_ℓ x_ℓ,   s_ℓ = g_ℓ Π_{k>ℓ}(1 − g_k).

With one more number Σ_{k≤ℓ}e^{u_k} in its state, g_ℓ = e^{u_ℓ}/Σ_{k≤ℓ}e^{u_k} makes s = softmax(u).
Chapter 11, prop-11-linear and prop-11-gate.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, log_expit

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_array, check_choice, check_integer, check_real, check_rng
from .rules import best_threshold

Array = np.ndarray
GATES = ("softmax", "sigmoid", "linear")
_BLOCK = 2**22  # tokens drawn in one go


def gated_weights(gates: Array) -> Array:
    """s_ℓ = g_ℓ Π_{k>ℓ}(1 − g_k) of gates (n, L); what is missing to 1 stays on the start m₀ = 0.

    >>> gated_weights([[0.5, 0.5, 0.5], [1.0, 0.0, 0.0]]).tolist()
    [[0.125, 0.25, 0.5], [1.0, 0.0, 0.0]]
    """
    g = check_array("gates", gates, "n", "L")
    if g.min() < 0 or g.max() > 1:
        worst = float(g.flat[np.argmax(np.abs(g - 0.5))])
        raise ValueError(f"gates with {worst:g} are not allowed: gates must lie in [0, 1]")
    kept = np.cumprod((1 - g)[:, :0:-1], axis=1)[:, ::-1]
    return g * np.concatenate([kept, np.ones((len(g), 1))], axis=1)


def softmax_gates(u: Array) -> Array:
    """g_ℓ = e^{u_ℓ}/Σ_{k≤ℓ}e^{u_k}, one pass over logits (n, L) that never overflows.

    >>> from scipy.special import softmax
    >>> u = np.array([[1.0, -2.0, 800.0, 799.0]])
    >>> np.allclose(gated_weights(softmax_gates(u)), softmax(u, axis=1))
    True
    """
    u = check_array("u", u, "n", "L")
    total, gates = np.full(len(u), -np.inf), np.empty_like(u)
    for k, column in enumerate(u.T):
        total = np.logaddexp(total, column)
        gates[:, k] = np.exp(column - total)
    return gates


def recurrence_error(
    model: SparseTokens,
    gate: str,
    rng: np.random.Generator,
    *,
    slope: float = 4.0,
    threshold: float | None = None,
    trials: int = 4000,
) -> float:
    """Test error of a recurrence that sees h_ℓ = ⟨x_ℓ, ξ⟩, with the best threshold on its score.

    Parameters
    ----------
    gate : "softmax" at sharpness `slope`; "sigmoid", g = σ(slope·(h − threshold)), which
        forgets as it writes; "linear", g = 1/ℓ whatever the token (the mean)
    threshold : of the sigmoid gate; default √(2 log L)
    trials : bags of each class, half to choose the threshold on the score, half to judge

    Examples
    --------
    >>> model = SparseTokens(L=100, R=1, theta=5.0, pi=0.5)
    >>> for gate in ("linear", "sigmoid", "softmax"):
    ...     print(f"{gate}: {recurrence_error(model, gate, np.random.default_rng(0)):.2f}")
    linear: 0.41
    sigmoid: 0.05
    softmax: 0.04
    """
    m, rng = check_model(model), check_rng(rng)
    check_choice("gate", gate, GATES)
    slope = check_real("slope", slope, 0, open_low=True)
    t = math.sqrt(2 * math.log(m.L)) if threshold is None else check_real("threshold", threshold)
    trials = check_integer("trials", trials, 4)
    parts = []
    step = max(1, _BLOCK // m.L)
    for label in (1, -1):
        found = []
        for start in range(0, trials, step):
            h = rng.standard_normal((min(step, trials - start), m.L))
            if label > 0:
                rows = np.arange(len(h))[:, None]
                h[rows, np.argsort(rng.random((len(h), m.L)), axis=1)[:, : m.R]] += m.theta
            found.append(_state(h, gate, slope, t))
        parts.append(np.concatenate(found))
    half, wrong = trials // 2, []
    for choose, test in (slice(0, half), slice(half, None)), (slice(half, None), slice(0, half)):
        S = np.concatenate([part[choose] for part in parts])
        cost = np.repeat([m.pi, m.pi - 1], [len(part[choose]) for part in parts])
        best = best_threshold(S, cost)[1]
        miss, alarm = np.mean(parts[0][test] <= best), np.mean(parts[1][test] > best)
        wrong.append(m.pi * miss + (1 - m.pi) * alarm)
    return float(np.mean(wrong))


def _state(h: Array, gate: str, slope: float, t: float) -> Array:
    """⟨m_L, ξ⟩ of projections (n, L)."""
    if gate == "linear":
        return np.asarray(h.mean(axis=1))
    if gate == "softmax":
        weight = np.exp(slope * (h - h.max(axis=1, keepdims=True)))
        return np.asarray((weight * h).sum(axis=1) / weight.sum(axis=1))
    u = slope * (h - t)
    kept = np.cumsum(log_expit(-u)[:, ::-1], axis=1)[:, ::-1]
    later = np.concatenate([kept[:, 1:], np.zeros((len(h), 1))], axis=1)
    return np.asarray((expit(u) * np.exp(later) * h).sum(axis=1))
