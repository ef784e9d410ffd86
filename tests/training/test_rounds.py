"""Rounds of gradient steps: prediction against tokens, and what the first round is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from needle.data.tokens import SparseTokens
from needle.readout.reuse import predict_reuse
from needle.steps.alignment import predict_alignment
from needle.training.rounds import (
    predict_reused_rounds,
    predict_rounds,
    predict_rounds_readout,
    simulate_rounds,
)
from utils.agreement import AgreementError, agree


@pytest.mark.slow
@pytest.mark.false_alarm(2e-4)
@pytest.mark.parametrize("kind", ["readout", "repeat"])
def test_fresh_rounds_meet_their_prediction(kind):
    model, sizes = SparseTokens(20, 2, 3.0, 0.3), (100, 200)
    streams = [[np.random.default_rng([d, k]) for k in range(24)] for d in sizes]
    runs = [
        [simulate_rounds(model, d, 1.0, 3, rng, kind=kind, fresh=True) for rng in group]
        for d, group in zip(sizes, streams, strict=True)
    ]
    theory = predict_rounds(model, 1.0, 3, kind=kind)
    runs = [np.array(group) for group in runs]
    agree(theory, runs, sizes=sizes, claim="fresh-rounds")
    lower = predict_rounds(SparseTokens(20, 2, 2.4, 0.3), 1.0, 3, kind=kind)
    with pytest.raises(AgreementError):
        agree(lower, runs, sizes=sizes, claim="fresh-rounds-corrupted")


@pytest.mark.false_alarm(1e-4)
def test_the_second_round_against_tokens_in_the_space_of_query_and_readout():
    """d → ∞ term by term: means over tokens of three entries, and noise of the size of the rest."""
    model, T, rng = SparseTokens(5, 1, 3.0, 0.8), 4.0, np.random.default_rng(0)
    cos, ours = predict_rounds(model, 1.0, 2, sharpness=T)

    def step(vector_of):
        """The step over fresh bags: along the three axes, and its noise elsewhere."""
        X, y, _ = model.sample(10_000, 3, rng)
        weights, pull = vector_of(X), (y > 0) - model.pi
        mean = np.mean(pull[:, None] * np.einsum("nl,nld->nd", weights, X), axis=0)
        return mean, np.sqrt(np.mean(pull**2 * (weights**2).sum(axis=1)))

    def second():
        q = T * np.array([cos, np.sqrt(1 - cos**2), 0.0])
        (along, across, _), noise = step(lambda X: softmax(X @ q, axis=1))
        w = np.array([along, across, noise]) / np.sqrt(along**2 + across**2 + noise**2)

        def k(X):
            s, v = softmax(X @ q, axis=1), X @ w
            return s * (v - (s * v).sum(axis=1, keepdims=True))

        mean, noise = step(k)
        return mean[0] / np.sqrt(mean @ mean + noise**2)

    found = [second() for _ in range(20)]
    agree(ours, found, claim="second-round")
    with pytest.raises(AgreementError):
        agree(1.1 * ours, found, claim="second-round-corrupted", false_alarm=0.05)


def test_first_readout_is_pooling():
    """From q = 0, w = Σ γ̄ X̄: cos² = απ(1−π)θ²R²/L over 1 plus that."""
    model = SparseTokens(30, 3, 2.0, 0.2)
    gain = 0.7 * 0.2 * 0.8 * 4 * 9 / 30
    (cos,) = predict_rounds(model, 0.7, 1, kind="readout")
    assert cos**2 == pytest.approx(gain / (1 + gain), rel=2e-3)


def test_first_repeat_is_two_steps_for_small_rates():
    """On many data both have the calibrated two steps' cosine; one batch a step is no echo."""
    model = SparseTokens(10, 1, 4.0, 0.5)
    many = predict_alignment(model, 200.0, lr_w=1e-6, lr_b=1e-6).query_cos
    (ours,) = predict_rounds(model, 200.0, 1)
    assert ours == pytest.approx(many, abs=0.01)


def test_the_same_data_give_more_than_one_batch():
    model = SparseTokens(30, 1, 5.0, 0.5)
    for kind in ("readout", "repeat"):
        path = simulate_rounds(model, 150, 1.0, 8, np.random.default_rng(0), kind=kind)
        assert path[-1] > path[0] > 0
        again = simulate_rounds(model, 150, 1.0, 8, np.random.default_rng(0), kind=kind)
        assert (path == again).all()
        assert not (path == simulate_rounds(model, 150, 1.0, 8, np.random.default_rng(1))).any()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("kind", {"kind": "both"}),
        ("rounds", {"rounds": 0}),
        ("alpha", {"alpha": -1.0}),
        ("sharpness", {"sharpness": 0.0}),
    ],
)
def test_bad_input_is_refused(name, options):
    arguments = {"alpha": 1.0, "rounds": 2, **options}
    alpha, rounds = arguments.pop("alpha"), arguments.pop("rounds")
    model = SparseTokens(6, 1, 2.0, 0.4)
    with pytest.raises(ValueError, match=rf"^{name}.* is not allowed"):
        predict_rounds(model, alpha, rounds, **arguments)
    with pytest.raises(ValueError, match=rf"^{name}.* is not allowed"):
        simulate_rounds(model, 10, alpha, rounds, np.random.default_rng(0), **arguments)


@pytest.mark.parametrize("kind", ["readout", "repeat"])
def test_bags_of_one_class_teach_nothing(kind):
    silent = SparseTokens(4, 1, 2.0, 1e-12)
    found = simulate_rounds(silent, 5, 1.0, 2, np.random.default_rng(0), kind=kind)
    assert found.tolist() == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.false_alarm(2e-4)
@pytest.mark.parametrize("kind", ["readout", "repeat"])
def test_reused_rounds_meet_their_limit(kind):
    """False alarm 10⁻⁴ for each; a fifth fewer bags are refused."""
    model, sizes = SparseTokens(20, 2, 3.0, 0.3), (60, 120, 240)
    runs = [
        [simulate_rounds(model, d, 1.0, 4, np.random.default_rng([d, k]), kind=kind)
         for k in range(40)]
        for d in sizes
    ]  # fmt: skip
    trials = [{f"cos@{k}": np.array(group)[:, k] for k in range(4)} for group in runs]

    def named(path):
        return {f"cos@{k}": cos for k, cos in enumerate(path)}

    agree(
        named(predict_reused_rounds(model, 1.0, 4, kind=kind)), trials, sizes=sizes, claim="reused"
    )
    fewer = named(predict_reused_rounds(model, 0.8, 4, kind=kind))
    with pytest.raises(AgreementError):
        agree(fewer, trials, sizes=sizes, claim="reused-refused")


@pytest.mark.false_alarm(1e-4)
def test_one_round_and_a_readout_are_the_calibrated_two_steps():
    """With vanishing rates and a calibrated intercept (π = ½), `predict_reuse` is one round."""
    model, told = SparseTokens(10, 1, 3.0, 0.5), {"temperature": 2.0}
    ours = predict_rounds_readout(model, 1.0, 0.05, 1, kind="repeat", populations=8, **told)
    known = predict_reuse(model, 1.0, 0.05, lr_w=1e-3, lr_b=1e-3, **told)
    for name in ("test_error", "train_loss", "signal", "norm"):
        value, other = getattr(ours, name), getattr(known, name)
        assert abs(value - other) < 4.5 * value.standard_error + 2e-3 * abs(other)
