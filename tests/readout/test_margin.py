"""The largest margin: program, limit of the logistic readout, hyperplanes of real data."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr

from needle.data.classifiers import attention, gaussian_mixture, pooled
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.kit.records import ConvergenceError
from needle.readout import margin
from needle.readout.capacity import predict_capacity
from needle.readout.limit import learning_curve, predict_readout
from needle.readout.margin import fit_margin, predict_margin, simulate_margin
from needle.readout.reuse import predict_reuse
from utils.agreement import agree

PAPER = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
MIXTURE = gaussian_mixture(var_pos=0.5, var_neg=1.5, pi=0.3)
LAWS = {
    "pooled": (pooled(PAPER), 1.0),
    "mixture": (MIXTURE, 1.0),
    "attention": (attention(PAPER, temperature=2.0, cos=0.8), 5.0),
    "negative": (attention(SparseTokens(6, 2, 2.5, 0.25), temperature=1.5, cos=-0.6), 1.2),
}


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", LAWS)
def test_the_limit_of_the_logistic_readout(name, intercept):
    """Error and direction approach theirs like 1/|w|, and |w| grows like log(1/λ).

    From λ = 1e-6 to 1e-10 |w| doubles while (value − limit)·|w| stays within 6 %: a limit that is
    off by 12 % of the difference left at 1e-10, a few 1e-4 of the error, fails.
    """
    law, alpha = LAWS[name]
    alpha = alpha if intercept else alpha / 2
    found = predict_margin(law, alpha, intercept=intercept)
    ridges = [1e-2, 1e-4, 1e-6, 1e-8, 1e-10]
    *_, far, _, last = learning_curve(law, alpha, ridges, intercept=intercept)
    assert last.norm > 1.5 * far.norm
    for field, values in {
        "test_error": (far.test_error, last.test_error),
        "signal": (far.signal / far.norm, last.signal / last.norm),
        "bias": (far.bias / far.norm, last.bias / last.norm),
    }.items():
        first, second = (
            (value - getattr(found, field)) * point.norm
            for value, point in zip(values, (far, last), strict=True)
        )
        assert second == pytest.approx(first, rel=0.06, abs=1e-6), field
    assert found.margin < np.log(1e10) / last.norm  # scores do not outgrow log(1/λ)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("alpha", "seed"), [(0.4, 0), (1.0, 1), (1.9, 2)])
def test_against_plain_monte_carlo_and_a_general_solver(alpha, seed, intercept):
    """The same program with G drawn, by SLSQP; the mean repair of 4·10⁵ draws is good to 0.5 %."""
    rng = np.random.default_rng(seed)
    n = 200_000
    G = rng.standard_normal(n)
    G, y = np.append(G, -G), np.where(rng.random(2 * n) < MIXTURE.pi, 1, -1)
    y[: round(2 * n * MIXTURE.pi)], y[round(2 * n * MIXTURE.pi) :] = 1, -1
    G = rng.permutation(G)
    r = np.where(y > 0, 0.5**0.5, 1.5**0.5)

    def room(x):
        kappa, rho, b = x[0], x[1], x[2] * intercept
        repair = np.maximum(np.hypot(rho, kappa) * G + (1 - kappa - y * b) / r, 0)
        return rho - np.sqrt(alpha * np.mean(repair**2))

    best = minimize(
        lambda x: x[0] ** 2 + x[1] ** 2, [5.0, 20.0, 0.0], method="SLSQP",
        constraints={"type": "ineq", "fun": room}, options={"ftol": 1e-10, "maxiter": 200},
    )  # fmt: skip
    kappa, rho, b = best.x[0], best.x[1], best.x[2] * intercept
    error = np.mean(ndtr(-(kappa + y * b) / r / np.hypot(kappa, rho)))
    found = predict_margin(MIXTURE, alpha, intercept=intercept)
    assert found.margin == pytest.approx(np.hypot(kappa, rho) ** -1, rel=0.01)
    assert found.test_error == pytest.approx(error, rel=0.01)
    assert found.signal == pytest.approx(kappa / np.hypot(kappa, rho), rel=0.01)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-05)
@pytest.mark.parametrize(
    ("law", "alpha", "sizes"),
    [
        (pooled(PAPER), 1.0, (40, 80, 160)),
        (pooled(SparseTokens(L=5, R=2, theta=2.0, pi=0.2)), 1.5, (40, 80, 160)),
        (attention(PAPER, temperature=2.0, cos=0.8), 4.0, (20, 40, 80)),
        (attention(SparseTokens(6, 2, 3.0, 0.3), temperature=1.0, cos=0.6), 1.0, (20, 40, 80)),
        (vectorized(SparseTokens(L=4, R=1, theta=3.0, pi=0.5)), 4.0, (10, 20, 40)),
    ],
    ids=["pooled", "rare", "attention", "two-needles", "vectorized"],
)
@pytest.mark.parametrize("intercept", [True, False])
def test_hyperplanes_of_real_data(law, alpha, sizes, intercept):
    """All four numbers, extrapolated in d; the false-alarm rate is that of `agree`, 1e-5 a case."""
    if not intercept:
        alpha = alpha * predict_capacity(law, intercept=False) / predict_capacity(law)
    runs = [
        [
            simulate_margin(law, d, alpha, np.random.default_rng([d, k]), intercept=intercept)
            for k in range(count)
        ]
        for d, count in zip(sizes, (180, 90, 60), strict=True)
    ]
    fields = ["margin", "test_error", "signal"] + ["bias"] * intercept
    theory = predict_margin(law, alpha, intercept=intercept)
    agree(theory, runs, sizes=sizes, fields=fields, claim="margin", false_alarm=1e-5)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-5)
def test_a_wrong_constant_is_caught():
    """The margin at α 15 % off, against the same runs as above: its z is 6.4 ± 0.5."""
    law = pooled(PAPER)
    runs = [
        [simulate_margin(law, d, 1.0, np.random.default_rng([d, k])) for k in range(count)]
        for d, count in ((40, 120), (80, 60), (160, 40))
    ]
    with pytest.raises(AssertionError):
        agree(predict_margin(law, 1.15), runs, sizes=(40, 80, 160), claim="m", false_alarm=0.05)


def test_at_the_capacity_the_margin_closes():
    for law, _ in LAWS.values():
        limit = predict_capacity(law)
        near = [predict_margin(law, share * limit).margin for share in (0.5, 0.9, 0.99)]
        assert near[0] > near[1] > near[2] > 0
        assert near[2] < 0.1 * near[0]
        with pytest.raises(ValueError, match="alpha must be below the capacity"):
            predict_margin(law, 1.01 * limit)


def test_symmetries():
    law, scaled = (
        gaussian_mixture(mean=k, var_pos=0.5 * k * k, var_neg=1.5 * k * k, pi=0.3) for k in (1, 3)
    )
    one, three = predict_margin(law, 1.2), predict_margin(scaled, 1.2)
    assert three.margin == pytest.approx(3 * one.margin, rel=1e-8)
    assert three.bias == pytest.approx(3 * one.bias, rel=1e-8)
    assert three.test_error == pytest.approx(one.test_error, rel=1e-8)
    vec, mean = (
        predict_margin(law(PAPER), alpha) for law, alpha in ((vectorized, 10), (pooled, 1))
    )
    assert vec.test_error == pytest.approx(mean.test_error, rel=1e-8)
    assert vec.margin == pytest.approx(mean.margin * 10**0.5, rel=1e-8)
    query = attention(PAPER, temperature=1e-6, cos=0.3)
    assert predict_margin(query, 1.0).test_error == pytest.approx(mean.test_error, rel=1e-2)


@pytest.mark.slow
def test_anywhere_in_the_box_there_is_an_answer():
    rng = np.random.default_rng(4)
    for _ in range(8):
        L = int(np.exp(rng.uniform(np.log(2), np.log(1e4))))
        model = SparseTokens(
            L, int(rng.integers(1, min(L, 5) + 1)), *rng.uniform([0, 0.02], [6, 0.98])
        )
        law = attention(model, temperature=rng.exponential(2), cos=rng.uniform(-1, 1))
        for either in (law, pooled(model)):
            for share in (1e-3, 0.3, 0.95):
                found = predict_margin(either, share * predict_capacity(either))
                assert found.margin > 0
                assert 0 < found.test_error < 1


def programme(F, y, intercept):
    """The shortest w with all scores at least 1, by SLSQP."""
    p = F.shape[1]
    start = fit_margin(F, y, intercept=intercept)
    best = minimize(
        lambda v: v[:p] @ v[:p] / 2, 1.3 * np.append(start.w, start.b) / start.margin,
        constraints={"type": "ineq", "fun": lambda v: y * (F @ v[:p] + v[p] * intercept) - 1},
        method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    return 1 / np.linalg.norm(best.x[:p])


@pytest.mark.parametrize("intercept", [True, False])
def test_hyperplane_against_a_general_solver(intercept):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(3, 25)), int(rng.integers(2, 12))
        w = rng.standard_normal(p)
        F = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3) + intercept * rng.normal()
        y = np.where(F @ w > (np.median(F @ w) if intercept else 0), 1, -1)
        if len(set(y)) < 2:
            continue
        w, b, margin = fit_margin(F, y, intercept=intercept)
        assert np.linalg.norm(w) == pytest.approx(1)
        assert (y * (F @ w + b)).min() == pytest.approx(margin, rel=1e-7)
        assert margin == pytest.approx(programme(F, y, intercept), rel=1e-5)


def test_a_growing_set_of_rows_equals_all_rows():
    """Far more rows than the first working set of 3d: the nearest rows carry the hyperplane."""
    law = attention(PAPER, temperature=2.0, cos=0.95)
    F, y = law.sample(600, 60, np.random.default_rng(1))
    w, b, margin = fit_margin(F, y)
    scores = y * (F @ w + b)
    assert scores.min() == pytest.approx(margin, rel=1e-8)
    near = np.flatnonzero(scores < margin * (1 + 1e-6))
    rows = np.column_stack([F, np.ones(600)])[near] * y[near, None]
    c = np.linalg.lstsq(rows.T, np.append(w, 0), rcond=None)[0]  # w is a positive sum of them
    assert c.min() > 0
    np.testing.assert_allclose(c @ rows, np.append(w, 0), atol=1e-8)


def test_refusals():
    with pytest.raises(ValueError, match="alpha = 0"):
        predict_margin(MIXTURE, 0)
    with pytest.raises(ValueError, match="law = 3"):
        predict_margin(3, 1.0)
    with pytest.raises(ValueError, match="intercept = 1"):
        predict_margin(MIXTURE, 1.0, intercept=1)
    with pytest.raises(ValueError, match="no hyperplane separates"):
        fit_margin([[0.0], [1.0], [2.0]], [1, -1, 1])
    with pytest.raises(ValueError, match="both labels"):
        fit_margin([[0.0], [1.0]], [1, 1])
    with pytest.raises(ValueError, match="rng = 0"):
        simulate_margin(MIXTURE, 10, 1.0, 0)
    loud = attention(SparseTokens(6156, 5, 7.8, 0.09), temperature=50.0, cos=1.0)
    with pytest.raises(ConvergenceError, match="margin") as caught:
        predict_margin(loud, 4e5)
    assert caught.value.estimate.margin > 0


def test_a_hyperplane_that_is_not_the_largest_margin_is_refused(monkeypatch):
    """Rows that should be equally near, and are off by 1e-5 of their distance."""
    found = margin._rest_on

    def slightly_off(rows, y, intercept):
        w, b = found(rows, y, intercept)
        return w * (1 - 1e-5), b * (1 - 1e-5)

    monkeypatch.setattr(margin, "_rest_on", slightly_off)
    with pytest.raises(ConvergenceError, match="equally near") as caught:
        fit_margin([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.5]], [1, 1, -1])
    assert caught.value.estimate.margin > 0


def test_a_singular_system_is_not_an_answer(monkeypatch):
    """Where a step cannot be solved for, the answer so far comes with a `ConvergenceError`."""

    def singular(*_):
        raise np.linalg.LinAlgError("singular")

    law = pooled(PAPER)
    monkeypatch.setattr(np.linalg, "solve", singular)
    with pytest.raises(ConvergenceError, match="was not found") as caught:
        predict_margin(law, 1.0)
    assert caught.value.estimate.margin > 0
    for loss in ("logistic", "square"):
        with pytest.raises(ConvergenceError, match="take a larger lam"):
            predict_readout(law, 2.0, 0.1, loss=loss)
    with pytest.raises(ConvergenceError):
        predict_reuse(SparseTokens(4, 1, 2.0, 0.5), 2.0, 0.1, temperature=1.0)
    monkeypatch.undo()
    F, y = law.sample(6, 8, np.random.default_rng(0))
    monkeypatch.setattr(margin, "nnls", lambda *_, **__: unfinished())
    with pytest.raises(ConvergenceError, match="least squares: too many") as caught:
        fit_margin(F, y)
    assert caught.value.estimate.margin > 0


def unfinished():
    raise RuntimeError("too many iterations")
