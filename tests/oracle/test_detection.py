"""Many needles, and Bayes' error by quadrature, against direct sampling of plain tokens.

A statistical test compares at |z| < 4.5 (two-sided 7e-6) unless it says otherwise, and shows that
a constant that is 5 to 15 % off is farther away.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_ndtr, logsumexp, ndtr, softmax

from needle.data.tokens import SparseTokens
from needle.kit.records import ConvergenceError
from needle.oracle import detection
from needle.oracle.detection import (
    haystack_error,
    haystack_theta,
    one_needle_bayes_error,
    predict_haystack_error,
    sample_haystack,
)
from needle.oracle.limit import critical_theta
from needle.oracle.rules import OracleError, two_gaussians
from needle.oracle.separation import oracle_error

Z = 4.5


def plain_bags(L: int, R: int, theta: float, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of n negatives and of n positives, by the definition of the model alone."""
    generator = np.random.default_rng(seed)
    silent, signal = generator.standard_normal((2, n, L))
    signal[:, :R] += theta
    return silent, signal


def z_of_share(errors: np.ndarray, expected: float) -> float:
    return (errors.mean() - expected) / (errors.std(ddof=1) / math.sqrt(len(errors)))


# ---------------------------------------------------------------------------- one needle


@pytest.mark.false_alarm(2.1e-5)
@pytest.mark.parametrize(("L", "theta", "pi"), [(10, 2.5, 0.5), (300, 3.5, 0.2), (300, 3.0, 0.8)])
def test_the_quadrature_is_bayes_risk_on_plain_tokens(L, theta, pi):
    """Posterior by hand on half negatives, half positives, weighted by 1 − π and π."""
    halves = plain_bags(L, 1, theta, 40_000 if L < 100 else 8_000, 1)
    risk = 0.0
    for share, h in zip((1 - pi, pi), halves, strict=True):
        ratio = logsumexp(theta * h - theta**2 / 2, axis=1) - math.log(L)
        eta = expit(ratio + math.log(pi / (1 - pi)))
        risk = risk + share * np.minimum(eta, 1 - eta)
    theory = one_needle_bayes_error(L, theta, pi)
    assert abs(z_of_share(risk, theory)) < Z < abs(z_of_share(risk, 1.1 * theory))


@pytest.mark.false_alarm(7e-6)
def test_the_quadrature_agrees_with_binned_bags_at_a_trillion():
    exact = one_needle_bayes_error(10**12, 8.0)
    generator = np.random.default_rng(2)
    run = oracle_error("bayes", SparseTokens(10**12, 1, 8.0, 0.5), rng=generator, trials=20_000)
    assert abs(run.error - exact) < Z * run.standard_error < abs(run.error - 1.05 * exact)


@pytest.mark.slow
@pytest.mark.parametrize("x", [-1.0, 0.0, 1.0])
def test_the_first_correction_is_approached(x):
    """√(2 log L) (ε − Φ(−x)/2) tends to its limit, monotonically from 10¹⁶ to 10¹²⁸."""
    limit = math.exp(-(x**2) / 2) / math.sqrt(8 * math.pi) * (1 + x**2 / 2 + log_ndtr(x))
    distance = []
    for k in (16, 32, 64, 128):
        a = critical_theta(10.0**k)
        error = one_needle_bayes_error(10.0**k, a + x, points=1000)
        distance.append(abs(a * (error - ndtr(-x) / 2) - limit))
    assert distance == sorted(distance, reverse=True) and distance[-1] < 0.004


@pytest.mark.slow
def test_more_points_change_nothing():
    for L, theta in ((10, 3.0), (10**6, 6.0), (10**40, 14.0)):
        coarse, fine = (one_needle_bayes_error(L, theta, points=n) for n in (600, 2400))
        assert coarse == pytest.approx(fine, abs=2e-5)


def test_bayes_is_below_the_largest_token_and_falls_with_theta():
    errors = [one_needle_bayes_error(10**4, theta) for theta in (2.0, 4.0, 6.0)]
    assert errors == sorted(errors, reverse=True)
    for theta, error in zip((2.0, 4.0, 6.0), errors, strict=True):
        largest = oracle_error("attention", SparseTokens(10**4, 1, theta, 0.5), tau=math.inf)
        assert error < largest.error


# ---------------------------------------------------------------------------- many needles


@pytest.mark.slow
@pytest.mark.false_alarm(4.2e-5)
@pytest.mark.parametrize("tau", [0.0, 0.8, 1.5])
def test_haystacks_are_plain_tokens(tau):
    """Attention at a given threshold: binned straws and needles against tokens drawn one by one.

    Needles that are 15 % lower are missed too often; what they are says nothing of false alarms.
    """
    L, R, theta, t = 1000, 60, 1.5, tau + 0.06
    silent, signal = plain_bags(L, R, theta, 6000, 3)
    score = [(softmax(tau * h, axis=1) * h).sum(axis=1) for h in (silent, signal)]
    bags = sample_haystack(L, R, 6000, np.random.default_rng(4))

    def z(pi: float, share: float = 1.0) -> float:
        run = haystack_error("attention", share * theta, bags, tau=tau, pi=pi, threshold=t)
        wrong = (score[0] > t) if pi < 0.5 else (score[1] <= t)
        spread = math.hypot(run.standard_error, wrong.std(ddof=1) / math.sqrt(len(wrong)))
        return abs(run.error - wrong.mean()) / max(spread, 1e-3)

    false_alarms, misses = z(1e-9), z(1 - 1e-9)
    assert false_alarms < Z and misses < Z < z(1 - 1e-9, 0.85)


@pytest.mark.false_alarm(2.8e-5)
def test_the_crowd_law_meets_simulation_with_its_own_threshold():
    bags = sample_haystack(10**10, 10**5, 6000, np.random.default_rng(5))
    for theta, tau in ((1.5, 0.0), (1.5, 0.7), (1.5, 1.5), (2.0, 1.0)):
        law = predict_haystack_error(10**10, 10**5, theta, tau=tau)
        run = haystack_error("attention", theta, bags, tau=tau, threshold=law.threshold)
        lower = predict_haystack_error(10**10, 10**5, 0.85 * theta, tau=tau)
        gap, corrupted = abs(run.error - law.error), abs(run.error - lower.error)
        assert gap < Z * run.standard_error < corrupted


def test_without_sharpness_the_law_is_pooling():
    for pi in (0.5, 0.2):
        law = predict_haystack_error(10**8, 3 * 10**4, 1.0, tau=0.0, pi=pi)
        pooled = oracle_error("pooled", SparseTokens(10**8, 3 * 10**4, 1.0, pi))
        assert law.error == pytest.approx(pooled.error, rel=1e-4)


def gaussian_law(L, R, theta, tau, pi, *, second=1.0, still=False) -> float:
    """Straws and needles enter by mean and variance of e^{τh}(h − τ), here by quadrature.

    `second` multiplies the second moment of a needle, `still` leaves positives the variance 1.
    """

    def moment(k: int, height: float) -> float:
        def term(h: float) -> float:
            return (math.exp(tau * h) * (h - tau)) ** k * math.exp(-((h - height) ** 2) / 2)

        center = height + k * tau
        return quad(term, center - 12, center + 12, limit=500)[0] / math.sqrt(2 * math.pi)

    unit = math.sqrt(L * moment(2, 0.0))
    m, v = moment(1, theta) / unit, second * moment(2, theta) / unit**2
    spread = 1.0 if still else math.sqrt(1 - R / L + R * (v - m**2))

    def risk(s: float) -> float:
        return pi * ndtr((s - R * m) / spread) + (1 - pi) * ndtr(-s)

    best = minimize_scalar(risk, bounds=(-4, 6), method="bounded", options={"xatol": 1e-9})
    return float(best.fun)


@pytest.mark.parametrize(
    ("L", "R", "theta", "tau", "pi"),
    [(50, 2, 3.0, 0.2, 0.5), (40, 10, 0.6, 0.5, 0.3), (10**4, 140, 1.2, 1.0, 0.6)],
)
def test_the_crowd_law_has_the_variance_of_straws_and_needles(L, R, theta, tau, pi):
    found = predict_haystack_error(L, R, theta, tau=tau, pi=pi).error
    assert found == pytest.approx(gaussian_law(L, R, theta, tau, pi), abs=1e-7)
    for wrong in ({"second": 1.05}, {"still": True}):
        assert abs(found - gaussian_law(L, R, theta, tau, pi, **wrong)) > 1e-4


@pytest.mark.slow
@pytest.mark.false_alarm(2e-5)
def test_the_variance_of_needles_is_seen_in_few_tokens():
    """Two needles among 50 tokens, one by one; at this length the law is 0.0005 too low.

    That is 0.7 error bars here, where a law without the variance is 15 away: |z| < 4.9.
    """
    where, tau, n = (50, 2, 3.0), 0.2, 100_000
    law = predict_haystack_error(*where, tau=tau)
    h, risk = np.random.default_rng(14).standard_normal((n, 50)), np.zeros(n)
    for positive in (False, True):
        h[:, :2] += 3.0 * positive
        weight = np.exp(tau * h)
        score = (weight * h).sum(axis=1) / weight.sum(axis=1)
        risk += 0.5 * ((score > law.threshold) != positive)

    def z(error: float) -> float:
        return abs(z_of_share(risk, error))

    assert z(law.error) < 4.9
    for wrong in ({"second": 1.2}, {"still": True}):
        assert z(gaussian_law(*where, tau, 0.5, **wrong)) > 10


def test_the_crowd_law_takes_any_strength_within_reach_and_refuses_the_others():
    assert predict_haystack_error(50, 50, 0.2, tau=0.0).error == pytest.approx(
        two_gaussians(0.2 * math.sqrt(50), 0.5).error, abs=1e-7
    )
    for theta, tau in ((17.0, None), (1e4, 0.0), (12.0, 24.0), (0.0, 24.0)):
        for L, R in ((1e300, 1e300), (1e300, 1), (2, 1)):
            assert 0 <= predict_haystack_error(L, R, theta, tau=tau).error <= 0.5


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"R": 100}, r"R = 100 is not allowed: .* in \[1, 10\]"),
        ({"pi": 0}, "pi = 0 is not allowed"),
        ({"pi": 1}, "pi = 1 is not allowed"),
        ({"theta": 40.0}, r"theta = 40.0 at tau = 40.0 is not allowed: 2τθ and τ²"),
        ({"theta": 0.1, "tau": 40.0}, r"theta = 0.1 at tau = 40.0 is not allowed: 2τθ and τ²"),
        ({"theta": 1e5, "tau": 0.0}, r"theta = 100000.0 is not allowed"),
    ],
)
def test_the_crowd_law_names_what_it_refuses(changed, message):
    with pytest.raises(ValueError, match=message):
        predict_haystack_error(**{"L": 10, "R": 2, "theta": 1.0, **changed})


@pytest.mark.slow
@pytest.mark.false_alarm(7e-6)
def test_the_likelihood_ratio_is_next_to_bayes():
    """With exactly R needles Bayes is e_R; the ratio of independent tokens may only be worse."""
    model = SparseTokens(10**5, 30, 3.0, 0.5)
    bayes = oracle_error("bayes", model, rng=np.random.default_rng(6), trials=1000)
    bags = sample_haystack(model.L, model.R, 8000, np.random.default_rng(7))
    for share in (1.0, 0.95, 1.05):
        ratio = haystack_error("likelihood", share * model.theta, bags)
        spread = math.hypot(bayes.standard_error, ratio.standard_error)
        near = -Z * spread < ratio.error - bayes.error < 0.01 + Z * spread
        assert near == (share == 1)


def test_a_threshold_is_judged_on_trials_it_was_not_chosen_on():
    """Among few trials the least error of a half lies below the error on the other half."""
    bags = sample_haystack(1000, 30, 100, np.random.default_rng(11))
    assert haystack_error("attention", 0.3, bags, tau=1.0).optimism > 0.005


@pytest.mark.slow
@pytest.mark.false_alarm(1e-6)
def test_the_standard_error_knows_of_the_chosen_threshold():
    """10⁴ experiments: Var(error) over the mean squared standard error is 0.96, to 0.015.

    Of the risks alone it would be 1.35; and standard errors that are 15 % off are refused.
    """
    generator, runs, alone = np.random.default_rng(16), [], []
    for _ in range(10_000):
        silent, signal = generator.standard_normal((2, 100))
        runs.append(detection._chosen_error(silent, signal + 3, 0.5, 1.0))
        alone.append(runs[-1].standard_error ** 2 - 0.2 * runs[-1].optimism ** 2)
    reached = np.var([run.error for run in runs], ddof=1)
    ratio = reached / np.mean([run.standard_error**2 for run in runs])
    assert 0.88 < ratio < 1.12 < ratio / 0.85**2
    assert ratio / 1.15**2 < 0.88 and reached / np.mean(alone) > 1.2


@pytest.mark.parametrize("kind", ["attention", "likelihood"])
@pytest.mark.parametrize("pi", [0.1, 0.45, 0.5, 0.55, 0.9])
def test_needles_without_strength_leave_the_guess_of_the_prior(kind, pi):
    """Every positive score is that of its negative, and every likelihood ratio is one."""
    bags = sample_haystack(1000, 30, 101, np.random.default_rng(17))
    run = haystack_error(kind, 0.0, bags, pi=pi)
    assert run.error == pytest.approx(min(pi, 1 - pi), abs=1e-12)
    assert run.optimism == pytest.approx(0, abs=1e-12) and run.standard_error < 1e-12
    assert pi == 0.5 or run.threshold == (-math.inf if pi > 0.5 else math.inf)


@pytest.mark.false_alarm(7e-6)
def test_the_likelihood_ratio_has_mean_one_without_needles():
    bags = sample_haystack(10**5, 30, 8000, np.random.default_rng(10))
    ratio = np.exp(detection._likelihood(bags, 0.0, 1.0))
    error = ratio.std() / math.sqrt(8000)
    assert abs(ratio.mean() - 1) < Z * error < abs(1.05 * ratio.mean() - 1)


def test_the_needed_strength_has_the_error_that_was_asked_for():
    bags = sample_haystack(10**8, 10**3, 2000, np.random.default_rng(8))
    theta, spread = haystack_theta("attention", bags, error=0.1)
    assert haystack_error("attention", theta, bags).error == pytest.approx(0.1, abs=0.003)
    assert 0 < spread < 0.1
    assert haystack_theta("likelihood", bags, error=0.1)[0] < theta


def test_the_needed_strength_of_very_many_needles():
    """Half of all tokens are needles: θ is far below where the search begins."""
    bags = sample_haystack(10**6, 5 * 10**5, 60, np.random.default_rng(12))
    theta, spread = haystack_theta("attention", bags, tau=0.0)
    assert 1e-4 < theta < 1 / 64 and 0 < spread < theta
    assert haystack_error("attention", theta, bags, tau=0.0).error == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize(("told", "message"), [(0.4, "no θ brings"), (0.0, "at every θ")])
def test_a_strength_that_does_not_exist_is_said_so(told, message, monkeypatch):
    monkeypatch.setattr(detection, "haystack_error", lambda *_, **__: OracleError(told))
    bags = sample_haystack(100, 10, 10, np.random.default_rng(13))
    with pytest.raises(ConvergenceError, match=message) as caught:
        haystack_theta("attention", bags, error=0.05)
    assert caught.value.estimate > 0


def test_refusals():
    bags = sample_haystack(100, 10, 10, np.random.default_rng(9))
    with pytest.raises(ValueError, match="kind"):
        haystack_error("pooled", 1.0, bags)
    with pytest.raises(ValueError, match="R"):
        sample_haystack(100, 100, 10, np.random.default_rng(0))
    with pytest.raises(ValueError, match="L"):
        one_needle_bayes_error(1e301, 3.0)
