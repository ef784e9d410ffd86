"""Full-batch descent: gradients by hand, the run, and its memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.kit.records import ConvergenceError
from needle.training import batch as training_batch
from needle.training.batch import gradient, simulate_descent

MODEL = SparseTokens(6, 2, 2.0, 0.4)
RATES = {"lr_q": 1.0, "lr_w": 1.0, "lr_b": 1.0}


def point(seed: int, n: int = 12, d: int = 5):
    rng = np.random.default_rng(seed)
    X, y, _ = MODEL.sample(n, d, rng)
    return X, y, rng.normal(size=d), rng.normal(size=d), float(rng.normal())


def objective(X, y, q, w, b, loss, decay):
    """The mean loss and the decay, bag by bag, in plain Python."""
    total = 0.0
    for tokens, label in zip(X, y, strict=True):
        weight = np.exp(tokens @ q)
        score = (weight / weight.sum()) @ (tokens @ w) + b
        total += (
            np.log1p(np.exp(-label * score)) if loss == "logistic" else (score - label) ** 2 / 2
        )
    return total / len(y) + decay * (q @ q + w @ w) / 2


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_gradient_against_finite_differences(loss, seed, monkeypatch):
    monkeypatch.setattr(training_batch, "_BLOCK", 100)  # several blocks
    X, y, q, w, b = point(seed)
    ours = gradient(X, y, q, w, b, loss=loss, decay=0.3)
    z, d = np.concatenate([q, w, [b]]), len(q)

    def at(z):
        return objective(X, y, z[:d], z[d : 2 * d], z[-1], loss, 0.3)

    steps = 1e-5 * np.eye(len(z))
    slope = np.array([(at(z + step) - at(z - step)) / 2e-5 for step in steps])
    assert np.abs(np.concatenate([ours.q, ours.w, [ours.b]]) - slope).max() < 1e-8
    assert ours.loss == pytest.approx(objective(X, y, q, w, b, loss, 0.0), rel=1e-12)
    scores = [np.exp(x @ q) @ (x @ w) / np.exp(x @ q).sum() + b for x in X]
    assert ours.error == np.mean(np.sign(scores) != y)


def test_single_precision_is_close():
    X, y, q, w, b = point(3)
    exact, single = gradient(X, y, q, w, b), gradient(X.astype(np.float32), y, q, w, b)
    assert np.abs(exact.q - single.q).max() < 1e-5
    assert np.abs(exact.w - single.w).max() < 1e-5


def test_steps_follow_the_gradient():
    """Small steps lower the objective; the first step from the same tokens is the gradient's."""
    run = simulate_descent(MODEL, 20, 3.0, range(60), np.random.default_rng(0), decay=0.1, **RATES)
    cost = [one.train_loss + 0.05 * (one.query_norm**2 + one.readout_norm**2) for one in run]
    assert (np.diff(cost) < 0).all()
    assert [one.steps for one in run] == list(range(60))
    rng = np.random.default_rng(0)
    X, y = training_batch._tokens(MODEL, 60, 20, rng)
    q, w = rng.normal(size=(2, 20))
    q, w = 0.1 * q / np.linalg.norm(q), 0.1 * w / np.linalg.norm(w)
    slope = gradient(X, y, q, w, 0.0, decay=0.1)
    q, w = q - slope.q, w - slope.w
    assert run[1].query_norm == pytest.approx(np.linalg.norm(q))
    assert run[1].query_cos == pytest.approx(q[0] / np.linalg.norm(q))
    assert run[1].overlap == pytest.approx(q @ w)
    assert run[1].bias == pytest.approx(-slope.b)


def test_decay_shrinks_what_nothing_holds():
    """Without a gradient on q (q = 0 and R = L makes all tokens alike) only decay acts."""
    model = SparseTokens(4, 4, 1.0, 0.5)
    options = {"start": (0.0, 0.2), "lr_q": 0.0, "lr_w": 0.5, "lr_b": 0.5}
    rng = np.random.default_rng(1)
    heavy = simulate_descent(model, 30, 4.0, [400], rng, decay=1.0, **options)[0]
    light = simulate_descent(model, 30, 4.0, [400], np.random.default_rng(1), **options)[0]
    assert heavy.query_norm == light.query_norm == 0
    assert heavy.readout_norm < 0.5 * light.readout_norm


@pytest.mark.false_alarm(1e-5)  # the difference varies by 0.0027
def test_the_test_error_is_that_of_fresh_bags():
    model, rng = SparseTokens(5, 1, 3.0, 0.3), np.random.default_rng(2)
    X, y = training_batch._tokens(model, 40, 8, rng)
    q, w, b = rng.normal(size=8), rng.normal(size=8), -0.4
    slope = gradient(X, y, q, w, b)
    record = training_batch._record(model, 5.0, 0, slope, q, w, b, rng)
    fresh = model.sample(40_000, 8, rng)
    error = gradient(fresh.X, fresh.y, q, w, b).error
    assert record.test_error == pytest.approx(error, abs=5 * 0.5 / 200)


def test_divergence_is_said():
    rates = {"lr_q": 50.0, "lr_w": 50.0, "lr_b": 50.0}
    with pytest.raises(ConvergenceError, match="diverges"):
        simulate_descent(MODEL, 20, 2.0, [200], np.random.default_rng(0), loss="square", **rates)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("steps", {"steps": []}),
        ("steps", {"steps": [3, 3]}),
        ("alpha", {"alpha": 0.0}),
        ("decay", {"decay": -0.1}),
        ("loss", {"loss": "hinge"}),
        ("lr_w", {"lr_w": -1.0}),
    ],
)
def test_bad_input_is_refused(name, options):
    arguments = {"alpha": 1.0, "steps": [1], **RATES, **options}
    alpha, steps = arguments.pop("alpha"), arguments.pop("steps")
    with pytest.raises(ValueError, match=rf"^{name}.* is not allowed"):
        simulate_descent(MODEL, 10, alpha, steps, np.random.default_rng(0), **arguments)


@pytest.mark.slow
def test_the_memory_of_a_large_run_is_bounded():
    """L = 20, d = 400, α = 4: 51 MB of tokens, and little beside them."""
    tracemalloc.start()
    model = SparseTokens(20, 1, 5.0, 0.5)
    run = simulate_descent(model, 400, 4.0, [0, 60], np.random.default_rng(0), **RATES)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * 1600 * 20 * 400 * 4
    assert run[-1].train_loss < 0.1 < run[0].train_loss
