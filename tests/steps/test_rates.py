"""The calibrated rate: against the echo it silences, in the limit and on literal tokens."""

import math

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.kit.losses import get_loss
from needle.steps.alignment import predict_alignment
from needle.steps.rates import calibrated_cosine, calibrated_rate, rate_window
from needle.steps.rule import two_steps

MODEL = SparseTokens(L=200, R=3, theta=5.0, pi=0.2)


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("pi", [0.01, 0.2, 0.5, 0.9])
def test_a_small_first_step_leaves_no_echo(loss, pi):
    model = SparseTokens(L=50, R=2, theta=3.0, pi=pi)

    def echo(factor):
        rate = factor * calibrated_rate(pi, loss)
        limit = predict_alignment(model, 2.0, loss=loss, lr_w=1e-6, lr_b=rate)
        return abs(limit.echo / limit.signal)

    assert echo(1.0) < 1e-3
    if pi != 0.5:
        assert echo(1.02) > 1e-2


def test_the_rate_is_even_in_the_imbalance_and_smooth_at_one_half():
    assert calibrated_rate(0.5) == 4.0
    for gap in (1e-12, 1e-7, 1e-4, 0.2, 0.49):
        rate = calibrated_rate(0.5 + gap)
        assert rate == pytest.approx(calibrated_rate(0.5 - gap), rel=1e-12)
        assert rate == pytest.approx(4 * math.atanh(2 * gap) / (2 * gap), rel=1e-9)
    assert calibrated_rate(0.5 + 1e-3) == pytest.approx(4 * (1 + 4e-6 / 3), rel=1e-10)


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_the_share_of_the_data_cancels_the_pulls_exactly(loss):
    X, y, _ = SparseTokens(L=20, R=2, theta=3.0, pi=0.1).sample(60, 30, np.random.default_rng(0))
    rate = calibrated_rate(float(np.mean(y > 0)), loss)
    b = two_steps(X, y, loss=loss, lr_w=1e-6, lr_b=rate).b
    assert abs(get_loss(loss).first(np.full(60, b), y).mean()) < 1e-12
    b = two_steps(X, y, loss=loss, lr_w=1e-6, lr_b=0.9 * rate).b
    assert abs(get_loss(loss).first(np.full(60, b), y).mean()) > 1e-3


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("alpha0", [0.3, 5.0])
def test_the_cosine_of_a_silent_echo_is_the_same_for_both_losses(loss, alpha0):
    rate = calibrated_rate(MODEL.pi, loss)
    limit = predict_alignment(MODEL, alpha0, loss=loss, lr_w=1e-5, lr_b=rate)
    assert calibrated_cosine(MODEL, alpha0) == pytest.approx(limit.query_cos, abs=2e-4)


@pytest.mark.parametrize(
    ("loss", "lr_w"), [("logistic", 0.05), ("square", 0.05), ("logistic", 0.6)]
)
def test_the_ends_of_the_window_are_where_they_should_be(loss, lr_w):
    window = rate_window(MODEL, 3.0, loss=loss, lr_w=lr_w, keep=0.8)
    assert window.low < window.rate < window.high
    for end in (window.low, window.high):
        cos = predict_alignment(MODEL, 3.0, loss=loss, lr_w=lr_w, lr_b=end).query_cos
        assert cos == pytest.approx(0.8 * window.cosine, rel=1e-3)


def test_below_the_window_of_alignment_the_query_turns_away():
    window = rate_window(MODEL, 3.0, keep=0.0)
    below = predict_alignment(MODEL, 3.0, lr_w=0.05, lr_b=window.low - 0.01)
    above = predict_alignment(MODEL, 3.0, lr_w=0.05, lr_b=window.low + 0.01)
    assert below.query_cos < 0 < above.query_cos
    assert window.high == math.inf  # for rare positives a fast bias only adds an echo along w


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: calibrated_rate(0.0), "pi"),
        (lambda: calibrated_rate(0.3, "hinge"), "loss"),
        (lambda: rate_window(MODEL, 1.0, keep=1.0), "keep"),
        (lambda: rate_window(MODEL, 0.0), "alpha0"),
        (lambda: calibrated_cosine(MODEL, -1.0), "alpha0"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
