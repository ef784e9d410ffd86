"""The two gradient steps: exact draws against literal ones, the limit against both."""

import math
from dataclasses import fields
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from needle.data.tokens import SparseTokens
from needle.kit.losses import get_loss
from needle.kit.nodes import gaussian_nodes
from needle.kit.records import Alignment
from needle.steps.alignment import predict_alignment, simulate_alignment
from utils.agreement import agree

NAMES = [field.name for field in fields(Alignment) if field.name != "rate"]
PAPER = SparseTokens(L=10, R=3, theta=6.0, pi=0.2)


def draws(model, d, n, trials, rng, **options):
    """Array (trials, len(NAMES)) of simulated alignments on n samples."""
    records = (simulate_alignment(model, d, n / d, rng, **options) for _ in range(trials))
    return np.array([[getattr(record, name) for name in NAMES] for record in records])


# Each case makes 3 comparisons of 8 quantities at p < 1e-7: 2.4e-6 false alarms a case.
@pytest.mark.false_alarm(2.4e-6)
@pytest.mark.parametrize(
    ("model", "d", "n", "options"),
    [
        pytest.param(PAPER, 40, 80, {}, marks=pytest.mark.slow),
        pytest.param(
            PAPER, 40, 80, {"loss": "square", "lr_w": 1.5, "lr_b": -0.3}, marks=pytest.mark.slow
        ),
        pytest.param(
            SparseTokens(30, 2, 9.0, 0.5),
            12,
            60,
            {"lr_w": 3.0, "lr_b": 4.0},
            marks=pytest.mark.slow,
        ),
        (SparseTokens(2, 1, 1.0, 0.5), 3, 6, {}),
        pytest.param(
            SparseTokens(3, 1, 0.0, 0.5), 2, 5, {"loss": "square"}, marks=pytest.mark.slow
        ),
        pytest.param(SparseTokens(4, 4, 1.0, 0.3), 2, 1, {"lr_w": 20.0}, marks=pytest.mark.slow),
        pytest.param(
            SparseTokens(5, 2, 3.0, 0.9),
            2,
            2,
            {"loss": "square", "lr_b": 2.0},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            SparseTokens(2, 2, 2.0, 0.7), 1, 2, {"lr_w": 20.0, "lr_b": 2.0}, marks=pytest.mark.slow
        ),
        (SparseTokens(6, 2, 4.0, 0.4), 1, 8, {"loss": "square", "lr_w": 0.1, "lr_b": 0.0}),
        (SparseTokens(4, 1, 3.0, 0.3), 3, 6, {"loss": "hinge", "lr_w": 3.0}),
        (SparseTokens(4, 2, 2.0, 0.2), 3, 6, {"loss": "exponential", "balanced": True}),
        pytest.param(PAPER, 40, 80, {"balanced": True, "lr_b": 3.0}, marks=pytest.mark.slow),
    ],
)
def test_exact_draws_have_the_law_of_the_literal_steps(model, d, n, options):
    rng = np.random.default_rng(20)
    exact, dense = (
        draws(model, d, n, 2000, rng, method=method, **options) for method in ("exact", "dense")
    )
    for name, a, b in zip(NAMES, exact.T, dense.T, strict=True):
        a, b = np.round(a, 12), np.round(b, 12)
        if np.ptp([a, b]) == 0:
            continue
        squares = [(x - np.mean([a, b])) ** 2 for x in (a, b)]
        tests = {
            "law": stats.ks_2samp(a, b, method="asymp"),
            "mean": stats.ttest_ind(a, b, equal_var=False),
            "spread": stats.ttest_ind(*squares, equal_var=False),
        }
        for what, test in tests.items():
            assert test.pvalue > 1e-7, (name, what, test)


def literal_squares(model, d, n, trials, rng):
    """Squares of w⁽¹⁾ along and across ξ, of signal, echo, noise, overlap and norm of the query."""
    X, y, where = (x.reshape(trials, n, *x.shape[1:]) for x in model.sample(trials * n, d, rng))
    w, b = np.einsum("tn,tnld->td", y / 4, X) / (n * model.L), (y / 4).mean(axis=1)
    heights = np.einsum("tnld,td->tnl", X, w)
    means = heights.mean(axis=2)
    force = y / (1 + np.exp(y * (means + b[:, None])))
    pull = force[..., None] * (heights - means[..., None]) / (n * model.L)
    query, signal = np.einsum("tnl,tnld->td", pull, X), model.theta * (pull * where).sum((1, 2))
    rest = query - signal[:, None] * np.eye(1, d)
    echo2 = (rest * w).sum(1) ** 2 / (w**2).sum(1)
    lengths = [(w[:, 1:] ** 2).sum(1), (rest**2).sum(1) - echo2, (query**2).sum(1)]
    return np.array(
        [w[:, 0] ** 2, lengths[0], signal**2, echo2, lengths[1], query[:, 0] ** 2, lengths[2]]
    )


@pytest.mark.slow
@pytest.mark.false_alarm(5e-6)
@pytest.mark.parametrize("theta", [0.0, 2.0])
def test_exact_draws_have_the_squares_of_the_literal_steps(theta):
    """Of 20 000 tiny draws, at p < 2e-7 for each of 7 squares, which are skew: 5e-6 in all.

    Without signal each kind of chance has a square of its own: a tenth more of it is refused.
    """
    model, d, n = SparseTokens(3, 1, theta, 0.5), 3, 4
    dense = literal_squares(model, d, n, 100_000, np.random.default_rng(21))
    exact = draws(model, d, n, 20_000, np.random.default_rng(22))
    cos, length, _, norm, overlap, signal, echo, noise = exact.T
    w = cos * length
    exact = np.array([w, length * np.sqrt(1 - cos**2), signal, echo, noise, overlap, norm]) ** 2
    kept = exact.any(axis=1)
    exact, dense = exact[kept], dense[kept]
    error = np.sqrt(exact.var(axis=1) / exact.shape[1] + dense.var(axis=1) / dense.shape[1])
    limit = stats.norm.isf(1e-7)
    assert np.abs((exact.mean(axis=1) - dense.mean(axis=1)) / error).max() < limit
    if theta == 0:
        assert (1.1**2 * exact.mean(axis=1) - dense.mean(axis=1) > limit * error).all()


@pytest.mark.parametrize("method", ["exact", "dense"])
def test_a_draw_is_the_sum_of_its_terms(method):
    record = simulate_alignment(PAPER, 30, 2.0, np.random.default_rng(5), method=method)
    parallel = record.signal * record.readout_cos + record.echo
    gap = record.query_norm**2 - parallel**2
    sideways = record.signal * math.sqrt(1 - record.readout_cos**2)
    assert abs(math.sqrt(gap) - record.noise) <= abs(sideways) * (1 + 1e-9)
    assert record.query_cos == pytest.approx(record.query_overlap / record.query_norm)


@pytest.mark.false_alarm(3e-5)
@pytest.mark.parametrize(
    ("model", "alpha0", "options"),
    [
        (PAPER, 2.0, {}),
        (PAPER, 0.3, {"loss": "square", "lr_w": 1.0, "lr_b": 0.2}),
        (SparseTokens(10, 1, 1.0, 0.1), 5.0, {"lr_b": 0.0}),
        (SparseTokens(1000, 1, 40.0, 0.5), 3.0, {}),
        (SparseTokens(2, 1, 2.0, 0.8), 1.0, {"lr_w": 50.0, "lr_b": 3.0}),
        (SparseTokens(7, 7, 0.5, 0.5), 1.0, {}),
    ],
)
def test_limit_agrees_with_draws_at_large_dimension(model, alpha0, options):
    """Extrapolated in 1/d, 8 quantities, false alarm 3e-5 for each case."""
    rng, sizes = np.random.default_rng(6), (1000, 2000, 8000)
    trials = [
        [simulate_alignment(model, d, alpha0, rng, **options) for _ in range(220)] for d in sizes
    ]
    limit = predict_alignment(model, alpha0, **options)
    moving = [name for name in NAMES if getattr(limit, name) != 0]
    agree(limit, trials, sizes=sizes, claim="limit", fields=moving, false_alarm=3e-5)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-05)
def test_bias_of_the_cosine_is_of_order_one_over_d():
    """d·(mean − limit) is the same number at two sizes: z-test, false alarm 1e-5."""
    rng, limit = np.random.default_rng(7), predict_alignment(PAPER, 2.0).query_cos
    scaled = [
        d * (draws(PAPER, d, 2 * d, 8000, rng)[:, NAMES.index("query_cos")] - limit)
        for d in (200, 400)
    ]
    assert stats.ttest_ind(*scaled, equal_var=False).pvalue > 1e-5
    assert abs(np.mean(scaled[0])) > 10 * stats.sem(scaled[0])


def by_quadrature(model, alpha0, loss, lr_w, lr_b):
    """The limit written out once more, with adaptive quadrature; and the rate, at alpha0 = ∞."""
    L, R, theta, pi = model.L, model.R, model.theta, model.pi
    k, first = {"logistic": 0.5, "square": 1.0}[loss], get_loss(loss).first
    omega = lr_w * pi * k * theta * R / L
    rho2 = omega**2 + (lr_w * k) ** 2 / (alpha0 * L)
    sd = math.sqrt(rho2 / L)

    def mean(power, labels):
        total = 0.0
        for y in labels:
            center = lr_w * y * k / (alpha0 * L) + lr_b * k * (2 * pi - 1)
            center += (y > 0) * theta * R * omega / L
            steps = [(u - center) / sd for u in (-40, -10, -3, 0, 3, 10, 40)]
            cuts = sorted({-13, *range(-12, 13, 3), 13, *(x for x in steps if abs(x) < 13)})
            for low, high in pairwise(cuts):
                total += (pi if y > 0 else 1 - pi) * integrate.quad(
                    lambda x, c=center, y=y: stats.norm._pdf(x) * first(c + sd * x, y) ** power,
                    low, high, epsabs=1e-16, epsrel=1e-11,
                )[0]  # fmt: skip
        return total

    s2 = R * (L - R) / L
    A, B = theta**2 * s2 * mean(1, [1]), (L - 1) * mean(1, [1, -1])
    spread = (L - 1) * rho2 * mean(2, [1, -1]) + theta**2 * s2 * omega**2 * mean(2, [1])
    overlap = -(A + B) * omega / L
    norm = math.sqrt(((A + B) * omega) ** 2 + B**2 * (rho2 - omega**2) + spread / alpha0) / L
    values = {
        "readout_cos": omega / math.sqrt(rho2),
        "readout_norm": math.sqrt(rho2),
        "query_overlap": overlap,
        "query_norm": norm,
        "query_cos": overlap / norm,
    }
    return values, (B**2 * (lr_w * k) ** 2 / L + spread) / (2 * (A + B) ** 2 * omega**2)


@pytest.mark.parametrize(
    ("model", "alpha0", "options"),
    [
        (PAPER, 2.0, ("logistic", 0.5, 0.5)),
        (PAPER, 0.05, ("square", 3.0, 0.5)),
        (SparseTokens(2, 1, 3.0, 0.4), 0.01, ("logistic", 200.0, 5.0)),
        (SparseTokens(2, 1, 3.0, 0.4), 0.5, ("logistic", 1e5, 1.0)),
        (SparseTokens(3, 2, 8.0, 0.4), 50.0, ("logistic", 1e3, -2.0)),
        (SparseTokens(10**9, 1, 900.0, 0.5), 2.0, ("logistic", 0.5, 0.5)),
        (SparseTokens(10**9, 1000, 30.0, 0.2), 2.0, ("logistic", 0.5, 0.5)),
        (SparseTokens(10**9, 10**9, 0.1, 0.5), 2.0, ("square", 0.5, 0.5)),
    ],
)
def test_limit_has_a_relative_error_below_1e_8(model, alpha0, options):
    loss, lr_w, lr_b = options
    values, _ = by_quadrature(model, alpha0, *options)
    _, rate = by_quadrature(model, 1e300, *options)
    limit = predict_alignment(model, alpha0, loss=loss, lr_w=lr_w, lr_b=lr_b)
    for name, value in values.items():
        assert getattr(limit, name) == pytest.approx(float(value), rel=1e-8, abs=0), name
    assert limit.rate == pytest.approx(float(rate), rel=1e-8, abs=0)


@pytest.mark.parametrize("L", [2, 10, 10**5, 10**9])
@pytest.mark.parametrize("pi", [0.5, 0.25])
def test_square_loss_keeps_all_digits_at_any_length(L, pi):
    """For the square loss every limit is rational: exact arithmetic, whatever cancels."""
    model, alpha0, lr_w, lr_b = SparseTokens(L, 1, 6.0, pi), 2, Fraction(1, 2), Fraction(3, 4)
    theta, share, n = 6, Fraction(pi), Fraction(1, alpha0 * L)
    omega = lr_w * share * theta / L
    across2 = lr_w**2 * n
    rho2 = omega**2 + across2
    means = {y: y * lr_w * n + lr_b * (2 * share - 1) for y in (1, -1)}
    means[1] += theta * omega / L
    first = {y: means[y] - y for y in means}
    second = {y: first[y] ** 2 + rho2 / L for y in means}
    s2 = Fraction(L - 1, L)
    A = theta**2 * s2 * share * first[1]
    B = (L - 1) * (share * first[1] + (1 - share) * first[-1])
    noise2 = (L - 1) * rho2 * (share * second[1] + (1 - share) * second[-1])
    noise2 = (noise2 + theta**2 * s2 * omega**2 * share * second[1]) / alpha0
    overlap, norm2 = -(A + B) * omega / L, ((A + B) * omega) ** 2 + B**2 * across2 + noise2
    limit = predict_alignment(model, alpha0, loss="square", lr_w=0.5, lr_b=0.75)
    assert limit.query_overlap == pytest.approx(float(overlap), rel=1e-12, abs=0)
    assert limit.query_norm == pytest.approx(math.sqrt(norm2) / L, rel=1e-12, abs=0)
    assert limit.readout_cos == pytest.approx(float(omega) / math.sqrt(rho2), rel=1e-12, abs=0)


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_rate_is_that_of_the_cosine(loss):
    limit = [predict_alignment(PAPER, alpha0, loss=loss) for alpha0 in (1e5, 1e6)]
    rates = [
        (1 - abs(record.query_cos)) * alpha0
        for record, alpha0 in zip(limit, (1e5, 1e6), strict=True)
    ]
    assert rates == pytest.approx([limit[0].rate] * 2, rel=1e-3)
    assert 2 * rates[1] - rates[0] == pytest.approx(limit[0].rate, rel=1e-3)


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_small_rates_align_when_the_signal_outweighs_the_imbalance(loss):
    """πθ²R(L−R)/L > (1−2π)(L−1) decides the sign."""
    rng = np.random.default_rng(8)
    for _ in range(200):
        L = int(rng.integers(2, 60))
        model = SparseTokens(
            L, int(rng.integers(1, L + 1)), rng.uniform(0.1, 6), rng.uniform(0.02, 0.7)
        )
        gap = model.pi * model.theta**2 * model.R * (L - model.R) / L
        gap -= (1 - 2 * model.pi) * (L - 1)
        limit = predict_alignment(model, 1.0, loss=loss, lr_w=1e-4, lr_b=1e-4)
        assert abs(gap) < 1e-2 or np.sign(limit.query_overlap) == np.sign(gap)


def test_long_sequences_collapse():
    """s_q = 1/√(1 + x² + x/θ), x = L/(α₀π²θ³R²), as L → ∞; the last term fades with growing θ."""
    for L in (10**6, 10**9):
        for x in (0.1, 1.0, 10.0):
            theta = (L / (2.0 * 0.25 * x)) ** (1 / 3)
            limit = predict_alignment(SparseTokens(L, 1, theta, 0.5), 2.0)
            assert limit.query_cos == pytest.approx((1 + x**2) ** -0.5, rel=0.02)
            fixed = predict_alignment(SparseTokens(L, 1, 5.0, 0.5), L / (0.25 * 125 * x))
            assert fixed.query_cos == pytest.approx((1 + x**2 + x / 5) ** -0.5, rel=1e-4)


def test_no_parameters_break_the_limit():
    """A thousand draws from a box of many decades: finite, consistent, without a warning."""
    rng = np.random.default_rng(12)
    for _ in range(1000):
        L = int(2 * 10 ** rng.uniform(0, 8.7))
        R = int(min(L, 10 ** rng.uniform(0, 9)))
        model = SparseTokens(L, R, 10 ** rng.uniform(-6, 6), rng.uniform(1e-6, 1 - 1e-6))
        alpha0, lr_w = 10 ** rng.uniform(-6, 9), 10 ** rng.uniform(-6, 6)
        loss = ("logistic", "square")[rng.integers(2)]
        with np.errstate(all="raise", under="ignore"):
            record = predict_alignment(model, alpha0, loss=loss, lr_w=lr_w, lr_b=rng.normal(0, 10))
        values = [getattr(record, name) for name in NAMES]
        assert np.isfinite(values).all(), (model, alpha0, lr_w, loss)
        assert max(abs(record.query_cos), record.readout_cos) <= 1
        assert record.rate >= 0
        assert record.query_cos * record.query_overlap >= 0


def test_corners_of_the_limit():
    silent = predict_alignment(SparseTokens(10, 3, 0.0, 0.5), 1.0)
    assert silent.query_cos == silent.query_overlap == silent.readout_cos == 0
    assert silent.rate == math.inf
    assert silent.query_norm > 0
    full = predict_alignment(SparseTokens(10, 10, 1.0, 0.2), 1.0)
    assert full.signal == 0
    assert full.query_cos < 0 < full.readout_cos
    tuned = predict_alignment(SparseTokens(10, 10, 0.0, 0.2), 1.0, loss="square", lr_b=1.0)
    assert tuned.query_cos == 0
    plenty = predict_alignment(PAPER, 1e300)
    assert plenty.query_cos == plenty.readout_cos == 1


@pytest.mark.false_alarm(1e-9)  # the mean varies by 0.8/√(20·10⁵), 8 times less than allowed
def test_query_loses_its_way_where_signal_and_echo_cancel():
    def overlap(lr_b):
        return predict_alignment(SparseTokens(40, 1, 3.0, 0.2), 2.0, lr_b=lr_b).query_overlap

    low, high = 0.0, 4.0
    assert overlap(low) < 0 < overlap(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if overlap(middle) < 0 else (low, middle)
    model = SparseTokens(40, 1, 3.0, 0.2)
    rng = np.random.default_rng(9)
    assert abs(predict_alignment(model, 2.0, lr_b=low).query_cos) < 1e-12
    trials = [simulate_alignment(model, 10**5, 2.0, rng, lr_b=low).query_cos for _ in range(20)]
    assert abs(np.mean(trials)) < 5 / math.sqrt(20 * 10**5) + 1e-3


@pytest.mark.parametrize("method", ["exact", "dense"])
@pytest.mark.parametrize("L", [2, 3, 50])
def test_tiny_problems_give_finite_numbers(method, L):
    rng = np.random.default_rng(10)
    for d in (1, 2, 3):
        for R in {1, L - 1, L}:
            for n in (1, 2):
                record = simulate_alignment(
                    SparseTokens(L, R, 2.0, 0.5), d, n / d, rng, method=method
                )
                values = [getattr(record, name) for name in NAMES]
                assert np.isfinite(values).all()
                assert abs(record.query_cos) <= 1
                assert d > 1 or record.noise < 1e-12
                assert record.rate is None


@pytest.mark.false_alarm(0.0001)
def test_a_billion_tokens_neither_overflow_nor_cost():
    """η_b = 4 = 1/g'(0) cancels the chance imbalance of the labels, which L would amplify."""
    model, seeds = SparseTokens(10**9, 1, 1500.0, 0.5), range(40)
    limit = predict_alignment(model, 2.0, lr_b=4.0)
    tuned, plain = (
        [simulate_alignment(model, 4000, 2.0, np.random.default_rng(s), lr_b=b) for s in seeds]
        for b in (4.0, 0.5)
    )
    agree(limit, tuned, claim="a-billion-tokens", fields=["query_cos", "readout_norm"])
    assert abs(np.mean([record.query_cos for record in plain])) < 0.2 < limit.query_cos


def test_same_seed_same_draw():
    for method in ("exact", "dense"):
        a, b = (
            simulate_alignment(PAPER, 50, 2.0, np.random.default_rng(1), method=method)
            for _ in range(2)
        )
        assert a == b


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("alpha0", lambda rng: predict_alignment(PAPER, 0.0)),
        ("alpha0", lambda rng: predict_alignment(PAPER, math.nan)),
        ("loss", lambda rng: predict_alignment(PAPER, 1.0, loss="cube")),
        ("lr_w", lambda rng: predict_alignment(PAPER, 1.0, lr_w=0.0)),
        ("lr_b", lambda rng: predict_alignment(PAPER, 1.0, lr_b=math.inf)),
        ("d", lambda rng: simulate_alignment(PAPER, 0, 1.0, rng)),
        ("alpha0", lambda rng: simulate_alignment(PAPER, 4, 0.1, rng)),
        ("alpha0", lambda rng: simulate_alignment(PAPER, 4, -1.0, rng)),
        ("method", lambda rng: simulate_alignment(PAPER, 4, 1.0, rng, method="fast")),
        ("loss", lambda rng: simulate_alignment(PAPER, 4, 1.0, rng, loss="cube")),
        ("rng", lambda rng: simulate_alignment(PAPER, 4, 1.0, 0)),
        ("model", lambda rng: simulate_alignment((10, 3, 6.0, 0.2), 4, 1.0, rng)),
        ("model", lambda rng: predict_alignment(None, 1.0)),
        ("sd", lambda rng: gaussian_nodes(0.0, -1.0)),
    ],
)
def test_bad_input_is_named(argument, call):
    with pytest.raises(ValueError, match=f"^{argument} = "):
        call(np.random.default_rng(0))
