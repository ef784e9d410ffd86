"""Full-batch descent: gradients by hand, the run, its memory, and the limit against tokens."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.kit.records import ConvergenceError
from needle.training.batch import fresh_error, gradient, predict_descent, simulate_descent
from needle.training.descent import draw_tokens
from utils.agreement import AgreementError, agree

MODEL, TASK = SparseTokens(6, 2, 2.0, 0.4), SparseTokens(20, 1, 5.0, 0.5)
FIELDS = ["train_loss", "train_error", "test_error", "query_cos", "query_norm"]
FIELDS += ["readout_cos", "readout_norm", "bias"]


def point(seed: int, n: int = 12, d: int = 5):
    rng = np.random.default_rng(seed)
    X, y, _ = MODEL.sample(n, d, rng)
    return X, y, rng.normal(size=d), rng.normal(size=d), float(rng.normal())


def scores_of(X, q, w, b):
    """Bag by bag, in plain Python."""
    weights = [np.exp(tokens @ q) for tokens in X]
    return np.array([(a / a.sum()) @ (x @ w) + b for a, x in zip(weights, X, strict=True)])


def objective(X, y, q, w, b, loss):
    t = scores_of(X, q, w, b)
    return np.mean(np.log1p(np.exp(-y * t)) if loss == "logistic" else (t - y) ** 2 / 2)


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_gradient_against_finite_differences(loss, seed):
    X, y, q, w, b = point(seed)
    ours = gradient(X, y, q, w, b, loss=loss, decay=0.3)
    z, d = np.concatenate([q, w, [b]]), len(q)

    def at(z):
        shrunk = 0.15 * (z[:-1] @ z[:-1])
        return objective(X, y, z[:d], z[d : 2 * d], z[-1], loss) + shrunk

    steps = 1e-5 * np.eye(len(z))
    slope = np.array([(at(z + step) - at(z - step)) / 2e-5 for step in steps])
    assert np.abs(np.concatenate([ours.q, ours.w, [ours.b]]) - slope).max() < 1e-8
    assert ours.loss == pytest.approx(objective(X, y, q, w, b, loss), rel=1e-12)
    assert ours.error == pytest.approx(np.mean(np.sign(scores_of(X, q, w, b)) != y))


def test_single_precision_is_close():
    X, y, q, w, b = point(3)
    exact, single = gradient(X, y, q, w, b), gradient(X.astype(np.float32), y, q, w, b)
    assert np.abs(exact.q - single.q).max() < 1e-5
    assert np.abs(exact.w - single.w).max() < 1e-5


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_steps_follow_the_gradient(loss):
    """Two steps by hand from the same tokens, rates and decays of their own; b is not decayed."""
    options = {"lr_q": 0.7, "lr_w": 0.9, "lr_b": 0.4, "decay": (0.1, 0.3), "loss": loss}
    rng = np.random.default_rng(0)
    run = simulate_descent(MODEL, 20, 3.0, [0, 2], np.random.default_rng(0), **options)
    X, y = draw_tokens(MODEL, 60, 20, rng)
    q, w = rng.normal(size=(2, 20))
    q, w, b = 0.1 * q / np.linalg.norm(q), 0.1 * w / np.linalg.norm(w), 0.0
    assert run[0].train_loss == pytest.approx(objective(X, y, q, w, b, loss), rel=1e-12)
    for _ in range(2):
        slope = gradient(X, y, q, w, b, loss=loss)
        q = (1 - 0.07) * q - 0.7 * slope.q
        w, b = (1 - 0.27) * w - 0.9 * slope.w, b - 0.4 * slope.b
    assert run[1].query_norm == pytest.approx(np.linalg.norm(q))
    assert run[1].query_cos == pytest.approx(q[0] / np.linalg.norm(q))
    assert run[1].overlap == pytest.approx(q @ w)
    assert run[1].bias == pytest.approx(b)
    wrong = np.mean(np.sign(scores_of(X, q, w, b)) != y)
    assert run[1].train_error == pytest.approx(wrong, rel=1e-12)


def test_small_steps_lower_the_objective():
    told = {"decay": 0.1}
    for run in (
        simulate_descent(MODEL, 20, 3.0, range(60), np.random.default_rng(0), **told),
        predict_descent(MODEL, 3.0, range(60), bags=300, populations=2, **told),
    ):
        cost = [one.train_loss + 0.05 * (one.query_norm**2 + one.readout_norm**2) for one in run]
        assert (np.diff(cost) < 0).all()
        assert [one.step for one in run] == list(range(60))


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
    q, w, b = rng.normal(size=8), rng.normal(size=8), -0.4
    fresh = model.sample(40_000, 8, rng)
    error = np.mean(fresh.y * scores_of(fresh.X, q, w, b) <= 0)
    for source in (None, rng):
        assert fresh_error(model, q, w, b, source) == pytest.approx(error, abs=5 * 0.5 / 200)


SETTINGS = {
    "square": (
        SparseTokens(20, 2, 3.0, 0.2), 1.5,
        {"loss": "square", "decay": (0.1, 0.05), "lr_q": 0.3, "lr_w": 0.6, "lr_b": 0.3},
    ),
    "hinge": (SparseTokens(10, 2, 3.0, 0.3), 2.0, {"loss": "hinge", "decay": 0.05, "lr_b": 0.5}),
    "unequal": (SparseTokens(5, 1, 3.0, 0.2), 2.0, {"lr_q": 2.0, "start": (1.0, 0.5)}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
@pytest.mark.parametrize("name", SETTINGS)
def test_tokens_meet_the_limit(name):
    """False alarm 10⁻⁴ for each; a bag's own share left out, or a tenth more signal, is
    refused."""
    model, alpha, options = SETTINGS[name]
    steps, sizes = [5, 20, 40], (40, 80, 160)
    runs = [
        [simulate_descent(model, d, alpha, steps, np.random.default_rng([d, k]), **options)
         for k in range(32)]
        for d in sizes
    ]  # fmt: skip
    limit = predict_descent(model, alpha, steps, **options)
    stronger = SparseTokens(model.L, model.R, 1.1 * model.theta, model.pi)
    refused = {
        "no-response": predict_descent(model, alpha, steps, response=False, **options),
        "stronger": predict_descent(stronger, alpha, steps, **options),
    }
    told = {"sizes": sizes, "fields": FIELDS}
    for k in range(3):
        trials = [[run[k] for run in group] for group in runs]
        agree(limit[k], trials, claim="descent-on-tokens", **told)
    for wrong in refused.values():
        with pytest.raises(AgreementError):
            agree(wrong[2], trials, claim="descent-refused", false_alarm=0.05, **told)


@pytest.mark.slow
@pytest.mark.false_alarm(2e-4)
def test_the_error_is_what_it_says_it_is():
    """Twenty predictions scatter by the standard error they state; four times the bags halve it."""
    told = {"steps": [15], "decay": 0.1, "populations": 3}

    def squares(bags):
        runs = [predict_descent(TASK, 1.0, bags=bags, seed=k, **told)[0] for k in range(20)]
        stated = np.mean([one.test_error.standard_error**2 for one in runs])
        return np.var([one.test_error for one in runs], ddof=1), stated

    (found, stated), (_, smaller) = squares(200), squares(800)
    assert 0.45**2 < found / stated < 1.75**2
    assert 0.3**2 < smaller / stated < 0.8**2


def test_a_period_of_two_is_seen_at_adjacent_steps():
    """The edge of stability: at rate 1.2 and decay 0.4 even steps alone would fake an end."""
    told = {"decay": 0.4, "bags": 500, "populations": 2}
    told |= dict.fromkeys(("lr_q", "lr_w", "lr_b"), 1.2)
    even, odd, next_even = predict_descent(TASK, 2.0, [60, 61, 62], **told)
    assert even.train_loss == pytest.approx(next_even.train_loss, rel=0.02)
    assert abs(odd.train_loss / even.train_loss - 1) > 0.3


def test_where_there_is_no_limit_it_warns():
    with pytest.warns(UserWarning, match="populations of bags = 60 part in query_cos"):
        predict_descent(SparseTokens(100, 1, 5.0, 0.5), 0.5, [120], bags=60)
    with pytest.warns(UserWarning, match="part in test_error"):  # a cycle in two phases
        predict_descent(TASK, 2.0, [100], decay=0.4, bags=500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predict_descent(TASK, 4.0, [10], bags=300)


def test_divergence_is_said():
    rates = {"lr_q": 50.0, "lr_w": 50.0, "lr_b": 50.0}
    with pytest.raises(ConvergenceError, match="diverges"):
        simulate_descent(MODEL, 20, 2.0, [200], np.random.default_rng(0), loss="square", **rates)
    with pytest.raises(ConvergenceError, match="diverges") as caught:
        predict_descent(MODEL, 2.0, [0, 200], loss="square", bags=100, **rates)
    assert [one.step for one in caught.value.estimate] == [0]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("steps", {"steps": []}),
        ("steps", {"steps": [3, 3]}),
        ("alpha", {"alpha": 0.0}),
        ("decay", {"decay": -0.1}),
        ("decay", {"decay": (0.1, 0.1, 0.1)}),
        ("loss", {"loss": "cross"}),
        ("lr_w", {"lr_w": -1.0}),
        ("start", {"start": (0.1, -0.1)}),
        ("lean", {"lean": (0.1, 1.5)}),
    ],
)
def test_bad_input_is_refused(name, options):
    arguments = {"alpha": 1.0, "steps": [1], **options}
    alpha, steps = arguments.pop("alpha"), arguments.pop("steps")
    with pytest.raises(ValueError, match=rf"^{name}.* is not allowed"):
        simulate_descent(MODEL, 10, alpha, steps, np.random.default_rng(0), **arguments)
    with pytest.raises(ValueError, match=rf"^{name}.* is not allowed"):
        predict_descent(MODEL, alpha, steps, bags=60, **arguments)


@pytest.mark.slow
def test_the_memory_of_a_large_run_is_bounded():
    """L = 20, d = 400, α = 4: 51 MB of tokens, and little beside them; and a long limit."""
    tracemalloc.start()
    run = simulate_descent(TASK, 400, 4.0, [0, 60], np.random.default_rng(0))
    _, peak = tracemalloc.get_traced_memory()
    assert peak < 3 * 1600 * 20 * 400 * 4
    assert run[-1].train_loss < 0.1 < run[0].train_loss
    tracemalloc.reset_peak()
    predict_descent(TASK, 4.0, [300], populations=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e9
