"""The limit of a first-order method against closed forms, and against what it replaces."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from needle.data.tokens import SparseTokens
from needle.kit.losses import get_loss
from needle.kit.records import ConvergenceError
from needle.readout.reuse import predict_reuse
from needle.steps.alignment import predict_alignment
from needle.training import worlds
from needle.training.rounds import readout_on
from needle.training.worlds import Limit, TokenWorld
from utils.agreement import AgreementError, agree

FEW = SparseTokens(L=20, R=2, theta=2.5, pi=0.6)


def two_steps(world, lr_w=0.5, lr_b=0.5):
    """w after one step and q after another, from zero, in whichever world."""
    kind, zero = get_loss("logistic"), np.zeros(len(world.y))
    length = world.field(world.origin(1)).shape[-1]
    pull = -kind.first(zero, world.y)
    w = lr_w * world.pull(np.repeat(pull[:, None] / length, length, axis=1)[None])
    b = lr_b * float(world.weight @ pull)
    v = world.field(w)[0]
    mean = v.mean(axis=1)
    again = -kind.first(mean + b, world.y)
    return w[0], world.pull((again[:, None] * (v - mean[:, None]) / length)[None])[0]


def populations(count, bags, **options):
    return [Limit(FEW, 1.0, bags, np.random.default_rng(k), 3, **options) for k in range(count)]


@pytest.mark.false_alarm(1e-4)
def test_two_steps_are_those_of_the_alignment():
    """False alarm 10⁻⁴. The first step has no error of sampling; of the second the norm for a tenth
    more bags is refused."""

    def query(world):
        w, q = two_steps(world)
        assert np.linalg.norm(w) == pytest.approx(theory.readout_norm, rel=1e-4)
        assert w[0] / np.linalg.norm(w) == pytest.approx(theory.readout_cos, rel=1e-4)
        return {"query_norm": np.linalg.norm(q), "query_cos": q[0] / np.linalg.norm(q)}

    theory = predict_alignment(FEW, 1.0)
    told = {"fields": ["query_norm", "query_cos"], "claim": "two-steps-in-the-limit"}
    agree(theory, [query(x) for x in populations(12, 2000)], **told)
    more = predict_alignment(FEW, 1.1)
    with pytest.raises(AgreementError):
        agree(more, [query(x) for x in populations(12, 2000)], **told)


@pytest.mark.false_alarm(1e-4)
def test_the_readout_behind_two_steps_is_that_of_reuse():
    """False alarm 10⁻⁴: the equations of `reuse`, reached without its closed-form law."""
    loss, runs = get_loss("logistic"), []
    for world in populations(8, 4000):
        _, q = two_steps(world)
        runs.append(readout_on(FEW, world, 2.0 * q / np.linalg.norm(q), 1.0, 0.02, loss))
    fields, told = ["train_loss", "test_error", "signal", "norm"], {"temperature": 2.0}
    agree(predict_reuse(FEW, 1.0, 0.02, **told), runs, fields=fields, claim="reuse-in-the-limit")
    half = predict_reuse(FEW, 1.0, 0.02, withheld=False, **told)
    with pytest.raises(AgreementError):
        agree(half, runs, fields=fields, claim="reuse-in-the-limit-refused", false_alarm=0.05)


def test_the_basis_is_orthonormal_and_means_are_exact():
    world = Limit(FEW, 0.7, 300, np.random.default_rng(0), 40, kinds=2)
    A = world.start([0.5, 0.5], np.array([[0.6, 0.0], [0.0, -0.3]]))
    assert np.linalg.norm(A, axis=1) == pytest.approx([0.5, 0.5])
    assert A[:, :2] == pytest.approx(np.array([[0.3, 0.0], [0.0, -0.15]]))
    for _ in range(6):
        F = np.tanh(world.field(A)) * world.y[:, None]
        A = 0.3 * A + world.pull(F)
    rows = np.array([world._row(k) for k in range(world._rows)])
    assert np.abs(rows @ rows.T - np.eye(len(rows))).max() < 1e-5
    f = world._f[4 : world.directions]
    assert np.abs(f @ f.T - np.eye(len(f))).max() < 1e-12
    each = world.field(np.eye(len(world._H))[: world.directions])
    # label, kind and place of a token are known exactly, so are means along each direction
    needle = np.zeros((300, 20), dtype=bool)
    needle[:90, :2] = True
    assert world.weight @ (needle * each[0]).sum(axis=1) == pytest.approx(0.3 * 2 * 2.5, rel=1e-4)
    assert world.weight @ (each[1] * ~needle).sum(axis=1) == pytest.approx(0.6 * 2.5, rel=1e-4)
    assert world.weight @ (each[2] ** 2).sum(axis=1) == pytest.approx(20, rel=1e-4)


def test_what_is_no_news_makes_no_direction():
    world = Limit(FEW, 1.0, 200, np.random.default_rng(0), 20)
    F = np.random.default_rng(1).normal(size=(1, 200, 20))
    first = world.pull(F)
    assert world.directions == 2
    same = world.pull(np.concatenate([2 * F, -F]))
    assert world.directions == 2
    # its own share is now in the field: what is new at the first time is a projection at the next
    assert same[0] == pytest.approx(2 * first[0], rel=1e-4, abs=1e-6)
    assert same[1] == pytest.approx(-first[0], rel=1e-4, abs=1e-6)


def test_memory_is_bounded_by_an_error(monkeypatch):
    monkeypatch.setattr(worlds, "_MEMORY", 64 * 200 * 20)
    world, rng = Limit(FEW, 1.0, 200, np.random.default_rng(0), 60), np.random.default_rng(1)
    marks = [rng.normal(size=(1, 200, 20)) for _ in range(40)]
    with pytest.raises(ConvergenceError, match="take fewer bags"):
        list(map(world.pull, marks))


def test_tokens_are_multiplied_as_they_are():
    rng = np.random.default_rng(0)
    X, y, _ = FEW.sample(7, 11, rng)
    world, A, F = TokenWorld(X, y), rng.normal(size=(2, 11)), rng.normal(size=(3, 7, 20))
    assert world.field(A) == pytest.approx(np.einsum("nld,kd->knl", X, A))
    assert world.pull(F) == pytest.approx(np.einsum("nld,knl->kd", X, F) / 7)


def test_features_of_the_bags_are_sums_of_their_fields():
    world = Limit(FEW, 0.5, 400, np.random.default_rng(0), 6)
    w, q = two_steps(world)
    seen = world.seen(2 * q)
    s = softmax(world.field(2 * q[None])[0], axis=-1)
    along = (s * world.field(w[None])[0]).sum(axis=1)
    assert along == pytest.approx(w[:3] @ seen.means[:3], abs=1e-5)
    assert seen.r == pytest.approx(np.sqrt((s**2).sum(axis=1)), rel=1e-5)
    assert len(seen.taken) == 2
    assert not seen.means[3].any()
