"""Losses: derivatives against differences, proximal maps against brute force at 60 digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from needle.kit.losses import get_loss

NAMES = ["logistic", "square", "hinge", "exponential"]
SMOOTH = ["logistic", "square", "exponential"]
loss_names = st.sampled_from(NAMES)
labels = st.sampled_from([-1, 1])
scores = st.floats(-1e4, 1e4)
steps = st.floats(-12, 12).map(lambda exponent: 10.0**exponent)


def prox_by_bisection(omega: float, step: float, y: int) -> float:
    """The logistic proximal point by 200 bisections in 60-digit arithmetic."""
    with localcontext() as context:
        context.prec = 60
        m, s = Decimal(y * omega), Decimal(step)
        low, high = m, m + s
        for _ in range(200):
            v = (low + high) / 2
            pull = s / (1 + v.exp()) if v < 0 else s * (-v).exp() / (1 + (-v).exp())
            low, high = (v, high) if v - m < pull else (low, v)
        return y * float(low)


@settings(max_examples=60, deadline=None)
@given(scores, steps, labels)
def test_logistic_prox_is_exact(omega, step, y):
    exact = prox_by_bisection(omega, step, y)
    assert abs(get_loss("logistic").prox(omega, step, y) - exact) <= 1e-12 * max(1, abs(exact))


@settings(max_examples=60, deadline=None)
@given(loss_names, st.floats(-30, 30), st.floats(-3, 3), labels)
def test_prox_minimises_the_envelope(name, omega, exponent, y):
    loss, step = get_loss(name), 10.0**exponent

    def envelope(u):
        return step * loss.value(u, y) + (u - omega) ** 2 / 2

    bounds = sorted([omega, omega - step * loss.first(omega, y)])
    best = minimize_scalar(envelope, bounds=(bounds[0] - 1, bounds[1] + 1), method="bounded")
    assert envelope(loss.prox(omega, step, y)) <= best.fun + 1e-12 * max(1, abs(best.fun))


@pytest.mark.parametrize("name", SMOOTH)
def test_prox_solves_its_equation_on_a_dense_grid(name):
    loss = get_loss(name)
    tails = np.geomspace(1e-6, 1e4, 400)
    omega = np.concatenate([-tails, [0], tails, np.linspace(-50, 50, 801)])[:, None, None]
    step = np.geomspace(1e-12, 1e12, 289)[:, None]
    y = np.array([-1, 1])
    u = loss.prox(omega, step, y)
    residual = u + step * loss.first(u, y) - omega
    error_in_u = residual / (1 + step * loss.second(u, y))
    scale = np.maximum(1, np.abs(u))
    if (
        name == "square"
    ):  # the step alone carries rounding of size step·eps·|u|, divided by 1 + step
        scale = np.maximum(scale, np.abs(omega) / (1 + step))
    assert np.max(np.abs(error_in_u) / scale) < 1e-12


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("y", [-1, 1])
def test_derivatives_match_differences(name, y):
    loss, z, h = get_loss(name), np.linspace(-30, 30, 601) + 0.05, 1e-5
    slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    curvature = (loss.first(z + h, y) - loss.first(z - h, y)) / (2 * h)
    assert np.allclose(slope, loss.first(z, y), atol=1e-8)
    assert np.allclose(curvature, loss.second(z, y), atol=1e-8)


@given(loss_names, st.lists(scores, min_size=2, max_size=5), steps, labels)
def test_prox_is_monotone_firmly_nonexpansive_and_odd(name, omega, step, y):
    loss, omega = get_loss(name), np.sort(omega)
    u = loss.prox(omega, step, y)
    gap, allowed = np.diff(u), np.diff(omega) * (1 + 1e-12) + 1e-10
    assert np.all(gap >= -1e-10) and np.all(gap <= allowed)
    assert np.array_equal(loss.prox(-omega, step, -y), -u)


@pytest.mark.parametrize("name", NAMES)
def test_prox_limits(name):
    loss, omega = get_loss(name), np.linspace(-5, 5, 11)
    assert np.array_equal(loss.prox(omega, 0.0, 1), omega)
    assert loss.prox(np.zeros((3, 1)), np.ones(4), np.ones((3, 1))).shape == (3, 4)
    assert np.isnan(loss.prox(np.nan, 1.0, 1))


def test_prox_of_the_hinge_case_by_case():
    cases = [(-3, 2, -1), (-3, 4, 1), (-3, 9, 1), (1, 5, 1), (1.5, 1e9, 1.5), (0, 0, 0)]
    for m, step, u in cases:
        for y in (-1, 1):
            assert get_loss("hinge").prox(y * m, step, y) == y * u


def test_prox_of_the_exponential_far_out():
    prox = get_loss("exponential").prox
    for omega, step in [(-1e8, 1.0), (-50.0, 1e-12), (0.0, 1e12), (3.0, 1e-3), (1e4, 1e12)]:
        with localcontext() as context:
            context.prec, start, size = 60, Decimal(omega), Decimal(step)
            low, high = max(start, Decimal(-100)), max(start, Decimal(0)) + 100
            for _ in range(250):
                v = (low + high) / 2
                low, high = (v, high) if v - start < size * (-v).exp() else (low, v)
        exact = pytest.approx(float(low), rel=1e-13, abs=1e-13)
        assert prox(omega, step, 1) == exact and -prox(-omega, step, -1) == exact


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_is_floats_of_the_common_shape(name):
    loss, wide, long = get_loss(name), np.zeros((3, 1), int), np.ones(4, int)
    for z, y in [(wide, long), (wide[0, 0], long), (wide, 1)]:
        for method in (loss.value, loss.first, loss.second):
            if name == "logistic" and method == loss.second:
                continue  # which does not depend on y
            found = method(z, y)
            assert np.shape(found) == np.broadcast_shapes(np.shape(z), np.shape(y))
            assert np.asarray(found).dtype == np.float64
    small = np.float32(0.1)
    assert loss.value(small, 1) == loss.value(float(small), 1)
    assert loss.prox(small, 1, 1) == loss.prox(float(small), 1.0, 1)


def test_the_hinge_at_its_kink_and_at_nothing():
    hinge = get_loss("hinge")
    assert hinge.first(1.0, 1) == 0.0 == hinge.first(-1.0, -1)
    assert np.isnan(hinge.first(np.nan, 1))


def test_the_exponential_overflows_in_silence():
    exponential = get_loss("exponential")
    with np.errstate(all="raise"):
        assert exponential.value(-1e4, 1) == exponential.second(-1e4, 1) == np.inf
        assert exponential.first(-1e4, 1) == -np.inf


def test_extreme_scores_stay_finite_and_silent():
    logistic, z = get_loss("logistic"), np.array([-1e4, 1e4])
    with np.errstate(all="raise", under="ignore"):
        assert np.array_equal(logistic.value(z, 1), [1e4, 0])
        assert np.array_equal(logistic.first(z, 1), [-1, 0])
        assert np.array_equal(logistic.second(z, 1), [0, 0])
        assert np.all(np.isfinite(logistic.prox(z[:, None], [1e-12, 1, 1e12], 1)))


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="loss = 'cube' is not allowed"):
        get_loss("cube")
    with pytest.raises(ValueError, match="must be one of 'logistic', 'square'"):
        get_loss("hinge", ("logistic", "square"))
    for name in NAMES:
        loss = get_loss(name)
        for step in ([1.0, -1.0], np.inf, np.nan, None, "1"):
            with pytest.raises(ValueError, match="step must be finite and ≥ 0"):
                loss.prox(0.0, step, 1)
        for omega in (np.inf, [0.0, -np.inf], None, "1"):
            with pytest.raises(ValueError, match="omega must be finite"):
                loss.prox(omega, 1.0, 1)
        for y in (0, [1, 2], np.nan, None, "1", 1j):
            with pytest.raises(ValueError, match="y must be -1 or \\+1"):
                loss.prox(0.0, 1.0, y)
            for method in (loss.value, loss.first, loss.second):
                with pytest.raises(ValueError, match="y must be -1 or \\+1"):
                    method(0.0, y)
        for z in (None, "0", 1j, {}):
            with pytest.raises(ValueError, match="z must be real numbers"):
                loss.value(z, 1)
    with pytest.raises(AttributeError):
        get_loss("square").name = "cube"
