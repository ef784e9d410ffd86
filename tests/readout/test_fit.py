"""Readouts: closed forms and optimality conditions, against scikit-learn and known limits."""

import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge

from needle.data.classifiers import attention, gaussian_mixture, pooled
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.kit.losses import get_loss
from needle.kit.records import ConvergenceError
from needle.readout.fit import error_rate, fit_readout, simulate_readout
from needle.readout.limit import predict_readout
from utils.agreement import AgreementError, agree

LAW = attention(SparseTokens(10, 1, 3.0, 0.4), temperature=1.5, cos=0.8)


def draw(n, p, seed=0):
    return LAW.sample(n, p, np.random.default_rng(seed))


def gradient(F, y, lam, fit, loss, intercept):
    pull = get_loss(loss).first(F @ fit.w + fit.b, y) / len(y)
    return np.append(F.T @ pull + lam * fit.w, pull.sum() if intercept else 0.0)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["square", "logistic"]), st.booleans(), st.integers(20, 60), st.integers(2, 80),
    st.floats(-4, 1).map(lambda e: 10.0**e), st.integers(0, 9),
)  # fmt: skip
def test_fits_are_stationary(loss, intercept, n, p, lam, seed):
    F, y = draw(n, p, seed)
    fit = fit_readout(F, y, lam, loss=loss, intercept=intercept)
    assert np.linalg.norm(gradient(F, y, lam, fit, loss, intercept)) <= 1e-8
    assert intercept or fit.b == 0
    z = F @ fit.w + fit.b
    assert fit.train_loss == pytest.approx(get_loss(loss).value(z, y).mean())
    assert fit.train_error == np.mean(y * z <= 0)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "p"), [(100, 30), (30, 100), (50, 50)])
def test_ridge_agrees_with_scikit_learn(n, p, intercept):
    F, y = draw(n, p)
    theirs = Ridge(alpha=0.02 * n, fit_intercept=intercept).fit(F, y)
    ours = fit_readout(F, y, 0.02, loss="square", intercept=intercept)
    assert np.allclose(ours.w, theirs.coef_, atol=1e-9)
    assert ours.b == pytest.approx(theirs.intercept_, abs=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "p"), [(100, 30), (30, 100), (50, 50), (51, 50)])
def test_ridgeless_is_the_least_norm_solution(n, p, intercept):
    F, y = draw(n, p)
    F, y = np.concatenate([F, F[:5]]), np.concatenate([y, y[:5]])  # five rows appear twice
    fit = fit_readout(F, y, 0.0, loss="square", intercept=intercept)
    centre, mean = (F.mean(axis=0), y.mean()) if intercept else (0.0, 0.0)
    assert np.allclose(fit.w, np.linalg.pinv(F - centre, rcond=1e-10) @ (y - mean), atol=1e-7)


def test_ridgeless_survives_repeated_columns():
    F, y = draw(60, 5)
    fit = fit_readout(np.hstack([F, F]), y, 0.0, loss="square")
    single = fit_readout(F, y, 0.0, loss="square")
    assert np.allclose(fit.w, np.tile(single.w / 2, 2), atol=1e-9)
    assert fit.b == pytest.approx(single.b)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "p", "lam"), [(200, 30, 1e-3), (40, 100, 1e-2), (300, 10, 0.0)])
def test_logistic_agrees_with_scikit_learn(n, p, lam, intercept):
    F, y = draw(n, p)
    strength = 1 / (n * lam) if lam else np.inf
    theirs = LogisticRegression(
        C=strength, solver="newton-cholesky", tol=1e-10, fit_intercept=intercept
    ).fit(F, y)
    ours = fit_readout(F, y, lam, intercept=intercept)
    assert np.allclose(ours.w, theirs.coef_[0], atol=1e-5)
    assert ours.b == pytest.approx(theirs.intercept_[0] if intercept else 0.0, abs=1e-5)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_flipping_labels_or_features_flips_the_readout(loss):
    F, y = draw(80, 20)
    fit, flipped = fit_readout(F, y, 0.1, loss=loss), fit_readout(F, -y, 0.1, loss=loss)
    mirrored = fit_readout(-F, y, 0.1, loss=loss)
    assert np.allclose(fit.w, -flipped.w, atol=1e-6) and fit.b == pytest.approx(
        -flipped.b, abs=1e-6
    )
    assert np.allclose(fit.w, -mirrored.w, atol=1e-6) and fit.b == pytest.approx(
        mirrored.b, abs=1e-6
    )


@pytest.mark.parametrize("lam", [1e-6, 1e-9, 1e-12])
def test_tiny_penalties_are_solved_to_the_minimiser_not_to_a_flat_spot(lam):
    F, y = draw(60, 60)
    fit = fit_readout(F, y, lam)
    size = np.linalg.norm(gradient(F, y, lam, fit, "logistic", True))
    assert size <= max(1e-2 * lam, 1e-14)


def test_separable_data_without_penalty_are_refused_as_theory_refuses_them():
    F, y = draw(30, 100)
    with pytest.raises(ConvergenceError, match="separable; take a larger lam") as caught:
        fit_readout(F, y, 0.0)
    fit = caught.value.estimate
    assert np.all(y * (F @ fit.w + fit.b) > 0) and not fit.converged
    with pytest.raises(ConvergenceError, match="separable; take a larger lam"):
        predict_readout(LAW, 0.5, 0.0)
    fit_readout(F, y, 0.0, loss="square")


def test_one_class():
    F, _ = draw(30, 5)
    y = np.ones(30, dtype=int)
    with pytest.raises(ValueError, match="y must contain both labels"):
        fit_readout(F, y, 0.1)
    assert np.linalg.norm(fit_readout(F, y, 0.1, intercept=False).w) > 0
    fit = fit_readout(F, y, 0.1, loss="square")
    assert np.allclose(fit.w, 0) and fit.b == pytest.approx(1.0)


def test_error_rate_of_constant_readouts():
    zero = np.zeros(4)
    rng = np.random.default_rng(0)
    assert error_rate(LAW, zero, 1.0, rng) == pytest.approx(0.6)
    assert error_rate(LAW, zero, -1.0, rng) == pytest.approx(0.4)
    assert error_rate(LAW, zero, 0.0, rng) == pytest.approx(1.0)  # no answer is a wrong answer
    with pytest.raises(ValueError, match="rng = None is not allowed"):
        error_rate(LAW, zero, 1.0)


@pytest.mark.false_alarm(1e-5)
@pytest.mark.parametrize(
    ("loss", "variance", "lam", "alpha", "exact"),
    [
        ("square", 1.0, 0.0, 2.0, 0.28185143),
        ("square", 1.0, 1e4, 2.0, 0.20710809),
        ("logistic", 0.5, 0.01 / 3, 3.0, 0.13102337),
    ],
)
def test_balanced_mixtures_reach_their_published_errors(loss, variance, lam, alpha, exact):
    """40 trials at d = 400; half a 1/d is left for finite size, 5 standard errors for chance."""
    law = gaussian_mixture(var_pos=variance, var_neg=variance)
    errors = [
        simulate_readout(
            law, 400, alpha, lam, np.random.default_rng(seed), loss=loss, intercept=False
        ).test_error
        for seed in range(40)
    ]
    spread = np.std(errors, ddof=1) / np.sqrt(len(errors))
    allowed = 5 * spread + 0.5 / 400
    assert abs(np.mean(errors) - exact) < allowed < abs(np.mean(errors) - 1.1 * exact)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-5)
def test_simulated_errors_do_not_use_the_nodes_of_the_theory():
    """24 readouts against theory; with r or a of the nodes 5 % off it is refused."""
    model = SparseTokens(10, 1, 3.0, 0.4)
    law = attention(model, temperature=1.5, cos=0.8)
    trials = [
        simulate_readout(law, 600, 3.0, 0.05, np.random.default_rng([5, k])).test_error
        for k in range(24)
    ]
    nodes = law.nodes
    for change in {}, {"r": 1.05 * nodes.r}, {"r": 0.95 * nodes.r}, {"a": 0.95 * nodes.a}:
        law.__dict__["nodes"] = nodes._replace(**change)
        theory = predict_readout(law, 3.0, 0.05).test_error
        with pytest.raises(AgreementError) if change else nullcontext():
            agree(theory, trials, claim="fresh-coefficients", false_alarm=1e-5)


@pytest.mark.false_alarm(1e-5)
def test_the_error_rate_is_unbiased():
    """The mean of 200 rates against counting 400,000 scores; 5 % off is refused."""
    w, b, rng = np.array([0.8, 0.3, -0.4]), -0.6, np.random.default_rng(6)
    rates = np.array([error_rate(LAW, w, b, rng) for _ in range(200)])
    F, y = LAW.sample(400_000, 3, rng)
    counted = np.mean(y * (F @ w + b) <= 0)
    error = np.hypot(rates.std() / 200**0.5, (counted * (1 - counted) / 400_000) ** 0.5)
    assert abs(rates.mean() - counted) < 4.5 * error
    assert 0.05 * counted > 9 * error


def test_a_readout_that_says_nothing_is_wrong():
    assert fit_readout(np.zeros((4, 2)), [1, -1, 1, 1], 0.1, loss="square", intercept=False)[3] == 1


@pytest.mark.parametrize("loss", ["square", "logistic"])
@pytest.mark.parametrize("make", [pooled, vectorized])
def test_records_describe_the_fit_they_come_from(loss, make):
    law = make(SparseTokens(5, 1, 3.0, 0.4))
    record = simulate_readout(law, 20, 3.0, 0.1, np.random.default_rng(7), loss=loss)
    F, y = law.sample(60, 20, np.random.default_rng(7))
    fit = fit_readout(F, y, 0.1, loss=loss)
    assert record.test_error == error_rate(law, fit.w, fit.b)
    assert record.signal == law.signal(fit.w) and record.bias == fit.b
    assert record.norm == pytest.approx(np.linalg.norm(fit.w))
    assert (record.train_loss, record.train_error) == (fit.train_loss, fit.train_error)
    assert 0 < record.test_error < 0.5 and record.converged


def test_wide_ridge_stays_on_the_gram_side():
    F, y = draw(300, 6000)
    tracemalloc.start()
    fit_readout(F, y, 0.0, loss="square")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 300 * 300 * 8 + 20 * F[0].nbytes < F.nbytes


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda F, y: fit_readout(F, y, -1.0), "lam"),
        (lambda F, y: fit_readout(F, y, 0.1, loss="cube"), "loss"),
        (lambda F, y: fit_readout(F[0], y, 0.1), "F"),
        (lambda F, y: fit_readout(F * np.nan, y, 0.1), "F"),
        (lambda F, y: fit_readout(F[:0], y[:0], 0.1), "F"),
        (lambda F, y: fit_readout(F, y[:-1], 0.1), "y"),
        (lambda F, y: fit_readout(F, (y + 1) // 2, 0.1), "y"),
        (lambda F, y: simulate_readout(LAW, 0, 1.0, 0.1, np.random.default_rng(0)), "d"),
        (lambda F, y: simulate_readout(LAW, 9, 0.0, 0.1, np.random.default_rng(0)), "alpha"),
        (lambda F, y: simulate_readout(LAW, 9, 1.0, 0.1, 0), "rng"),
    ],
)
def test_bad_arguments_are_refused(call, name):
    with pytest.raises(ValueError, match=f"(?s)^{name} .* is not allowed: {name} must be"):
        call(*draw(10, 3))
