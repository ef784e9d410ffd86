"""When attention loses: laws for long bags against the exact equations, and those against fits."""

import math

import numpy as np
import pytest
from scipy import optimize
from scipy.special import ndtr

from needle.data.classifiers import attention, pooled
from needle.data.tokens import SparseTokens
from needle.readout.crossing import crossing_law, predict_crossing, sharpness_law
from needle.readout.fit import simulate_readout
from needle.readout.limit import predict_readout
from needle.readout.longbags import long_bag_error


def best_error(model, T, cos):
    law = attention(model, temperature=T, cos=cos, resolution=None)
    return predict_readout(law, math.inf, 0.0, loss="square").test_error


def test_long_bags_follow_their_law():
    model = SparseTokens(10**5, 30, 6.0, 0.5)
    law, exact = long_bag_error(model, temperature=0.5, cos=0.3), best_error(model, 0.5, 0.3)
    assert law == pytest.approx(exact, rel=2e-3)
    assert long_bag_error(model, temperature=0.0, cos=0.3) == pytest.approx(
        predict_readout(pooled(model), math.inf, 0.0, loss="square").test_error, rel=1e-9
    )


@pytest.mark.parametrize(
    ("L", "R", "theta", "T", "close"),
    [(10**4, 10, 6.0, 1.0, 0.01), (10**3, 10, 4.0, 0.5, 0.02), (10**4, 1, 60.0, 0.5, 0.02)],
)
def test_the_crossing_is_where_the_law_says(L, R, theta, T, close):
    model = SparseTokens(L, R, theta, 0.5)
    law, exact = crossing_law(model, temperature=T), predict_crossing(model, temperature=T)
    assert law == pytest.approx(exact, rel=close)
    assert T / (2 * theta) < law < 1.4 * T / (2 * theta)


def test_the_law_of_one_needle_is_one_equation():
    """R = 1: Λ is log-normal, by another quadrature."""
    model, T, s = SparseTokens(10**4, 1, 60.0, 0.3), 0.7, 0.01
    g, weight = np.polynomial.hermite_e.hermegauss(80)
    gains, weight = np.exp(T * g - T * T / 2), weight / weight.sum()
    delta = 0.6 * math.exp(T * 60 * s - T * T / 2) * math.sqrt(1 - s * s * T * T / (1 + T * T))
    errors = [
        0.7 * ndtr(-k) + 0.3 * weight @ ndtr(k - delta * gains) for k in np.linspace(-1, 6, 3001)
    ]
    assert long_bag_error(model, temperature=T, cos=s) == pytest.approx(min(errors), rel=1e-5)


@pytest.mark.parametrize(
    ("L", "R", "theta", "close"),
    [
        (10, 5, 2.0, 0.1),
        pytest.param(10, 8, 1.5, 0.15, marks=pytest.mark.slow),
        pytest.param(1000, 30, 1.0, 0.03, marks=pytest.mark.slow),
    ],
)
def test_a_perfect_query_loses_where_the_softmax_is_too_sharp(L, R, theta, close):
    """`close` is what the law for long bags may be off; ten per cent of 1000 tokens would show."""
    model = SparseTokens(L, R, theta, 0.5)
    law, plain = sharpness_law(model), predict_readout(pooled(model), math.inf, 0.0).test_error

    def ratio(T):
        features = attention(model, temperature=T, cos=1.0, resolution=384)
        return predict_readout(features, math.inf, 0.0).test_error / plain

    losing = optimize.brentq(lambda T: ratio(T) - 1, 0.1, 2.0, xtol=1e-3)
    assert law.losing == pytest.approx(losing, rel=close)
    best = min(map(ratio, np.linspace(0.05, losing, 12)))
    assert best < 0.98 and ratio(law.best) < 1.0 and ratio(law.best) < best * (1 + close)


def test_ends_of_the_law_of_sharpness():
    assert predict_crossing(SparseTokens(10, 5, 2.0, 0.5), temperature=2.0) == math.inf
    assert sharpness_law(SparseTokens(5, 5, 2.0, 0.5)) == (0.0, 0.0)
    weak = sharpness_law(SparseTokens(1000, 300, 0.01, 0.5))
    assert weak.best == pytest.approx(0.01 * 0.7 / 2, rel=1e-3)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
def test_fits_agree_on_both_sides_of_the_crossing():
    """R = 5 of 10 needles, a perfect query: T = ¼ wins and T = 2 loses, in trained readouts."""
    model, rng = SparseTokens(10, 5, 2.0, 0.5), np.random.default_rng(1)
    laws = [pooled(model)] + [attention(model, temperature=T, cos=1.0) for T in (0.25, 2.0)]
    errors = []
    for law in laws:
        runs = [simulate_readout(law, 200, 20.0, 0.01, rng).test_error for _ in range(12)]
        limit = predict_readout(law, 20.0, 0.01).test_error
        assert abs(np.mean(runs) - limit) < 4.5 * np.std(runs) / 12**0.5 + 0.01 * limit
        errors.append(np.mean(runs))
    plain, soft, sharp = errors
    assert soft < 0.8 * plain and sharp > 1.5 * plain


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("theta", lambda: sharpness_law(SparseTokens(10, 1, 0.0, 0.5))),
        ("temperature", lambda: crossing_law(SparseTokens(10, 1, 1.0, 0.5), temperature=0.0)),
        ("cos", lambda: long_bag_error(SparseTokens(10, 1, 1.0, 0.5), temperature=1.0, cos=2.0)),
        ("temperature", lambda: predict_crossing(SparseTokens(10, 1, 1.0, 0.5), temperature=-1.0)),
    ],
)
def test_bad_input_is_named(name, call):
    with pytest.raises(ValueError, match=f"^{name} = "):
        call()
