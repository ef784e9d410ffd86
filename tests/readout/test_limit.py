"""The self-consistent equations against finite differences, other quadratures, and simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from needle.data.classifiers import attention, gaussian_mixture, pooled
from needle.data.law import FeatureLaw
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.kit.losses import get_loss
from needle.kit.records import ConvergenceError, Readout
from needle.readout.fit import simulate_readout
from needle.readout.limit import (
    OrderParameters,
    learning_curve,
    order_parameters,
    predict_readout,
)
from utils.agreement import AgreementError, agree

MODEL = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
LOSSES = ["logistic", "square"]
NUMBERS = ["test_error", "train_loss", "train_error", "signal", "norm", "bias"]


@pytest.fixture(scope="module")
def laws() -> dict[str, FeatureLaw]:
    model = SparseTokens(L=6, R=1, theta=4.0, pi=0.4)
    return {
        "pooled": pooled(model),
        "vectorized": vectorized(model),
        "attention": attention(model, temperature=1.5, cos=0.7),
        "mixture": gaussian_mixture(mean=1.0, var_pos=2.0, var_neg=0.5, pi=0.4),
    }


def violation(
    law: FeatureLaw, alpha: float, lam: float, intercept: bool, o: OrderParameters, points: int
) -> float:
    """The largest relative violation of the equations as a reader would check them.

    Other unknowns (χ, V), another quadrature (the trapezoidal rule in G), another proximal map.
    """
    y, a, c, r, weight = (v[:, None] for v in law.nodes)
    ratio, sine, loss = alpha / law.copies, math.sqrt(1 - law.cos**2), get_loss("logistic")
    G = np.linspace(-9, 9, points)
    density = weight * norm.pdf(G) * (G[1] - G[0])
    mu = law.cos * o.nu + sine * o.kappa
    field = law.theta * a * mu + c * o.nu + o.bias + r * math.hypot(o.kappa, o.rest) * G
    u = loss.prox(field, o.chi * r**2, y)
    force, curvature = loss.first(u, y), loss.second(u, y)
    V = np.sum(density * r**2 * curvature / (1 + o.chi * r**2 * curvature))
    along, across = law.theta * a * law.cos + c, sine * law.theta * a
    noise = math.sqrt(np.sum(density * r**2 * force**2) / ratio) / (lam + V)
    found = [(noise, o.rest), (1 / (ratio * (lam + V)), o.chi)]
    if intercept:
        found.append(
            (np.sum(density * np.maximum(force, 0)), -np.sum(density * np.minimum(force, 0)))
        )
    pull = np.sum(density * np.abs(force * across)) + 1e-300
    kappa = -np.sum(density * force * across)
    worst = abs(kappa - o.kappa * (lam + V)) / (pull + abs(kappa))
    if law.query:
        pull = np.sum(density * np.abs(force * along))
        worst = max(worst, abs(np.sum(density * force * along) + lam * o.nu) / pull)
    return max(worst, *(abs(x - y) / (abs(x) + abs(y)) for x, y in found))


# The solver -----------------------------------------------------------------------------------


def random_point(rng: np.random.Generator, kind: str) -> tuple[FeatureLaw, float, float, bool]:
    L = int(np.exp(rng.uniform(np.log(2), np.log(60))))
    pi = rng.uniform(0.01, 0.99)
    model = SparseTokens(L, int(rng.integers(1, min(L, 4) + 1)), rng.uniform(0, 8), pi)
    if kind == "mixture":
        positive, negative = np.exp(rng.uniform(-3, 3, 2))
        law = gaussian_mixture(mean=rng.uniform(0, 3), var_pos=positive, var_neg=negative, pi=pi)
    elif kind == "attention":
        cos = rng.choice([-1, 0, 1, rng.uniform(-1, 1)], p=[0.1, 0.1, 0.1, 0.7])
        law = attention(model, temperature=rng.uniform(0, 10), cos=cos)
    else:
        law = {"pooled": pooled, "vectorized": vectorized}[kind](model)
    alpha, lam = np.exp(rng.uniform(np.log(0.05), np.log(200))), 10 ** rng.uniform(-8, 6)
    return law, alpha, lam, bool(rng.integers(2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "draws"), [("pooled", 130), ("vectorized", 130), ("mixture", 130), ("attention", 16)]
)
def test_any_point_of_the_box_is_solved_and_right(kind, draws):
    rng, refused = np.random.default_rng(20), 0
    for _ in range(draws):
        law, alpha, lam, intercept = random_point(rng, kind)
        try:
            point = predict_readout(law, alpha, lam, intercept=intercept)
        except ConvergenceError as error:
            refused, point = refused + 1, error.estimate
        found = [getattr(point, number) for number in NUMBERS]
        assert np.all(np.isfinite(found)), (law, alpha, lam, intercept)
        if point.converged:
            o = order_parameters(law, alpha, lam, intercept=intercept)
            assert o.residual < 1e-9
            size = 201 if law.query else 2001
            allowed = 2e-4 if law.query else 1e-6
            assert violation(law, alpha, lam, intercept, o, size) < allowed
            # no readout is better on its training set than the one that minimises the objective
            assert point.train_loss + lam / 2 * point.norm**2 <= math.log(2) * (1 + 1e-9)
        square = predict_readout(law, alpha, lam, loss="square", intercept=intercept)
        assert np.all(np.isfinite([getattr(square, number) for number in NUMBERS]))
    assert refused <= 0.01 * draws


def test_corners_of_the_box():
    for theta, pi, cos, T in [(0, 0.5, 1, 2), (8, 0.01, -1, 10), (8, 0.99, 0, 0), (3, 0.01, 1, 10)]:
        law = attention(SparseTokens(10, 2, theta, pi), temperature=T, cos=cos, resolution=100)
        for alpha in (0.05, 200):
            for lam in (1e-8, 1e6):
                o = order_parameters(law, alpha, lam)
                assert o.residual < 1e-9
                assert violation(law, alpha, lam, True, o, 801) < 1e-4


def test_negative_cosine_turns_the_readout_but_not_the_signal_it_sees():
    a, b = (attention(MODEL, temperature=0.5, cos=s, resolution=300) for s in (0.3, -0.3))
    o, p = (order_parameters(law, 3.0, 0.01) for law in (a, b))
    assert o.kappa > 0
    assert p.kappa > 0
    assert predict_readout(a, 3.0, 0.01).test_error < predict_readout(b, 3.0, 0.01).test_error


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_starts_and_curves_change_nothing(loss):
    law = attention(MODEL, temperature=2.0, cos=0.8, resolution=500)
    alphas = np.geomspace(0.1, 100, 6)
    curve = learning_curve(law, alphas, 1e-4, loss=loss)
    for alpha, point in zip(alphas, curve, strict=True):
        cold = predict_readout(law, alpha, 1e-4, loss=loss)
        for number in NUMBERS:
            assert getattr(point, number) == pytest.approx(
                getattr(cold, number), abs=1e-7, rel=1e-7
            )


# Known answers --------------------------------------------------------------------------------


def test_published_numbers_for_a_gaussian_mixture():
    law = gaussian_mixture(var_pos=0.5, var_neg=0.5)
    point = predict_readout(law, 3.0, 0.01 / 3, intercept=False)
    assert point.test_error == pytest.approx(0.13102337, abs=6e-9)
    assert point.train_loss == pytest.approx(0.05858808, abs=6e-9)
    point = predict_readout(law, 0.16737, 0.01 / 0.16737, intercept=False)
    assert point.test_error == pytest.approx(0.24779991, abs=1e-6)  # α is known to five digits


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("variance", "alpha"), [(1.0, 2.0), (0.5, 0.7), (3.0, 10.0)])
def test_infinite_ridge_is_the_plain_average(loss, variance, alpha):
    law = gaussian_mixture(var_pos=variance, var_neg=variance)
    exact = math.erfc(math.sqrt(alpha / (2 * variance * (variance + alpha)))) / 2
    for intercept in (True, False):
        point = predict_readout(law, alpha, math.inf, loss=loss, intercept=intercept)
        assert point.test_error == pytest.approx(exact, abs=1e-8)
        assert (point.signal, point.norm) == (0, 0)


@pytest.mark.parametrize(("variance", "alpha"), [(1.0, 2.0), (0.4, 1.1), (3.0, 10.0)])
def test_ridgeless_square_loss(variance, alpha):
    law = gaussian_mixture(var_pos=variance, var_neg=variance)
    point = predict_readout(law, alpha, 0.0, loss="square", intercept=False)
    D = 1 / variance
    assert point.test_error == pytest.approx(
        norm.cdf(-D * math.sqrt(1 - 1 / alpha) / math.sqrt(D + 1 / alpha)), abs=1e-9
    )
    under = predict_readout(law, 0.5, 0.0, loss="square")
    near = predict_readout(law, 0.5, 1e-10, loss="square")
    assert under.train_loss == 0
    for number in NUMBERS:
        assert getattr(under, number) == pytest.approx(getattr(near, number), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_population_minimiser_of_two_gaussians_is_the_best_linear_rule(loss):
    for law, distance in ((pooled(MODEL), MODEL.snr), (vectorized(MODEL), MODEL.snr)):
        limit = predict_readout(law, math.inf, 0.0, loss=loss)
        assert limit.test_error == pytest.approx(norm.cdf(-distance / 2), abs=1e-9)
        assert limit.train_error == pytest.approx(limit.test_error, abs=1e-9)
    if loss == "logistic":  # the logarithm of the likelihood ratio: w = Lδ/√L along ξ
        point = predict_readout(pooled(MODEL), math.inf, 0.0)
        assert point.signal == pytest.approx(MODEL.theta * MODEL.R, rel=1e-8)
        assert point.bias == pytest.approx(-(MODEL.snr**2) / 2, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_errors_approach_their_limit_like_one_over_alpha(laws, loss):
    law = laws["mixture"]
    limit = predict_readout(law, math.inf, 0.0, loss=loss)
    gaps = [
        predict_readout(law, alpha, 0.0, loss=loss).test_error - limit.test_error
        for alpha in (1e4, 1e5)
    ]
    assert math.log10(gaps[0] / gaps[1]) == pytest.approx(1, abs=0.01)


def test_no_ridge_with_a_heavy_majority_gives_the_log_odds():
    law = pooled(replace(MODEL, theta=0.0, pi=0.01))
    point = predict_readout(law, 1e4, 1.0)
    assert point.bias == pytest.approx(math.log(0.01 / 0.99), rel=1e-4)
    assert point.test_error == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_attention_at_temperature_zero_is_pooling(loss):
    for alpha, lam in ((0.7, 1e-3), (8.0, 0.1)):
        plain = predict_readout(pooled(MODEL), alpha, lam, loss=loss)
        assert (
            predict_readout(attention(MODEL, temperature=0, cos=0.6), alpha, lam, loss=loss)
            == plain
        )
        cold = attention(MODEL, temperature=1e-4, cos=0.6)
        point = predict_readout(cold, alpha, lam, loss=loss)
        assert point.test_error == pytest.approx(plain.test_error, abs=1e-3)
        assert point.train_loss == pytest.approx(plain.train_loss, abs=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_vectorized_is_pooled_at_a_tenth_of_ratio_and_ridge(loss):
    for alpha, lam in ((3.0, 1e-4), (40.0, 0.2)):
        wide = predict_readout(vectorized(MODEL), alpha, lam, loss=loss)
        narrow = predict_readout(pooled(MODEL), alpha / MODEL.L, lam / MODEL.L, loss=loss)
        for number in ("test_error", "train_loss", "train_error", "bias"):
            assert getattr(wide, number) == pytest.approx(getattr(narrow, number), rel=1e-8, abs=0)


def test_training_loss_vanishes_below_capacity_and_not_above():
    law, capacity = pooled(MODEL), 2.9501
    below = [predict_readout(law, 0.9 * capacity, 10.0**k).train_loss for k in (-3, -5, -7)]
    above = [predict_readout(law, 1.1 * capacity, 10.0**k).train_loss for k in (-3, -5, -7)]
    assert below[0] > 4 * below[1] > 100 * below[2]
    assert above[1] == pytest.approx(above[2], rel=1e-3)
    with pytest.raises(ConvergenceError, match="separable; take a larger lam") as error:
        predict_readout(law, 0.9 * capacity, 0.0)
    assert error.value.estimate.train_loss < 1e-6
    assert predict_readout(law, 1.1 * capacity, 0.0).train_loss == pytest.approx(above[2], abs=1e-4)


@pytest.mark.parametrize("alpha", [0.2, 0.999, 1.0])
def test_with_fewer_samples_than_dimensions_the_data_are_separable(laws, alpha):
    for law in laws.values():
        with pytest.raises(ConvergenceError, match="separable; take a larger lam") as caught:
            predict_readout(law, alpha * law.copies, 0.0)
        assert caught.value.estimate.train_error == 0


def test_a_start_without_force_is_refused_by_name():
    """The ridgeless square loss fits every label below α = 1: no force is left to start from."""
    law = pooled(MODEL)
    still = order_parameters(law, 0.5, 0.0, loss="square")
    assert still.zeta == 0
    assert predict_readout(law, 0.4, 0.0, loss="square", start=still).train_loss == 0
    for bad in (still, replace(still, rest=0.0, zeta=1.0), replace(still, zeta=math.nan)):
        with pytest.raises(ValueError, match=r"^start = .* is not allowed"):
            predict_readout(law, 2.0, 0.1, start=bad)


@pytest.mark.parametrize("lam", [1e-3, 0.3])
@pytest.mark.parametrize("name", ["pooled", "mixture"])
def test_training_errors_are_where_the_proximal_point_has_the_wrong_sign(laws, name, lam):
    law, loss, G = laws[name], get_loss("logistic"), np.linspace(-8, 8, 20_001)
    o, density = order_parameters(law, 2.0, lam), norm.pdf(G) * (G[1] - G[0])
    wrong = 0.0
    for y, a, c, r, weight in zip(*law.nodes, strict=True):
        mu = law.cos * o.nu + math.sqrt(1 - law.cos**2) * o.kappa
        mean = law.theta * a * mu + c * o.nu + o.bias
        u = loss.prox(mean + r * math.hypot(o.kappa, o.rest) * G, o.chi * r**2, y)
        wrong += weight * density[y * u < 0].sum()
    assert predict_readout(law, 2.0, lam).train_error == pytest.approx(wrong, rel=2e-3)


def test_interpolation_threshold_has_no_solution():
    with pytest.raises(ConvergenceError, match="interpolation threshold"):
        predict_readout(pooled(MODEL), 1.0, 0.0, loss="square")


@pytest.mark.parametrize(
    ("alpha", "lam", "loss", "message"),
    [
        (0, 1.0, "logistic", "alpha = 0 is not allowed"),
        (math.nan, 1.0, "logistic", "alpha = nan is not allowed"),
        (1.0, -1e-3, "square", "lam = -0.001 is not allowed"),
        (1.0, 1.0, "cube", "loss = 'cube' is not allowed"),
    ],
)
def test_refuses_what_makes_no_sense(alpha, lam, loss, message):
    with pytest.raises(ValueError, match=message):
        predict_readout(pooled(MODEL), alpha, lam, loss=loss)


def test_square_loss_agrees_with_the_textbook_root_for_the_mixture():
    """One scalar equation, then overlaps by elementary algebra (equal variances, no intercept)."""
    variance, alpha, lam = 0.7, 1.6, 0.05
    chi = brentq(
        lambda x: 1 / (alpha * x) - lam - variance / (1 + x * variance), 1e-9, 1e9, xtol=1e-14
    )
    V = variance / (1 + chi * variance)
    kappa = V / variance / (V / variance + lam + V)
    point = predict_readout(
        gaussian_mixture(var_pos=variance, var_neg=variance), alpha, lam, loss="square",
        intercept=False,
    )  # fmt: skip
    assert point.signal == pytest.approx(kappa, rel=1e-10)


# Theory = simulation --------------------------------------------------------------------------

FALSE_ALARM = 1e-5  # of each of the 21 tests below: 2e-4 together, seeds fixed


@pytest.mark.false_alarm(1e-05)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("alpha", "lam"),
    [(1.2, 1e-2), pytest.param(2.5, 1e-1, marks=pytest.mark.slow), (0.4, 1.0)],
)
@pytest.mark.parametrize("name", ["pooled", "attention", "mixture"])
def test_theory_meets_simulation(laws, name, loss, alpha, lam):
    law, d = laws[name], 400
    trials = [
        simulate_readout(law, d, alpha, lam, np.random.default_rng([7, k]), loss=loss)
        for k in range(40)
    ]
    theory = predict_readout(law, alpha, lam, loss=loss)
    rare = theory.train_error < 2e-3  # too few errors in training for a t-test
    fields = [number for number in NUMBERS if not (rare and number == "train_error")]
    agree(theory, trials, claim="readout-test", fields=fields, false_alarm=FALSE_ALARM)
    more = predict_readout(law, 1.2 * alpha, lam, loss=loss)
    with pytest.raises(AgreementError):
        agree(more, trials, claim="more-samples", fields=fields, false_alarm=FALSE_ALARM)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-05)
@pytest.mark.parametrize("loss", LOSSES)
def test_vectorized_theory_is_met_in_the_limit_of_large_dimension(laws, loss):
    """At finite d the L−1 uneven directions of W cost O(1/d): extrapolate the errors to d = ∞."""
    law, sizes, alpha, lam = laws["vectorized"], [30, 60, 120], 5.0, 0.05

    def trial(d: int, k: int) -> Readout:
        return simulate_readout(law, d, alpha, lam, np.random.default_rng([d, k]), loss=loss)

    trials = [[trial(d, k) for k in range(20)] for d in sizes]
    fields = ["test_error", "train_loss", "signal", "norm", "bias"]
    options = {"sizes": sizes, "fields": fields, "false_alarm": FALSE_ALARM}
    agree(predict_readout(law, alpha, lam, loss=loss), trials, claim="vectorized", **options)
    more = predict_readout(law, 1.2 * alpha, lam, loss=loss)
    with pytest.raises(AgreementError):
        agree(more, trials, claim="more-samples", **options)


@pytest.mark.false_alarm(1e-05)
def test_without_intercept_theory_meets_simulation(laws):
    theory = predict_readout(laws["attention"], 1.5, 0.05, intercept=False)
    trials = [
        simulate_readout(
            laws["attention"], 400, 1.5, 0.05, np.random.default_rng([9, k]), intercept=False
        )
        for k in range(20)
    ]
    fields = ["test_error", "train_loss", "signal", "norm"]
    agree(theory, trials, claim="readout-no-intercept", fields=fields, false_alarm=FALSE_ALARM)
    more = predict_readout(laws["attention"], 1.8, 0.05, intercept=False)
    with pytest.raises(AgreementError):
        agree(more, trials, claim="more-samples", fields=fields, false_alarm=FALSE_ALARM)


@pytest.mark.slow
@pytest.mark.parametrize(("temperature", "cos"), [(1.0, 1.0), (3.0, 1.0), (2.0, 0.977)])
def test_few_nodes_judge_the_population_minimiser_as_all_points_do(temperature, cos):
    """Its score is a step in the coefficients; read from the nodes it was up to 7 % too good."""
    model = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
    few, all_of_them = (
        predict_readout(
            attention(model, temperature=temperature, cos=cos, resolution=resolution), np.inf, 0.0
        ).test_error
        for resolution in (1536, None)
    )
    assert few == pytest.approx(all_of_them, rel=1e-3)
    assert few > 0.0177  # no rule is better: Bayes
