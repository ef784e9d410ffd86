"""The sign of the query at all rates: thresholds against the cosine itself, tokens and the page."""

import math
from dataclasses import replace

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.steps import sign
from needle.steps.alignment import predict_alignment, simulate_alignment
from needle.steps.rule import step_rule
from needle.steps.sign import sign_condition, sign_intercepts

WEAK = {π: SparseTokens(10, 1, 3.0, π) for π in (0.1, 0.3, 0.7, 0.9)}


@pytest.mark.parametrize("loss", ["logistic", "square", "exponential", "hinge"])
def test_the_cosine_changes_sign_at_the_critical_rate(loss):
    rng = np.random.default_rng(7)
    for _ in range(60):
        L = int(rng.integers(2, 200))
        R = int(rng.integers(1, L))
        model = SparseTokens(
            L, R, float(np.exp(rng.uniform(-1, 3)) / R**0.5), rng.uniform(0.1, 0.9)
        )
        options = {"loss": loss, "lr_w": float(np.exp(rng.uniform(-3, 1)))}
        alpha0, balanced = float(np.exp(rng.uniform(-3, 5))), bool(rng.integers(2))
        options["balanced"] = balanced
        found = sign_condition(model, alpha0, **options)
        rates = [-3.0, 5.0] if balanced else found.rate * np.array([1 - 1e-5, 1 + 1e-5, -1.0, 3.0])
        for lr_b in map(float, rates):
            overlap = predict_alignment(model, alpha0, lr_b=lr_b, **options).query_overlap
            assert (overlap > 0) == found.aligned(lr_b), (model, alpha0, options, lr_b)


def test_the_closed_form_of_the_square_loss():
    """η_c as it is written in the appendix, in other letters."""
    rng = np.random.default_rng(8)
    for _ in range(40):
        L, R, θ, π = (
            int(rng.integers(2, 50)),
            1,
            float(rng.uniform(0.1, 9)),
            float(rng.uniform(0.05, 0.95)),
        )
        η, α0 = float(rng.uniform(0.01, 2)), float(np.exp(rng.uniform(-2, 4)))
        gain, g = θ**2 * R * (L - R) / L, 2 * π - 1
        e, f = η / (α0 * L), η * π * (θ * R) ** 2 / L**2
        top = gain * (2 * (1 - π) * (1 - e) - f) - (L - 1) * f
        closed = (1 - e) + π * top / (g * (gain * π + L - 1))
        rate = sign_condition(SparseTokens(L, R, θ, π), α0, loss="square", lr_w=η).rate
        assert rate == pytest.approx(closed, rel=1e-9, abs=1e-12)


def test_small_rates_are_a_limit():
    for π, model in WEAK.items():
        expected = (math.log(π / (1 - π)) + math.log1p(0.9)) / (π - 0.5)
        assert sign_condition(model, 1.0, lr_w=0.0).rate == pytest.approx(expected, rel=1e-12)
        near = sign_condition(model, 1.0, lr_w=1e-4).rate
        assert near == pytest.approx(expected, rel=1e-3) and near != expected


def test_unlimited_data_are_a_limit():
    for loss in ("logistic", "square", "hinge"):
        far, infinite = (sign_condition(WEAK[0.3], a, loss=loss).rate for a in (1e7, math.inf))
        assert far == pytest.approx(infinite, rel=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "square", "exponential", "hinge"])
def test_many_shares_at_once_are_one_by_one(loss, monkeypatch):
    """And Newton's method on a grid finds what bisection finds by another quadrature."""
    rng, shares = np.random.default_rng(10), np.linspace(0.03, 0.97, 9)
    for k in range(8):
        L, θ = int(rng.integers(2, 200)), float(np.exp(rng.uniform(-1, 3)))
        model = SparseTokens(L, int(rng.integers(1, L)), 400.0 if k == 7 else θ, 0.5)
        alpha0, balanced = float(np.exp(rng.uniform(-3, 5))), bool(k % 2)
        options = {"loss": loss, "lr_w": float(np.exp(rng.uniform(-3, 0))), "balanced": balanced}
        found = sign_intercepts(model, alpha0, shares, **options)
        with monkeypatch.context() as patch:
            patch.setattr(sign, "_WIDEST", -1.0)
            others = [replace(model, pi=float(π)) for π in shares]
            expected = [sign_condition(other, alpha0, **options).intercept for other in others]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_between_classes_far_apart_the_threshold_keeps_its_digits():
    """Positives at 60 and negatives at 0, spread 0.8: half the log-odds beyond halfway."""
    rule, counts = step_rule("logistic", 1.0, 0.0), {1: 0.8, -1: 0.2}
    problem = (rule, counts, counts, {1: 60.0, -1: 0.0}, 0.8)
    middle = -30.0 + math.log(4.0) / 2
    assert sign._intercepts([problem])[0] == pytest.approx(middle, rel=1e-9)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
@pytest.mark.parametrize(
    ("model", "alpha0", "options", "sign"),
    [
        (SparseTokens(10, 1, 3.0, 0.9), 0.2, {"loss": "square", "lr_b": 1.0}, -1),
        (SparseTokens(10, 3, 10.0, 0.5), 5.0, {"loss": "square", "lr_b": 1.0}, -1),
        (SparseTokens(10, 1, 3.0, 0.1), 2.0, {"balanced": True}, 1),
        (SparseTokens(10, 1, 3.0, 0.1), 2.0, {}, -1),
        (SparseTokens(10, 1, 3.0, 0.2), 2.0, {"loss": "exponential", "lr_b": 0.75}, 1),
        (SparseTokens(10, 1, 3.0, 0.2), 2.0, {"loss": "hinge", "lr_w": 2.0}, -1),
    ],
)
def test_tokens_turn_the_way_they_should(model, alpha0, options, sign):
    """Literal steps at two sizes, extrapolated in 1/d: the limit, within four standard errors."""
    rng, limit = np.random.default_rng(9), predict_alignment(model, alpha0, **options).query_cos
    means, errors = [], []
    for d in (60, 120):
        cosines = [
            simulate_alignment(model, d, alpha0, rng, method="dense", **options).query_cos
            for _ in range(60)
        ]
        means.append(np.mean(cosines))
        errors.append(np.std(cosines) / 60**0.5)
    found, error = 2 * means[1] - means[0], np.hypot(2 * errors[1], errors[0])
    assert np.sign(limit) == sign
    assert abs(found - limit) < 4 * error + 0.015
    options = dict(options)
    lr_b = options.pop("lr_b", 0.5)
    assert sign_condition(model, alpha0, **options).aligned(lr_b) == (sign > 0)


def test_a_balanced_loss_is_aligned_at_every_rate_of_the_bias():
    for π, model in WEAK.items():
        found = sign_condition(model, 5.0, lr_w=0.05, balanced=True)
        assert found.balance == 0 and found.rate == math.inf
        cosines = {
            predict_alignment(model, 5.0, lr_b=e, balanced=True).query_cos for e in (-9, 0, 9)
        }
        assert len(cosines) == 1 and min(cosines) > 0, π


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("theta", lambda: sign_condition(SparseTokens(10, 1, 0.0, 0.5), 1.0)),
        ("alpha0", lambda: sign_condition(WEAK[0.1], 0.0)),
        ("lr_w", lambda: sign_condition(WEAK[0.1], 1.0, lr_w=-1.0)),
        ("loss", lambda: sign_condition(WEAK[0.1], 1.0, loss="cube")),
        ("shares", lambda: sign_intercepts(WEAK[0.1], 1.0, [0.5, 1.0])),
        ("balanced", lambda: sign_intercepts(WEAK[0.1], 1.0, [0.5], balanced=2)),
        ("balanced", lambda: sign_condition(WEAK[0.1], 1.0, balanced=0.5)),
        ("lr_b", lambda: sign_condition(WEAK[0.1], 1.0).aligned(math.nan)),
        ("loss", lambda: predict_alignment(WEAK[0.1], 1.0, loss="exponential", lr_b=1e6)),
    ],
)
def test_bad_input_is_named(name, call):
    with pytest.raises(ValueError, match=f"^{name} = "):
        call()
