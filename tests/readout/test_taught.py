"""The width of the transition behind a query that has seen the data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr, softmax

from needle.data.tokens import SparseTokens
from needle.kit.records import ConvergenceError
from needle.readout import taught
from needle.readout.taught import predict_reused_capacity_width, simulate_reused_repair
from needle.steps.alignment import predict_alignment
from needle.steps.rule import step_rule, two_steps
from utils.results import stored

WEAK, FEW = SparseTokens(10, 1, 3.0, 0.5), SparseTokens(5, 1, 2.0, 0.3)


def repair_on_tokens(model, d, alpha, rng, T):
    """The same draw with every token in memory, and its saddle by another optimizer."""
    n, L = round(alpha * d), model.L
    X, y, _ = model.sample(n, d, rng)
    w, b, q = two_steps(X, y)
    means = X.mean(axis=1) @ w + b
    pull = -step_rule().gradient(means, y)
    first = np.repeat(step_rule().gradient(np.zeros(n), y) / L, L)
    second = (pull[:, None] * (X @ w - (X @ w).mean(axis=1, keepdims=True))).ravel()
    B, _ = np.linalg.qr(np.column_stack([first, second]))
    E, _ = np.linalg.qr(np.column_stack([np.eye(d)[0], w, q]))
    norm = predict_alignment(model, alpha).query_norm
    s = softmax(T / norm * (X @ q), axis=1)
    noise = rng.standard_normal(n * L)
    noise -= B @ (B.T @ noise)
    unit = y / np.linalg.norm(s, axis=1)
    h = np.einsum("nl,nl->n", s, noise.reshape(n, L)) * unit
    c = np.einsum("nl,nld->nd", s, X @ E) * unit[:, None]
    k = np.einsum("nl,nlk->nk", s, B.reshape(n, L, 2)) * unit[:, None]
    return h, np.column_stack([c, unit]), k


@pytest.mark.slow
@pytest.mark.false_alarm(2e-4)
def test_draws_in_three_directions_are_those_of_tokens():
    """500 repairs each at d = 40; without what the steps have taken out they are refused."""
    rng, others = np.random.default_rng(1), [np.random.default_rng([2, k]) for k in range(500)]
    drawn = [simulate_reused_repair(FEW, 40, 2.6, rng, temperature=3.0) for _ in range(2000)]
    parts = [repair_on_tokens(FEW, 40, 2.6, other, 3.0) for other in others]
    literal = [taught._saddle(*part) / 37 for part in parts]
    assert abs(gap(drawn, literal)) < 4
    unmarked = [taught._saddle(h, X, 0 * K) / 37 for h, X, K in parts]
    assert abs(gap(drawn, unmarked)) > 6


def gap(a, b):
    """Difference of two means in standard errors."""
    error = math.sqrt(np.var(a, ddof=1) / len(a) + np.var(b, ddof=1) / len(b))
    return (np.mean(a) - np.mean(b)) / error


def test_the_repair_is_the_minimum_of_a_maximum():
    h, X, K = repair_on_tokens(FEW, 20, 2.5, np.random.default_rng(3), 3.0)

    def value(beta, inner):
        left = np.maximum(h - X @ beta + K @ inner, 0)
        return left @ left - inner @ inner

    def worst(beta):
        return -minimize(lambda inner: -value(beta, inner), np.zeros(2), tol=1e-10).fun

    best = minimize(worst, np.zeros(4), method="BFGS", options={"gtol": 1e-6})
    assert taught._saddle(h, X, K) == pytest.approx(best.fun, rel=1e-5)


def slope_of_shares(L, d):
    """log σ of a probit curve through stored shares of separable data sets, and its error."""
    found = [(p["alpha"], x["reused"]) for p, x in stored("again-capacity").at(L=L, d=d)]
    alpha, share = np.array([(a, float(x)) for a, x in found]).T
    trials = found[0][1].trials

    def loss(v):
        t = (v[0] - alpha) * math.exp(-v[1])
        return -trials * np.sum(share * log_ndtr(t) + (1 - share) * log_ndtr(-t))

    fit = minimize(loss, [alpha.mean(), -1.0], method="BFGS")
    return fit.x[1] + math.log(d) / 2, math.sqrt(fit.hess_inv[1, 1])


@pytest.mark.slow
@pytest.mark.false_alarm(2e-4)
def test_shares_of_separable_data_sets_fall_as_wide_as_it_says():
    """Three settings on tokens at d = 150 and 60: a width a quarter off is refused."""
    gaps, weights = [], []
    for model, T in ((WEAK, 2.0), (FEW, 3.0), (SparseTokens(20, 2, 2.5, 0.6), 2.0)):
        width = predict_reused_capacity_width(model, temperature=T, d=150)
        for d in (60, 150):
            seen, error = slope_of_shares(model.L, d)
            gaps.append(seen - math.log(width))
            weights.append(1 / (error**2 + (width.standard_error / width) ** 2))
    error = 1 / math.sqrt(sum(weights))
    mean = np.dot(gaps, weights) * error**2
    print(f"log of measured over predicted width: {mean:.3f} ± {error:.3f}", np.round(gaps, 2))
    assert abs(mean) < 3.8 * error
    assert math.log(5 / 4) > 3.8 * error


@pytest.mark.slow
@pytest.mark.false_alarm(2e-4)
def test_a_width_says_its_own_error(monkeypatch):
    """Twelve of them, at a capacity and slope that are given, scatter as stated."""
    monkeypatch.setattr(taught, "predict_reused_capacity", lambda *_, **__: 2.64)
    monkeypatch.setattr(taught, "log_excess", lambda _, log, **__: 1.35 * log)
    found = [
        predict_reused_capacity_width(FEW, temperature=3.0, d=100, draws=100, seed=k)
        for k in range(12)
    ]
    stated = np.mean([one.standard_error for one in found])
    assert 0.4 < np.std(found, ddof=1) / stated < 1.9


def test_too_few_draws_are_refused(monkeypatch):
    monkeypatch.setattr(taught, "simulate_reused_repair", lambda *_, **__: 1.0)
    with pytest.raises(ConvergenceError, match="take more draws"):
        predict_reused_capacity_width(FEW, temperature=3.0, draws=20)
