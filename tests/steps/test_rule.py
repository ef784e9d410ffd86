"""The two gradient steps on tokens: against finite differences, and in blocks of bounded memory."""

import tracemalloc

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.kit.losses import get_loss
from needle.steps import rule as steps
from needle.steps.alignment import simulate_alignment
from needle.steps.rule import two_steps

PAPER = SparseTokens(L=10, R=3, theta=6.0, pi=0.2)


def test_dense_steps_are_gradients_of_the_loss_of_attention():
    """The second step, against central differences of the loss through the softmax itself."""
    model, d, n, step = SparseTokens(4, 2, 3.0, 0.5), 5, 7, 1e-5
    record = simulate_alignment(
        model, d, n / d, np.random.default_rng(3), lr_w=0.7, lr_b=0.9, method="dense"
    )
    X, y, _ = model.sample(n, d, np.random.default_rng(3))
    loss = get_loss("logistic")

    def mean_loss(w, b, q):
        weights = np.exp(X @ q)
        features = np.einsum("nl,nld->nd", weights / weights.sum(axis=1, keepdims=True), X)
        return loss.value(features @ w + b, y).mean()

    def gradient(function, size):
        shifts = step * np.eye(size)
        return np.array([(function(e) - function(-e)) / (2 * step) for e in shifts])

    zero = np.zeros(d)
    assert np.abs(gradient(lambda q: mean_loss(zero, 0.0, q), d)).max() == 0
    w = -0.7 * gradient(lambda w: mean_loss(w, 0.0, zero), d)
    b = -0.9 * gradient(lambda b: mean_loss(zero, b[0], zero), 1)[0]
    q = -gradient(lambda q: mean_loss(w, b, q), d)
    assert record.readout_norm == pytest.approx(np.linalg.norm(w), rel=1e-7)
    assert record.readout_cos == pytest.approx(w[0] / np.linalg.norm(w), rel=1e-7)
    assert record.query_overlap == pytest.approx(q[0], rel=1e-7)
    assert record.query_norm == pytest.approx(np.linalg.norm(q), rel=1e-7)


def by_hand(X, y, loss, lr_w, lr_b):
    """w, b, q and the pull of each token on q, all tokens at once."""
    n, L, _ = X.shape
    slopes = get_loss(loss).first(np.zeros(n), y)
    w, b = -lr_w * slopes @ X.mean(axis=1) / n, -lr_b * slopes.mean()
    h = get_loss(loss).first(X.mean(axis=1) @ w + b, y)
    centering = np.eye(L) - np.ones((L, L)) / L
    pull = -h[:, None] / (n * L) * (X @ w @ centering)
    return w, b, np.einsum("nl,nld->d", pull, X), pull


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_blocks_do_not_change_the_literal_steps(monkeypatch, loss):
    """Tokens drawn in nine blocks, the last one smaller, against all of them at once."""
    d, options = 6, {"loss": loss, "lr_w": 0.7, "lr_b": 0.9}
    monkeypatch.setattr(steps, "BLOCK_ENTRIES", 7 * PAPER.L * d)
    record = simulate_alignment(PAPER, d, 10.0, np.random.default_rng(4), method="dense", **options)
    rng = np.random.default_rng(4)
    parts = [PAPER.sample(size, d, rng) for size in [7] * 8 + [4]]
    X, y, where = (np.concatenate(part) for part in zip(*parts, strict=True))
    w, b, q, pull = by_hand(X, y, **options)
    assert record.readout_norm == pytest.approx(np.linalg.norm(w), rel=1e-12)
    assert record.readout_cos == pytest.approx(w[0] / np.linalg.norm(w), rel=1e-12)
    assert record.query_overlap == pytest.approx(q[0], rel=1e-11)
    assert record.query_norm == pytest.approx(np.linalg.norm(q), rel=1e-11)
    assert record.signal == pytest.approx(PAPER.theta * pull[where].sum(), rel=1e-11)

    def blocks():
        return iter([(X[:13], y[:13]), (X[13:50], y[13:50]), (X[50:], y[50:])])

    for found in (
        two_steps(X, y, **options),
        two_steps(X.astype(np.float32).astype(float), y, **options),
        two_steps(blocks, **options),
    ):
        np.testing.assert_allclose(found.w, w, rtol=1e-5)
        assert found.b == pytest.approx(b, rel=1e-12)
        np.testing.assert_allclose(found.q, q, rtol=1e-4)
    np.testing.assert_allclose(two_steps(X, y, **options).q, q, rtol=1e-11)
    np.testing.assert_allclose(two_steps(blocks, **options).q, q, rtol=1e-11)


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_balanced_steps_are_those_on_repeated_positives(loss):
    """Four of sixteen positive: each three times, and both classes are equally large."""
    rng, options = np.random.default_rng(5), {"loss": loss, "lr_w": 0.7, "lr_b": 0.9}
    X, y = rng.normal(size=(16, 5, 4)), np.where(np.arange(16) < 4, 1, -1)
    X[y > 0, 0] += 1.0
    many = np.repeat(np.arange(16), np.where(y > 0, 3, 1))
    expected = two_steps(X[many], y[many], **options)
    blocks = lambda: iter([(X[:9], y[:9]), (X[9:], y[9:])])  # noqa: E731
    for found in (
        two_steps(X, y, balanced=True, **options), two_steps(blocks, balanced=True, **options)
    ):  # fmt: skip
        np.testing.assert_allclose(found.w, expected.w, rtol=1e-12)
        np.testing.assert_allclose(found.q, expected.q, rtol=1e-12)
        assert abs(found.b) < 1e-15
    with pytest.raises(ValueError, match=r"^y is not allowed: to balance the classes"):
        two_steps(X, np.ones(16, int), balanced=True)
    with pytest.raises(ValueError, match=r"^balanced = "):
        two_steps(X, y, balanced="yes")


def test_tokens_that_cannot_be_meant_are_refused():
    X, y = np.zeros((4, 3, 2)), [1, -1, 1, 1]
    for bad, labels, name in [
        (X[0], y, "X"), (X, y[:2], "y"), (X, None, "y"), (X + np.nan, y, "X"),
        (lambda: iter([(X, y)]), y, "y"), (lambda: iter([]), None, "X"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=rf"^{name} .*is not allowed"):
            two_steps(bad, labels)


def test_blocks_that_come_once_only_are_refused():
    X, y, _ = PAPER.sample(6, 3, np.random.default_rng(0))
    once = iter([(X[:4], y[:4]), (X[4:], y[4:])])
    with pytest.raises(ValueError, match=r"^X is not allowed: it gave 6 samples and then 0; X\(\)"):
        two_steps(lambda: once)
    fewer = iter([[(X, y)], [(X[:5], y[:5])]])
    with pytest.raises(ValueError, match=r"^X is not allowed: it gave 6 samples and then 5; X\(\)"):
        two_steps(lambda: next(fewer))


def test_literal_steps_take_bounded_memory(monkeypatch):
    monkeypatch.setattr(steps, "BLOCK_ENTRIES", 7 * PAPER.L * 20)
    tracemalloc.start()
    simulate_alignment(PAPER, 20, 100.0, np.random.default_rng(4), method="dense")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 20 * PAPER.L * 20 * 8 / 20


def test_sigmoid_and_gradient_are_one_loss():
    t = np.linspace(-30, 30, 401)
    for loss, slope in steps.SLOPES.items():
        for y in (1, -1):
            first = get_loss(loss).first
            assert np.allclose(slope(t, y) + first(0.0, y), first(t, y), rtol=1e-15, atol=2e-15)


@pytest.mark.parametrize("loss", steps.SLOPES)
def test_moments_of_the_pulls_are_those_of_a_fine_rule(loss):
    G = np.linspace(-12, 12, 400_001)
    density = np.exp(-(G**2) / 2)
    density /= density.sum()
    rule = steps.step_rule(loss, 1.0, 1.0, 0.2)
    for y in (1, -1):
        for centre, sd in [(0.3, 0.7), (-1.1, 0.2), (1.0, 1.5)]:
            pull = -rule.gradient(centre + sd * G, y)
            slope = rule.start[y] - density @ pull
            expected = [density @ pull, density @ pull**2, slope]
            assert rule.moments(y, centre, sd) == pytest.approx(expected, rel=5e-5, abs=2e-5)
            if loss == "hinge" and y * centre == 1:  # on the kink
                continue
            exact = rule.moments(y, centre, 0.0)
            assert exact == pytest.approx(rule.moments(y, centre, 1e-7), rel=1e-5, abs=1e-6)
    assert rule.start[-1] == pytest.approx(-rule.start[1] / 4)
