"""Capacity: closed forms, independent quadrature, Cover's coin, and proofs checked in fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog, minimize
from scipy.stats import binomtest, chisquare, nbinom, ortho_group

from needle.data.classifiers import attention, gaussian_mixture, pooled
from needle.data.law import FeatureLaw
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.kit.records import ConvergenceError
from needle.readout import separable
from needle.readout.capacity import (
    predict_capacity,
    predict_capacity_width,
    simulate_capacity,
    simulate_repair,
    squared_repair,
)
from needle.readout.separable import _separates, separability
from utils.agreement import AgreementError, agree

PAPER = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
COIN = gaussian_mixture(mean=0.0, var_pos=1.0, var_neg=1.0)


def density(x):
    """Of a standard normal; `norm.pdf` takes twenty times as long for a single number."""
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize(
    ("variance", "value"), [(0.5, 6.662817), (1, 3.700033), (2, 2.732884), (5, 2.269140)]
)
def test_published_mixtures(variance, value):
    law = gaussian_mixture(var_pos=variance, var_neg=variance)
    assert predict_capacity(law, intercept=False) == pytest.approx(value, abs=6e-7)


def test_two_gaussians_of_the_paper():
    assert predict_capacity(pooled(PAPER)) == pytest.approx(2.9501, abs=5e-5)
    assert predict_capacity(vectorized(PAPER)) == pytest.approx(29.501, abs=5e-4)
    ratio = predict_capacity(vectorized(PAPER)) / predict_capacity(pooled(PAPER))
    assert ratio == pytest.approx(10, rel=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_coin_tosses_have_cover_s_two(intercept):
    assert predict_capacity(COIN, intercept=intercept) == pytest.approx(2, rel=1e-12)
    blank = attention(SparseTokens(10, 2, 0.0, 0.5), temperature=1.0, cos=0.3)
    assert predict_capacity(blank, intercept=intercept) == pytest.approx(2, rel=1e-4)


@pytest.mark.parametrize(
    ("temperature", "cos", "value", "standard_error"),
    [(2, 0.8, 16.5955, 0.0070), (2, 0.95, 22.367, 0.0133), (1, 0.9, 21.4756, 0.0093)],
)
def test_attention_against_monte_carlo(temperature, cos, value, standard_error):
    """Values of 25 to 100 million independent draws of (a, c, r); false alarm 6e-5 a row."""
    found = predict_capacity(attention(PAPER, temperature=temperature, cos=cos))
    assert abs(found - value) < 4 * standard_error + 5e-4 * value


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("var_pos", "var_neg", "pi"), [(1.0, 1.0, 0.5), (0.5, 2.0, 0.3), (3.0, 0.2, 0.9)]
)
def test_against_plain_quadrature_and_minimisation(var_pos, var_neg, pi, intercept):
    law = gaussian_mixture(var_pos=var_pos, var_neg=var_neg, pi=pi)

    def expectation(parameters):
        kappa, b = parameters[0], parameters[1] if intercept else 0.0
        spread, total = np.hypot(1, kappa), 0.0
        for sign, variance, share in (1, var_pos, pi), (-1, var_neg, 1 - pi):
            t = (kappa + sign * b) / variance**0.5

            def excess(G, t=t):
                return (spread * G - t) ** 2 * density(G)

            total += share * quad(excess, t / spread, t / spread + 12, epsabs=1e-13)[0]
        return total

    best = minimize(expectation, [0.5, 0.0], method="Nelder-Mead", options={"xatol": 1e-7})
    assert predict_capacity(law, intercept=intercept) == pytest.approx(1 / best.fun, rel=1e-8)


def test_derivatives_and_convexity():
    rng = np.random.default_rng(0)
    X, weight = 2 * rng.standard_normal((50, 3)), rng.dirichlet(np.ones(50))
    for _ in range(20):
        point, step = rng.normal(size=3), 1e-5
        value, gradient, hessian = squared_repair(X, weight, 1, point)
        around = [
            [squared_repair(X, weight, 1, point + sign * step * axis) for sign in (1, -1)]
            for axis in np.eye(3)
        ]
        slopes = [(plus[0] - minus[0]) / (2 * step) for plus, minus in around]
        bends = [(plus[1] - minus[1]) / (2 * step) for plus, minus in around]
        np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(hessian, bends, rtol=1e-6, atol=1e-8)
        root = hessian - np.outer(gradient, gradient) / (2 * value)  # of the square root
        assert np.linalg.eigvalsh(root).min() > -1e-12 * np.linalg.eigvalsh(root).max()


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_capacity_grows_with_alignment(temperature):
    found = [
        predict_capacity(attention(PAPER, temperature=temperature, cos=cos))
        for cos in (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99, 1 - 1e-9, 1.0)
    ]
    assert np.all(np.diff(found[:-1]) > 0)
    assert found[-2] == pytest.approx(found[-1], rel=1e-3)


@pytest.mark.slow
def test_limits():
    assert predict_capacity(attention(PAPER, temperature=0.0, cos=0.7)) == pytest.approx(
        predict_capacity(pooled(PAPER)), rel=1e-9
    )
    cold = predict_capacity(attention(PAPER, temperature=1e-4, cos=0.7))
    assert cold == pytest.approx(predict_capacity(pooled(PAPER)), rel=2e-3)
    for cos in (-1.0, 1.0):
        assert 2 <= predict_capacity(attention(PAPER, temperature=50.0, cos=cos)) < 40
    loud = attention(SparseTokens(10, 1, 60.0, 0.5), temperature=1.0, cos=1.0)
    assert predict_capacity(loud) == np.inf
    scaled = gaussian_mixture(mean=3.0, var_pos=9.0, var_neg=4.5, pi=0.2)
    same = gaussian_mixture(mean=1.0, var_pos=1.0, var_neg=0.5, pi=0.2)
    assert predict_capacity(scaled) == pytest.approx(predict_capacity(same), rel=1e-12)
    swapped = gaussian_mixture(mean=1.0, var_pos=0.5, var_neg=1.0, pi=0.8)
    assert predict_capacity(swapped) == pytest.approx(predict_capacity(same), rel=1e-12)


@pytest.mark.slow
def test_anywhere_in_the_box_there_is_an_answer():
    """Without any help from the features J = 1/2, so no law holds less than Cover's 2."""
    rng = np.random.default_rng(4)
    for _ in range(25):
        L = int(np.exp(rng.uniform(np.log(2), np.log(1e4))))
        R, theta = int(rng.integers(1, min(L, 5) + 1)), rng.uniform(0, 8)
        model = SparseTokens(L, R, theta, rng.uniform(0.01, 0.99))
        cos, temperature = (
            rng.choice([-1, 1, rng.uniform(-1, 1)]),
            rng.choice([0, 50, rng.exponential(2)]),
        )
        for law in pooled(model), attention(model, temperature=temperature, cos=cos):
            free, tied = (predict_capacity(law, intercept=on) for on in (True, False))
            assert free * (1 + 1e-9) >= tied >= 2 - 1e-9


def test_rare_labels_raise_the_capacity_only_through_the_intercept():
    rare = gaussian_mixture(mean=0.0, var_pos=1.0, var_neg=1.0, pi=0.1)
    assert predict_capacity(rare, intercept=False) == pytest.approx(2, rel=1e-12)
    assert predict_capacity(rare) > 3.9


def test_a_law_that_cannot_be_solved_is_refused():
    nodes = COIN.nodes._replace(r=np.array([1.0, np.nan]))
    broken = FeatureLaw(name="broken", theta=1.0, pi=0.5)
    broken.__dict__["nodes"] = nodes
    for solve in (predict_capacity, predict_capacity_width):
        with pytest.raises(ConvergenceError, match="did not settle") as caught:
            solve(broken)
        assert np.isnan(caught.value.estimate)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_width_of_coin_tosses_is_a_coin_s(intercept):
    """Tosses until the d-th head have variance 2d."""
    assert predict_capacity_width(COIN, intercept=intercept) ** 2 == pytest.approx(2, rel=1e-12)


def test_widths_of_the_paper():
    assert predict_capacity_width(pooled(PAPER)) == pytest.approx(2.935, abs=5e-4)
    assert predict_capacity_width(vectorized(PAPER)) == pytest.approx(9.281, abs=5e-4)
    ratio = predict_capacity_width(vectorized(PAPER)) / predict_capacity_width(pooled(PAPER))
    assert ratio == pytest.approx(10**0.5, rel=1e-12)
    law = attention(PAPER, temperature=2.0, cos=0.8)
    assert predict_capacity_width(law) == pytest.approx(27.42, abs=0.06)
    cold = attention(PAPER, temperature=1e-4, cos=0.7)
    assert predict_capacity_width(cold) == pytest.approx(2.935, rel=5e-3)
    rare = gaussian_mixture(mean=0.0, var_pos=1.0, var_neg=1.0, pi=0.1)
    assert predict_capacity_width(rare) == pytest.approx(4.771, abs=5e-4)
    assert predict_capacity_width(rare, intercept=False) ** 2 == pytest.approx(2, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("var_pos", "var_neg", "pi"), [(0.5, 2.0, 0.3), (3.0, 0.2, 0.9)])
def test_width_against_plain_quadrature(var_pos, var_neg, pi, intercept):
    """E ρ² and E ρ⁴ by quad at a minimum found by Nelder–Mead."""
    law = gaussian_mixture(var_pos=var_pos, var_neg=var_neg, pi=pi)

    def moment(parameters, power):
        kappa, b = parameters[0], parameters[1] * intercept
        spread, total = np.hypot(1, kappa), 0.0
        for sign, variance, share in (1, var_pos, pi), (-1, var_neg, 1 - pi):
            t = (kappa + sign * b) / variance**0.5
            repair = lambda G, t=t: (spread * G - t) ** power * density(G)  # noqa: E731
            total += share * quad(repair, t / spread, t / spread + 14, epsabs=1e-13)[0]
        return total

    best = minimize(moment, [0.5, 0.0], (2,), method="Nelder-Mead", options={"xatol": 1e-9}).x
    second, fourth = moment(best, 2), moment(best, 4)
    sigma = np.sqrt((fourth - second**2) / second**3 - 2 / second**2)
    assert predict_capacity_width(law, intercept=intercept) == pytest.approx(sigma, rel=1e-6)


@pytest.mark.slow
@pytest.mark.false_alarm(0.0001)
def test_width_of_attention_against_draws():
    """E ρ⁴ of 4·10⁶ draws of (a, c, r) and G, at the minimum of other draws; false alarm 1e-4.

    The standard error of σ is .4 %: a σ 5 % off fails.
    """
    law, rng = attention(PAPER, temperature=1.0, cos=0.6), np.random.default_rng(3)

    def draw(n):
        y = rng.choice([-1, 1], size=n)
        a, c, r = law.coefficients(y, rng)
        X = np.column_stack([0.6 * 5 * a + c, 0.8 * 5 * a, np.ones(n)]) * (y / r)[:, None]
        return X, rng.standard_normal(n)

    def repair(β, X, G):
        return np.maximum(np.hypot(1, β[1]) * G - X @ β, 0)

    first = draw(400_000)
    β = minimize(lambda β: np.mean(repair(β, *first) ** 2), np.zeros(3)).x
    squares = np.array([repair(β, *draw(200_000)) ** 2 for _ in range(20)])
    J, second = squares.mean(axis=1), (squares**2).mean(axis=1)
    blocks = np.array(
        [np.sqrt((m / x - x) / x**2 - 2 / x**2) for m, x in zip(second, J, strict=True)]
    )
    error = blocks.std(ddof=1) / 20**0.5
    assert error < 0.006 * blocks.mean()
    theory = predict_capacity_width(law)
    assert abs(blocks.mean() - theory) < 4.9 * error  # Student, 19 degrees
    for wrong in 0.95 * theory, 1.05 * theory:
        assert abs(blocks.mean() - wrong) > 4.9 * error


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
def test_measured_widths():
    """d·Var of the last separable α over σ², mean of four laws: 1 + O(1/d); false alarm 1e-4.

    The mean of 750 runs has a standard error near 5 %: a σ 20 % off is beyond two of them.
    """
    ratios, errors = [], []
    for law, d, count in (
        (COIN, 100, 200),
        (pooled(PAPER), 80, 200),
        (pooled(SparseTokens(L=4, R=2, theta=1.5, pi=0.2)), 80, 200),
        (attention(PAPER, temperature=2.0, cos=0.5), 60, 150),
    ):
        rng = np.random.default_rng(8)
        last = np.array([simulate_capacity(law, d, rng) for _ in range(count)])
        ratios.append(d * np.var(last, ddof=1) / predict_capacity_width(law) ** 2)
        kurtosis = np.mean((last - last.mean()) ** 4) / np.var(last) ** 2
        errors.append(np.sqrt((kurtosis - 1) / count))
    error = np.linalg.norm(errors) / 4
    assert abs(np.mean(ratios) - 1) < 4 * error + 2 / 80
    for wrong in 1.2**2, 0.8**2:
        assert abs(np.mean(ratios) / wrong - 1) > 2 * error / wrong + 2 / 80


@pytest.mark.slow
def test_no_width_without_a_capacity():
    loud = attention(SparseTokens(10, 1, 60.0, 0.5), temperature=1.0, cos=1.0)
    with pytest.raises(ConvergenceError, match="infinite") as caught:
        predict_capacity_width(loud)
    assert caught.value.estimate == np.inf
    with pytest.raises(ValueError, match="law = 2"):
        predict_capacity_width(2)
    with pytest.raises(ValueError, match="intercept = 0"):
        predict_capacity_width(COIN, intercept=0)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-05)
@pytest.mark.parametrize(("d", "intercept"), [(4, True), (15, False), (40, True)])
def test_cover_s_coin(d, intercept):
    """Coin labels: the last separable n is the toss that brings the (d+1)-th head, exactly.

    Cover's count of dichotomies says P(n separable) = P(fewer than p heads in n−1 tosses), with
    p = d+1 (d without intercept). χ² over deciles, false alarm 1e-5.
    """
    rng, p = np.random.default_rng(10 * d), d + intercept
    last = [round(d * simulate_capacity(COIN, d, rng, intercept=intercept)) for _ in range(400)]
    coin = nbinom(p, 0.5, loc=p)  # tosses until the p-th head
    edges = np.unique(coin.ppf(np.linspace(0, 1, 11)[1:-1]))
    expected = 400 * np.diff([0, *coin.cdf(edges), 1])
    counted = np.bincount(np.searchsorted(edges, last), minlength=len(edges) + 1)
    assert chisquare(counted, expected).pvalue > 1e-5
    wrong = 400 * np.diff([0, *nbinom(p + 1 + p // 10, 0.5, loc=p).cdf(edges), 1])
    assert chisquare(counted, wrong).pvalue < 1e-5  # a few heads more
    assert min(last) >= p  # any d+1 points in general position are separable


@pytest.mark.false_alarm(1e-05)
def test_separability_of_independent_data_sets_follows_cover():
    """The same law without bisection: 300 fresh data sets at n = 46, d = 20; false alarm 1e-5."""
    rng = np.random.default_rng(1)
    wins = sum(separability(*COIN.sample(46, 20, rng)).separable for _ in range(300))
    assert binomtest(wins, 300, nbinom(21, 0.5, loc=21).sf(45)).pvalue > 1e-5
    assert binomtest(wins, 300, nbinom(23, 0.5, loc=23).sf(45)).pvalue < 1e-5


@pytest.mark.slow
@pytest.mark.false_alarm(0.0001)
@pytest.mark.parametrize(
    ("law", "trials"),
    [
        (pooled(PAPER), {20: 300, 40: 150, 80: 50}),
        (pooled(SparseTokens(L=4, R=2, theta=1.5, pi=0.2)), {20: 300, 40: 150, 80: 50}),
        (attention(PAPER, temperature=2.0, cos=0.5), {20: 300, 40: 150, 80: 50}),
        (vectorized(SparseTokens(L=4, R=1, theta=3.0, pi=0.5)), {8: 150, 16: 80, 32: 25}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_simulations_extrapolate_to_the_prediction(law, trials):
    """The standard error is 2 % of the prediction; a fifth more or less is refused."""
    simulations = [
        np.array([simulate_capacity(law, d, np.random.default_rng([d, k])) for k in range(count)])
        for d, count in trials.items()
    ]
    theory, told = predict_capacity(law), {"sizes": list(trials), "claim": "capacity"}
    agree(theory, simulations, **told)
    for factor in (0.8, 1.2):
        with pytest.raises(AgreementError):
            agree(factor * theory, simulations, **told)


@pytest.mark.parametrize(
    ("law", "d"),
    [(COIN, 12), (pooled(PAPER), 12), (attention(PAPER, temperature=2.0, cos=0.8), 6)],
    ids=["coin", "pooled", "attention"],
)
def test_the_last_separable_prefix_against_separate_decisions(law, d):
    """Bisection shares one whitening among all prefixes; here each prefix is decided afresh."""
    for seed in range(8):
        last = round(d * simulate_capacity(law, d, np.random.default_rng(seed)))
        rng = np.random.default_rng(seed)
        F, y = law.sample(4 * law.copies * d, d, rng)
        while len(y) <= last:
            more = law.sample(len(y), d, rng)
            F, y = np.concatenate([F, more.F]), np.concatenate([y, more.y])
        assert separability(F[:last], y[:last]).separable
        assert not separability(F[: last + 1], y[: last + 1]).separable


def programme(F, y, intercept):
    A = (np.column_stack([F, np.ones(len(F))]) if intercept else F) * y[:, None]
    answer = linprog(np.zeros(A.shape[1]), A_ub=-A, b_ub=-np.ones(len(A)), bounds=(None, None))
    return {0: True, 2: False}[answer.status]


def check(F, y, intercept, expected=None):
    """The proof, verified in exact arithmetic (hyperplane) or against the data's scale."""
    separable, proof = separability(F, y, intercept=intercept)
    A = np.column_stack([F, np.ones(len(F))]) if intercept else np.asarray(F, dtype=float)
    A = A * np.asarray(y)[:, None]
    if separable:
        assert proof.shape == A.shape[1:]
        exact = [Fraction(x) for x in proof]
        assert all(sum(Fraction(x) * w for x, w in zip(row, exact, strict=True)) > 0 for row in A)
    else:
        assert proof.shape == A.shape[:1]
        assert proof.min() >= 0
        assert proof.sum() == pytest.approx(1)
        assert np.all(np.abs(proof @ A) <= 1e-9 * (proof @ np.abs(A)).clip(1e-3 * np.abs(A).max(0)))
    if expected is not None:
        assert separable == expected
    return separable


@pytest.mark.parametrize("seed", range(4))
def test_small_and_degenerate_data_against_linear_programming(seed):
    """Integer grids with duplicates, dependent or wildly scaled columns, rotations, rare labels."""
    rng = np.random.default_rng(seed)
    answers = []
    for _ in range(150):
        n, d, intercept = rng.integers(1, 40), rng.integers(1, 7), bool(rng.integers(2))
        F = rng.integers(-2, 3, size=(n, d)).astype(float)
        if rng.random() < 0.3:
            F = rng.standard_normal((n, d))
        if rng.random() < 0.3:
            F = np.column_stack([F, F[:, :1], np.zeros(n)])
        y = np.where(F @ rng.integers(-2, 3, size=F.shape[1]) + rng.integers(-1, 2) > 0, 1, -1)
        y[rng.random(n) < rng.choice([0, 0.03, 0.5])] *= -1
        expected = programme(F, y, intercept)
        change = rng.integers(4)
        if change == 1:
            F = F * 2.0 ** rng.integers(-40, 41, size=F.shape[1])
        if change == 2 and not intercept:
            F = F * 2.0 ** rng.integers(-40, 41, size=n)[:, None]
        if change == 3 and F.shape[1] > 1:
            F = F @ ortho_group.rvs(F.shape[1], random_state=rng)
        answers.append(check(F, y, intercept, expected))
    assert 0.2 < np.mean(answers) < 0.8


def test_near_the_threshold_against_linear_programming():
    rng = np.random.default_rng(5)
    answers = []
    for n in range(90, 120, 2):
        F, y = COIN.sample(n, 50, rng)
        answers.append(check(F, y, True, programme(F, y, True)))
    assert 0 < sum(answers) < len(answers)


@pytest.mark.parametrize("intercept", [True, False])
def test_degenerate_inputs(intercept):
    rng = np.random.default_rng(2)
    F = rng.standard_normal((30, 3))
    check(F, np.ones(30, dtype=int), intercept, True if intercept else None)
    check(F[:3], [1, -1, 1], intercept, True)  # n ≤ d
    check(np.repeat(F[:3], 20, axis=0), np.repeat([1, -1, 1], 20), intercept, True)
    check(np.vstack([F[:3], F[:1]]), [1, -1, 1, -1], intercept, False)  # one row, both labels
    check(np.vstack([F[:2], np.zeros(3)]), [1, -1, 1], intercept, intercept)  # a row of zeros
    check(np.zeros((4, 2)), [1, 1, -1, 1], intercept, False)
    check(np.zeros((4, 2)), [-1, -1, -1, -1], intercept, intercept)
    check([[1e150], [1e-150], [-1e150]], [1, 1, -1], intercept, True)


def test_a_margin_within_rounding_is_no_proof():
    row = np.array([[1.0, -1.0]])
    assert not _separates(row, np.array([1 + 2**-52, 1.0]))
    assert _separates(row, np.array([1 + 2**-48, 1.0]))


def test_data_without_a_proof_are_refused_with_the_best_guess(monkeypatch):
    F, y = COIN.sample(20, 6, np.random.default_rng(11))
    monkeypatch.setattr(separable, "_separates", lambda A, w: False)
    monkeypatch.setattr(separable, "_balances", lambda A, c: False)
    with pytest.raises(ConvergenceError, match="neither proof holds beyond rounding") as caught:
        separability(F, y)
    assert caught.value.estimate.certificate.shape == (7,)


def test_an_unfinished_search_is_said_so(monkeypatch):
    def unfinished(*args, **options):
        raise RuntimeError("too many iterations")

    F, y = COIN.sample(60, 6, np.random.default_rng(12))
    monkeypatch.setattr(separable, "nnls", unfinished)
    said = "non-negative least squares: too many iterations"
    with pytest.raises(ConvergenceError, match=said) as caught:
        separability(F, y)
    assert caught.value.estimate.certificate.shape == (7,)


def test_a_line_with_a_hair_s_gap():
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-1, 1, size=300))
    for gap in (1e-3, 1e-6, 1e-9, 1e-11):
        z = np.where(x > 0, x - x[x > 0].min() + gap / 2, x - x[x < 0].max() - gap / 2)
        F = np.column_stack([z, rng.standard_normal(300)]) @ [[1, 1], [-1, 1]]
        check(z[:, None], np.where(x > 0, 1, -1), True, True)
        check(F, np.where(x > 0, 1, -1), True, True)


@pytest.mark.parametrize(
    ("F", "y", "message"),
    [
        (np.ones(3), [1, 1, 1], r"F of shape \(3,\)"),
        (np.ones((0, 2)), [], r"F of shape \(0, 2\)"),
        ([[np.nan]], [1], "F of shape"),
        (np.ones((2, 2)), [1, 0], "labels"),
        (np.ones((2, 2)), [1, 1, -1], "y = .* must be 2 labels"),
    ],
)
def test_bad_data_is_refused(F, y, message):
    with pytest.raises(ValueError, match=message):
        separability(F, y)


def test_bad_simulations_are_refused():
    with pytest.raises(ValueError, match="d = 1"):
        simulate_capacity(COIN, 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="rng = 0"):
        simulate_capacity(COIN, 5, 0)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
def test_widths_by_the_sharper_statistic():
    """σ² from the variance of least repairs, no hyperplane sought: within 4 s.e., of 3 to 4 %."""
    rng = np.random.default_rng(11)
    rare = attention(SparseTokens(6, 2, 2.5, 0.25), temperature=1.5, cos=0.6)
    for law, draws in ((gaussian_mixture(var_pos=0.5, var_neg=2.0, pi=0.3), 8000), (rare, 6000)):
        capacity, width = predict_capacity(law), predict_capacity_width(law) ** 2
        n = round(capacity * 80)
        total = np.array([simulate_repair(law, n, rng) for _ in range(draws)])
        scale = capacity**3 / n
        found = total.var() * scale - 2 * capacity**2
        error = np.square(total - total.mean()).std() * scale / draws**0.5
        assert error < 0.05 * width
        assert abs(found - width) < 4 * error
        assert abs(found - 1.25 * width) > 4 * error
