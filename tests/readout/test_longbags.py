"""Long bags: the limits of error, capacity and 1/α against closed forms, bags, certificates."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from needle.data.classifiers import attention, gaussian_mixture, pooled
from needle.data.tokens import SparseTokens
from needle.readout.capacity import predict_capacity, simulate_capacity
from needle.readout.crossing import crossing_law
from needle.readout.limit import predict_readout
from needle.readout.longbags import long_bag_error, long_bag_law, predict_long_bags

LONG = {  # L, R, θ, π, T, s
    "thirty needles": (10**5, 30, 6.0, 0.5, 0.5, 0.3),
    "one strong needle": (10**5, 1, 300.0, 0.3, 0.4, 0.004),
    "a thousand weak": (10**6, 1000, 1.0, 0.5, 0.7, 0.9),
    "a bad query": (10**5, 100, 2.0, 0.2, 0.6, -0.2),
}


@pytest.mark.parametrize("delta", [0.5, 1.3, 2.5])
def test_pooled_bags_are_the_case_of_no_sharpness(delta):
    model = SparseTokens(100, 2, 5 * delta, 0.5)
    found = predict_long_bags(model, temperature=0.0, cos=0.4)
    assert found.error == pytest.approx(ndtr(-delta / 2), rel=1e-7)
    same = predict_capacity(gaussian_mixture(mean=delta / 2, var_pos=1, var_neg=1))
    assert found.capacity == pytest.approx(same, rel=1e-6)
    slope = math.exp(-(delta**2) / 8) / math.sqrt(2 * math.pi)
    assert found.rate == pytest.approx(slope * (delta / 4 + 1 / delta), rel=1e-5)


@pytest.mark.parametrize("name", LONG)
def test_all_three_limits_are_those_of_the_five_equations(name):
    """At L of 10⁵ and more: within a per cent of the law, which a tenth would not be."""
    L, R, theta, pi, T, s = LONG[name]
    model = SparseTokens(L, R, theta, pi)
    found = predict_long_bags(model, temperature=T, cos=s)
    law = attention(model, temperature=T, cos=s, resolution=None)
    end = predict_readout(law, math.inf, 0.0, loss="square").test_error
    near = predict_readout(law, 1e4, 0.0, loss="square").test_error
    assert found.capacity == pytest.approx(predict_capacity(law), rel=0.01)
    assert found.rate == pytest.approx(1e4 * (near - end), rel=0.02)
    if pi == 0.5 and R > 1:  # where the square loss finds the best threshold
        assert found.error == pytest.approx(end, rel=0.005)
    assert found.error <= end * 1.005


@pytest.mark.parametrize(
    ("L", "R", "theta", "T"),
    [(10**5, 30, 6.0, 0.5), (10**6, 1, 300.0, 0.4), (10**5, 300, 1.0, 0.7), (10**4, 10, 4.0, 1.0)],
)
def test_at_the_crossing_all_three_limits_are_near_those_of_pooling(L, R, theta, T):
    """With little scatter of Λ, equal errors mean equal distances, so capacities and constants."""
    model = SparseTokens(L, R, theta, 0.5)
    at = crossing_law(model, temperature=T)
    crossed = predict_long_bags(model, temperature=T, cos=at)
    plain = predict_long_bags(model, temperature=0.0, cos=0.0)
    assert crossed.error == pytest.approx(plain.error, rel=1e-4)
    assert crossed.capacity == pytest.approx(plain.capacity, rel=0.02)
    assert T / (2 * theta) <= at < 1.4 * T / (2 * theta)


def test_the_law_draws_what_its_points_say():
    law = long_bag_law(SparseTokens(10**4, 3, 20.0, 0.4), temperature=0.8, cos=0.1)
    y = np.ones(200_000)
    a, c, r = law.coefficients(y, np.random.default_rng(0))
    where, gain, _, _, weight = law.nodes
    up = where > 0
    for power in (1, 2):
        drawn = a**power
        expected = weight[up] @ gain[up] ** power / law.pi
        assert abs(drawn.mean() - expected) < 5 * drawn.std() / len(y) ** 0.5
    assert not c.any() and (r == 1).all()


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
@pytest.mark.parametrize(("R", "theta", "T", "s"), [(1, 90.0, 0.5, 0.012), (20, 3.0, 0.6, 0.3)])
def test_capacity_of_bags_of_two_thousand_tokens(R, theta, T, s):
    """Certified data sets of features of 2000 tokens, two sizes extrapolated in 1/d."""
    model, rng = SparseTokens(2000, R, theta, 0.5), np.random.default_rng(3)
    law = attention(model, temperature=T, cos=s)
    means, errors = [], []
    for d in (30, 60):
        drawn = [simulate_capacity(law, d, rng) for _ in range(60)]
        means.append(np.mean(drawn))
        errors.append(np.std(drawn) / 60**0.5)
    found, error = 2 * means[1] - means[0], np.hypot(2 * errors[1], errors[0])
    expected = predict_long_bags(model, temperature=T, cos=s).capacity
    assert abs(found - expected) < 4 * error + 0.01 * expected
    assert error < 0.06 * expected
    assert expected != pytest.approx(predict_capacity(pooled(model)), rel=0.05)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("theta", lambda m: predict_long_bags(SparseTokens(10, 1, 0.0, 0.5), temperature=1, cos=1)),
        ("temperature", lambda m: long_bag_law(m, temperature=-1.0, cos=0.5)),
        ("cos", lambda m: long_bag_error(m, temperature=1.0, cos=2.0)),
        ("model", lambda m: long_bag_law(None, temperature=1.0, cos=0.5)),
    ],
)
def test_bad_input_is_named(name, call):
    with pytest.raises(ValueError, match=rf"^{name} = "):
        call(SparseTokens(100, 2, 3.0, 0.5))
