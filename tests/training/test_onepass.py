"""One-pass descent: the drift, its integration and literal steps."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit, softmax

from needle.data.tokens import SparseTokens
from needle.kit.records import ConvergenceError, Training
from needle.training import onepass as training
from needle.training import walk
from needle.training.flow import Rates, State, drift, flow_error, normal_rule, sample_cloud
from needle.training.onepass import predict_training
from needle.training.walk import simulate_training
from utils.agreement import AgreementError, agree

MODEL = SparseTokens(10, 1, 4.0, 0.5)
RATES = {"lr_q": 3.0, "lr_w": 3.0, "lr_b": 3.0}
LATE = State(1.2, 0.9, 3.0, 2.5, 1.1, -0.7)


def brute_force(state: State, model: SparseTokens, loss: str, rates: Rates, n: int, seed: int):
    """The seven expectations, bag by bag (n, 7), from tokens in a space that holds ξ, q and w."""
    gram = np.array([
        [1, state.query, state.readout],
        [state.query, state.query_square, state.overlap],
        [state.readout, state.overlap, state.readout_square],
    ])  # fmt: skip
    X, y, _ = model.sample(n, 3, np.random.default_rng(seed))
    h, u, v = np.moveaxis(X @ np.linalg.cholesky(gram).T, 2, 0)
    s = softmax(u, axis=1)
    score = (s * v).sum(1)
    t, k = score + state.bias, s * (v - score[:, None])
    g = -y * expit(-y * t) if loss == "logistic" else t - y
    q, w, b = rates

    def dot(a, b):
        return (a * b).sum(axis=1)

    return np.stack([
        -q * g * dot(k, h),
        -w * g * dot(s, h),
        -2 * q * g * dot(k, u) + q**2 * g**2 * dot(k, k),
        -2 * w * g * score + w**2 * g**2 * dot(s, s),
        -q * g * dot(k, v) - w * g * dot(s, u) + q * w * g**2 * dot(s, k),
        -b * g,
        y * t <= 0,
    ], axis=1)  # fmt: skip


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)  # the corruption is missed with probability below 1e-29
@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize(
    ("model", "state"),
    [
        (SparseTokens(10, 1, 4.0, 0.5), LATE),
        (SparseTokens(12, 3, 2.0, 0.2), State(-0.5, 0.4, 2.0, 6.0, -1.5, 0.5)),
        (SparseTokens(5, 5, 1.0, 0.7), State(0.1, 0.2, 0.5, 1.0, 0.3, -0.2)),
        (SparseTokens(10, 1, 4.0, 0.5), State(3.0, 4.0, 1600.0, 144.0, 100.0, -2.0)),
    ],
    ids=["one-needle", "three-needles", "all-needles", "long-readout"],
)
def test_drift_against_tokens(model, state, loss):
    rates = Rates(3.0, 2.0, 1.0)
    cloud = sample_cloud(model, 13, 0)
    ours = [*drift(state, model, cloud, loss, rates), flow_error(state, model, cloud)]
    bags = brute_force(state, model, loss, rates, 200_000, seed=model.L)
    agree(np.array(ours), bags, claim="flow-on-tokens")
    wrong = np.array(ours) * 1.05
    with pytest.raises(AgreementError):
        agree(wrong, bags, claim="flow-on-tokens-corrupted")


@pytest.mark.parametrize("spread", [0.5, 1.2, 1.7, 2.0, 5.0, 12.0, 60.0])
def test_the_mean_over_a_score(spread):
    """Pulls, their squares and their products with e and e², against a grid of 200 001 points."""
    fine = np.linspace(-9, 9, 200_001)
    density = np.exp(-(fine**2) / 2) / math.sqrt(2 * math.pi) * (fine[1] - fine[0])
    e, powers = normal_rule(spread)
    for mean in np.linspace(-2, 2, 5) * spread:
        for power in (1, 2):
            ours = powers @ expit(mean + spread * e) ** power
            exact = [density * fine**j @ expit(mean + spread * fine) ** power for j in range(3)]
            assert np.abs(ours - exact).max() < 1e-4


def test_pooling_by_square_loss_is_a_linear_equation():
    """With a = θR/L, dm/dα = −η(πa(am + b − 1) + m/L) and db/dα = −η(πam + b − 2π + 1)."""
    model, η, times = SparseTokens(8, 2, 3.0, 0.3), 0.8, [0.5, 2.0, 6.0]
    a, π, L = model.theta * model.R / model.L, model.pi, model.L

    def slope(_, x):
        m, b = x
        return [-η * (π * a * (a * m + b - 1) + m / L), -η * (π * a * m + b - 2 * π + 1)]

    exact = solve_ivp(slope, (0, 6), [0, 0], t_eval=times, rtol=1e-10, atol=1e-12).y
    rates = {"lr_q": 0.0, "lr_w": η, "lr_b": η}
    found = predict_training(model, times, loss="square", start=(0.0, 0.1), **rates)
    ours = np.array([[one.readout_cos * one.readout_norm, one.bias] for one in found])
    assert np.abs(ours - exact.T).max() < 4e-3
    assert all(one.query_norm == one.query_cos == 0 for one in found)


@pytest.mark.slow
@pytest.mark.false_alarm(2e-4)
@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_steps_meet_the_flow(loss):
    """And not the flow of rates that are a fifth higher."""
    model, times = SparseTokens(10, 2, 3.0, 0.3), [1.0, 4.0]
    rates = {"lr_q": 2.0, "lr_w": 1.5, "lr_b": 1.0, "loss": loss, "start": (0.5, 0.3)}
    sizes, theory = (100, 200), predict_training(model, times, tolerance=5e-4, **rates)
    runs = [
        [
            simulate_training(
                model, d, times, np.random.default_rng([d, k]), method="exact", **rates
            )
            for k in range(24)
        ]
        for d in sizes
    ]
    names = [field.name for field in fields(Training)][1:]

    def rows(trials):
        return np.array([[[getattr(x, name) for name in names] for x in run] for run in trials])

    trials = [rows(r) for r in runs]
    agree(rows([theory])[0], trials, sizes=sizes, claim="steps-meet-flow")
    higher = rates | {"lr_q": 2.4, "lr_w": 1.8, "lr_b": 1.2}
    wrong = rows([predict_training(model, times, **higher)])[0]
    with pytest.raises(AgreementError):
        agree(wrong, trials, sizes=sizes, claim="steps-meet-flow-corrupted", false_alarm=0.05)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
def test_an_exact_step_adds_the_noise_of_the_other_directions():
    """Beyond the frame of three, d − 3 directions add |k|², |s|² and ⟨s, k⟩ each, given the bag."""
    model, d, rates = SparseTokens(6, 2, 2.0, 0.4), 6, Rates(3.0, 2.0, 1.0)
    start = 1.5 * np.eye(d)[1], np.array([0.8, 0.3, 0.6, *np.zeros(d - 3)])
    rows, due = [], []
    for seed in range(1000):
        path = walk._exact(model, d, 1, np.random.default_rng([5, seed]), "logistic", rates, *start)
        (q, w, b), (new_q, new_w, _) = path
        X, y, _ = model.sample(1, 3, np.random.default_rng([5, seed]))
        s = softmax(X[0] @ q)
        score = s @ X[0] @ w
        k, g = s * (X[0] @ w - score), -y[0] * expit(-y[0] * (score + b)) / d
        in_q, in_w = q - rates.q * g * (k @ X[0]), w - rates.w * g * (s @ X[0])
        beyond = [
            new_q @ new_q - in_q @ in_q,
            new_w @ new_w - in_w @ in_w,
            new_q @ new_w - in_q @ in_w,
        ]
        rows.append(beyond / g**2 / [rates.q**2, rates.w**2, rates.q * rates.w])
        due.append((d - 3) * np.array([k @ k, s @ s, s @ k]))
    agree(np.zeros(3), np.subtract(rows, due), claim="exact-noise")
    with pytest.raises(AgreementError):
        agree(np.zeros(3), np.subtract(rows, np.multiply(1.2, due)), claim="exact-noise-corrupted")


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
def test_exact_steps_have_the_law_of_dense_ones():
    """At d = 12, where the dimension matters, after 36 steps; a rate 20 % off is refused."""
    model, names = SparseTokens(6, 2, 2.0, 0.4), ("query_cos", "query_norm", "readout_norm", "bias")

    def runs(method, seed, rate=2.0):
        options = {"lr_q": 4.0, "lr_w": rate, "lr_b": 2.0, "start": (1.0, 0.5), "method": method}
        streams = [np.random.default_rng([seed, k]) for k in range(160)]
        last = [simulate_training(model, 12, [3.0], rng, **options)[0] for rng in streams]
        values = np.array([[getattr(one, name) for name in names] for one in last])
        return np.concatenate([values, values**2], axis=1)

    dense = runs("dense", 1)
    error = dense.std(axis=0, ddof=1) / math.sqrt(len(dense))

    def compare(other, **told):
        spread = other.std(axis=0, ddof=1) / math.sqrt(len(other))
        both = np.hypot(error, spread)
        told |= {"standard_error": both, "trials": 160, "claim": "exact-is-dense"}
        agree(dense.mean(0), other.mean(0), **told)

    compare(runs("exact", 2))
    with pytest.raises(AgreementError):
        compare(runs("exact", 2, rate=2.4), false_alarm=0.05)


@pytest.mark.slow
def test_going_on_from_a_record():
    whole = predict_training(MODEL, [2.0, 6.0], **RATES)
    rest = predict_training(MODEL, [4.0], start=whole[0], **RATES)
    for name, value in vars(rest[0]).items():
        if name != "samples":
            assert value == pytest.approx(getattr(whole[1], name), abs=0.01), name


def test_nothing_moves_without_rates():
    still = predict_training(MODEL, [0.0, 5.0], lr_q=0, lr_w=0, lr_b=0, start=(2.0, 0.5))
    expected = Training(0.0, 0.0, 0.0, 2.0, 0.5, 0.0, 0.0, 0.5)
    for samples, one in zip((0.0, 5.0), still, strict=True):
        for name, value in vars(replace(expected, samples=samples)).items():
            assert getattr(one, name) == pytest.approx(value, abs=1e-3)


def test_no_signal_is_not_found():
    last = predict_training(SparseTokens(10, 1, 0.0, 0.5), [4.0], **RATES)[0]
    assert last.query_cos == last.readout_cos == 0
    assert last.test_error == pytest.approx(0.5, abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("L", [10, 60])
@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_the_estimated_error_is_honest(L, loss):
    model, times = SparseTokens(L, 1, 5.0, 0.3), np.array([0.5, 1.0, 2.0])
    ours = predict_training(model, times, loss=loss, **RATES | {"lr_w": 1.0})
    cloud, start = sample_cloud(model, 13, 99), State(0, 0, 0.01, 0.01, 0, 0)
    fine = training._trajectory(model, times, cloud, loss, Rates(3.0, 1.0, 3.0), start, 1e-5)
    gap = np.abs(np.array([list(vars(one).values()) for one in ours]) - fine)
    assert gap.max() < 3 * 2e-3


@pytest.mark.slow
def test_refusal_to_converge():
    with pytest.raises(ConvergenceError, match="estimated error") as caught:
        predict_training(SparseTokens(4000, 1, 5.0, 0.5), [0.05], tolerance=1e-9, **RATES)
    assert len(caught.value.estimate) == 1
    wild = {"loss": "square", "lr_q": 9.0, "lr_w": 9.0, "lr_b": 9.0}
    with pytest.raises(ConvergenceError, match="diverges before") as caught:
        predict_training(MODEL, [0.0, 1e-3, 9.0], **wild)
    assert [record.samples for record in caught.value.estimate] == [0.0, 1e-3]
    with pytest.raises(ConvergenceError, match="diverges before") as caught:
        predict_training(MODEL, [9.0], **wild)
    assert caught.value.estimate == []
    with pytest.raises(ConvergenceError, match="diverges before"):
        simulate_training(MODEL, 20, [9.0], np.random.default_rng(0), **wild)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("samples", {"samples": [2.0, 1.0]}),
        ("samples", {"samples": [-1.0, 1.0]}),
        ("loss", {"loss": "hinge"}),
        ("lr_q", {"lr_q": -1.0}),
        ("start", {"start": (-1.0, 0.1)}),
        ("tolerance", {"tolerance": 0.0}),
        ("model", {"model": 3}),
    ],
)
def test_bad_input_is_refused(name, options):
    arguments = {"model": MODEL, "samples": [1.0], **RATES, **options}
    with pytest.raises(ValueError, match=rf"^{name}.* is not allowed"):
        predict_training(arguments.pop("model"), arguments.pop("samples"), **arguments)
    arguments = {"model": MODEL, "samples": [1.0], **RATES, **options}
    if name != "tolerance":
        model, samples = arguments.pop("model"), arguments.pop("samples")
        with pytest.raises(ValueError, match=rf"^{name}.* is not allowed"):
            simulate_training(model, 10, samples, np.random.default_rng(0), **arguments)


@pytest.mark.slow
@pytest.mark.parametrize(("L", "theta"), [(10, 4.0), (100, 5.0)])
def test_a_trajectory_asks_for_few_drifts(L, theta, monkeypatch):
    calls = []
    monkeypatch.setattr(training, "drift", lambda *a: calls.append(len(calls)) or drift(*a))
    predict_training(SparseTokens(L, 1, theta, 0.5), np.linspace(0, 12, 25), **RATES)
    assert 0 < len(calls) < 600  # 334 and 418: seconds, and not minutes


@pytest.mark.parametrize(
    ("rates", "words"),
    [((0.01, 0.016, 1e-6), "descent diverges at samples"), ((1e-6, 1e-6, 2e-3), "too fast")],
)
def test_a_course_that_cannot_be_followed_is_left_in_time(rates, words, monkeypatch):
    """Needles a million high: nan once, and once more looks than any course needs."""
    monkeypatch.setattr(training, "_LOOKS", 400)
    told = dict(zip(("lr_q", "lr_w", "lr_b"), rates, strict=True))
    with pytest.raises(ConvergenceError, match=words):
        predict_training(SparseTokens(30, 1, 1e6, 0.5), [2.0], loss="square", **told)
