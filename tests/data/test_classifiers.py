"""Feature laws: equality in law with the dense path, quadrature against independent integration."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import ks_2samp

from needle.data import dense
from needle.data import law as laws
from needle.data.classifiers import attention, gaussian_mixture, learned_attention, pooled
from needle.data.dense import dense_features
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.kit.records import Alignment
from needle.readout.limit import predict_readout

CORNERS = [  # L, R, theta, temperature, cos
    (10, 1, 4.0, 1.0, 0.8),
    (10, 3, 2.0, 2.0, -0.5),
    (20, 2, 3.0, 0.3, 0.9),
    (6, 6, 1.5, 1.0, 0.7),
    (2, 1, 2.0, 1.5, 0.6),
    (2, 2, 2.0, 0.5, 0.0),
    (10, 1, 4.0, 2.0, 1.0),
    (10, 1, 4.0, 2.0, -1.0),
    (10, 2, 3.0, 0.0, 0.4),
    (10, 1, 4.0, 50.0, 0.9),
    (10, 1, 0.0, 2.0, 0.9),
]


def statistics(F):
    return [F[:, 0], F[:, 1], F[:, 2], F[:, 0] * F[:, 1], (F**2).sum(axis=1)]


@pytest.mark.false_alarm(1e-05)
@pytest.mark.parametrize(("L", "R", "theta", "temperature", "cos"), CORNERS)
def test_exact_sampling_has_the_law_of_the_dense_path(L, R, theta, temperature, cos):
    """Five statistics in each class by Kolmogorov–Smirnov, 110 tests at 1e-6: alarm rate 1.1e-4."""
    model, d, n = SparseTokens(L, R, theta, 0.4), 6, 6000
    dense = dense_features(model, n, d, np.random.default_rng(1), temperature=temperature, cos=cos)
    law = attention(model, temperature=temperature, cos=cos)
    exact = law.sample(n, d, np.random.default_rng(2))
    assert abs(dense.y.mean() - exact.y.mean()) < 6 * np.sqrt(2 * 0.96 / n)
    for label in (1, -1):
        pairs = zip(
            statistics(dense.F[dense.y == label]),
            statistics(exact.F[exact.y == label]),
            strict=True,
        )
        assert min(ks_2samp(one, other).pvalue for one, other in pairs) > 1e-6


@pytest.mark.false_alarm(2e-5)
@pytest.mark.parametrize("R", [1, 3, pytest.param(8, marks=pytest.mark.slow)])
def test_pooled_and_vectorized_sampling_match_the_tokens(R):
    """Literal tokens against pooled and flattened samples; a θ one fifth too large is refused."""
    model, d, n = SparseTokens(8, R, 2.0, 0.4), 4, 20_000
    X, y, _ = model.sample(n, d, np.random.default_rng(3))
    literal = X.mean(axis=1)
    short = pooled(model).sample(n, d, np.random.default_rng(4))
    flat = vectorized(model).sample(n, d, np.random.default_rng(5))
    assert flat.F.shape == (n, 8 * d)
    averaged = flat.F.reshape(n, 8, d).mean(axis=1)
    for label in (1, -1):
        reference = statistics(literal[y == label])
        for F, labels in ((short.F, short.y), (averaged, flat.y)):
            pairs = zip(reference, statistics(F[labels == label]), strict=True)
            assert min(ks_2samp(one, other).pvalue for one, other in pairs) > 1e-6
    wrong = pooled(SparseTokens(8, R, 2.4, 0.4)).sample(n, d, np.random.default_rng(6))
    pairs = zip(statistics(literal[y == 1]), statistics(wrong.F[wrong.y == 1]), strict=True)
    assert min(ks_2samp(one, other).pvalue for one, other in pairs) < 1e-6


def product_rule(L, R, theta, temperature, cos, label, order):
    """(a, c, r, weight) by Gauss–Hermite quadrature in every token: an independent slow path."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    g = np.stack(np.meshgrid(*[x] * L, indexing="ij"), axis=-1).reshape(-1, L)
    weight = (
        np.stack(np.meshgrid(*[w / w.sum()] * L, indexing="ij"), axis=-1).reshape(-1, L).prod(1)
    )
    logits = temperature * (g + theta * cos * (np.arange(L) < R) * (label > 0))
    s = np.exp(logits - logits.max(axis=1, keepdims=True))
    s /= s.sum(axis=1, keepdims=True)
    a = s[:, :R].sum(axis=1) * (label > 0)
    return a, (s * g).sum(axis=1), np.sqrt((s * s).sum(axis=1)), weight


def derived(theta, a, c, r, weight):
    """Error rates and training-type averages that downstream solvers take of the law."""
    z = (theta * a + 0.5 * c - theta / 2) / r
    gate = 1 / (1 + np.exp(theta * a + c - theta / 2))
    parts = ndtr(-z), ndtr(-z / 2), gate * a, gate * c**2, r**2 / (1 + r**2), r**2
    return np.array([weight @ part for part in parts])


@pytest.mark.parametrize("cos", [0.9, 1.0, 0.0])
@pytest.mark.parametrize(("L", "R", "order"), [(2, 1, 120), (2, 2, 120), (3, 1, 60)])
def test_nodes_agree_with_product_quadrature(L, R, order, cos):
    theta, temperature = 2.0, 1.5
    law = attention(SparseTokens(L, R, theta, 0.4), temperature=temperature, cos=cos)
    for label, share in ((1, 0.4), (-1, 0.6)):
        here = law.nodes.y == label
        ours = derived(theta, *(part[here] for part in law.nodes[1:])) / share
        slow = derived(theta, *product_rule(L, R, theta, temperature, cos, label, order))
        assert np.allclose(ours, slow, rtol=1e-3, atol=1e-5)


@pytest.mark.false_alarm(5e-07)
@pytest.mark.parametrize(
    ("L", "R", "theta", "temperature", "cos"),
    [
        (10, 1, 5.0, 2.0, 0.8),
        (40, 2, 4.0, 0.5, 0.9),
        (40, 20, 1.0, 3.0, 0.7),
        (13, 1, 3.0, 8.0, 1.0),
    ],
)
def test_nodes_agree_with_exact_draws(L, R, theta, temperature, cos):
    """Also beyond `_EXACT` tokens, where sums are Gaussian: 48 z-scores below 5.5, alarm 2e-6."""
    law = attention(SparseTokens(L, R, theta, 0.5), temperature=temperature, cos=cos)
    for label in (1, -1):
        here, rng = law.nodes.y == label, np.random.default_rng(6)
        ours = derived(theta, *(part[here] for part in law.nodes[1:])) / 0.5
        batches = np.array([
            derived(theta, *law.coefficients(np.full(5000, label), rng), np.full(5000, 1 / 5000))
            for _ in range(20)
        ])  # fmt: skip
        mean, error = batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(20)
        allowed = 5.5 * error * 1.5 + 2e-4 * np.abs(mean)  # 1.5: a t with 19 degrees of freedom
        assert np.all(np.abs(ours - mean) <= allowed)


def test_more_nodes_converge_and_weights_sum_to_one():
    model = SparseTokens(10, 1, 5.0, 0.3)
    coarse, default, fine = (
        attention(model, temperature=2.0, cos=0.8, resolution=m) for m in (96, 1536, 16384)
    )
    values = [derived(5.0, *law.nodes[1:]) for law in (coarse, default, fine)]
    assert np.all(np.abs(values[1] / values[2] - 1) < 1e-3)
    assert np.sum(np.abs(values[0] - values[2])) > 5 * np.sum(np.abs(values[1] - values[2]))
    for law in (coarse, default):
        y, a, _c, r, weight = law.nodes
        assert len(y) <= law.resolution and np.all(weight > 0)
        assert abs(weight.sum() - 1) < 1e-12 and abs(weight[y > 0].sum() - 0.3) < 1e-12
        assert np.all((a > -0.1) & (a < 1.1) & (r > 0.3) & (r < 1.1))  # the support is a ≤ 1, r ≤ 1
        assert not a[y < 0].any()


@pytest.mark.parametrize(("L", "R"), [(10, 1), (5, 5), (100, 3)])
def test_merging_points_into_nodes_keeps_two_moments_of_each_class(L, R):
    law = attention(SparseTokens(L, R, 4.0, 0.3), temperature=1.5, cos=0.8)
    every = attention(law.model, temperature=1.5, cos=0.8, resolution=None).nodes
    assert len(every.y) == 2**16 and all(map(np.array_equal, every, law.points))
    for label in (1, -1):
        moments = []
        for y, a, c, r, weight in (every, law.nodes):
            x, w = np.array([a, c, r])[:, y == label], weight[y == label]
            moments.append(np.column_stack([w @ x.T, (w * x) @ x.T]))
        assert np.allclose(*moments, rtol=1e-9, atol=1e-12)
    assert all(map(np.array_equal, pooled(law.model).points, pooled(law.model).nodes))


def test_temperature_zero_is_exactly_pooled():
    model = SparseTokens(10, 2, 3.0, 0.4)
    cold, mean = attention(model, temperature=0, cos=0.7), pooled(model)
    for one, other in zip(cold.nodes, mean.nodes, strict=True):
        assert np.array_equal(one, other)
    same = [law.sample(9, 4, np.random.default_rng(1)).F for law in (cold, mean)]
    assert np.array_equal(*same)
    warm = attention(model, temperature=1e-7, cos=0.7)
    for intercept in (True, False):
        errors = [
            predict_readout(law, 2.0, 0.1, loss="square", intercept=intercept).test_error
            for law in (warm, mean)
        ]
        assert abs(errors[0] / errors[1] - 1) < 3e-4


@pytest.mark.parametrize("L", [10**3, 10**6, 10**9])
def test_long_sequences_cost_no_more_and_meet_the_law_of_large_numbers(L):
    """Below the freezing temperature c → T and r²L → e^{T²} (exactly known for iid tokens)."""
    law = attention(SparseTokens(L, 1, 0.0, 0.5), temperature=0.5, cos=0.5)
    tracemalloc.start()
    _y, _, c, r, weight = law.nodes
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6
    mean = np.array([weight @ c, weight @ r**2 * L])
    correction = 1 - np.exp(0.25) / L  # of c, to first order in 1/L
    assert np.allclose(mean, [0.5 * correction, np.exp(0.25)], rtol=4 / L + 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1e-3, 50.0, 1e3])
@pytest.mark.parametrize(("L", "R"), [(2, 1), (30, 30), (10**5, 20)])
@pytest.mark.parametrize("cos", [-1.0, 0.3])
def test_extreme_arguments_stay_finite(L, R, temperature, cos):
    law = attention(SparseTokens(L, R, 20.0, 0.01), temperature=temperature, cos=cos, resolution=60)
    assert all(np.all(np.isfinite(part)) for part in law.nodes)
    assert np.all(law.nodes.r > 0)


def test_sampled_subsets_agree_with_all_subsets():
    few = vectorized(SparseTokens(40, 3, 3.0, 0.5))  # 9880 subsets
    many = vectorized(SparseTokens(40, 5, 3.0, 0.5))  # 658,008 subsets
    w = np.random.default_rng(0).standard_normal(40)
    assert len(few.scores(w, 0.0).y) == 9881 and len(many.scores(w, 0.0).y) == 20_001
    y, mean, sd, weight = many.scores(w, 0.0)
    assert np.allclose(sd, np.linalg.norm(w), rtol=1e-12)
    half = (y > 0) & (weight > 0)
    assert mean[half].mean() == pytest.approx(3.0 * 5 * w.mean())  # every position equally often
    exact = 9.0 * 5 * w.var() * (40 - 5) / 39
    assert mean[half].var() == pytest.approx(exact, rel=0.05)


def test_attention_sampling_needs_no_token_tensor():
    model = SparseTokens(200, 1, 3.0, 0.5)
    tracemalloc.start()
    F, _ = attention(model, temperature=1.0, cos=0.9).sample(2000, 200, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 / 200 * (2000 * 200 * 200 * 8) + 4 * F.nbytes


def test_blocks_do_not_change_the_coefficients(monkeypatch):
    law = attention(SparseTokens(9, 2, 3.0, 0.5), temperature=1.5, cos=0.7)
    y = np.where(np.random.default_rng(1).random(50) < 0.5, 1, -1)
    whole = law.coefficients(y, np.random.default_rng(2))
    monkeypatch.setattr(laws, "_BLOCK", 7 * 9)
    for one, other in zip(whole, law.coefficients(y, np.random.default_rng(2)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_blocks_do_not_change_the_dense_features(monkeypatch):
    """Against softmax pooling of all tokens at once, drawn as the blocks draw them."""
    model, T, cos, d = SparseTokens(6, 2, 3.0, 0.5), 1.5, 0.7, 5
    monkeypatch.setattr(dense, "_BLOCK", 8 * 6 * d)
    F, y = dense_features(model, 20, d, np.random.default_rng(3), temperature=T, cos=cos)
    rng = np.random.default_rng(3)
    parts = [model.sample(n, d, rng) for n in (8, 8, 4)]
    X, labels = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    logits = T * X @ [cos, np.sqrt(1 - cos**2), 0, 0, 0]
    s = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(F, (s[:, :, None] * X).sum(axis=1), rtol=1e-12)
    assert np.array_equal(y, labels)


@pytest.mark.parametrize(
    ("L", "R", "theta", "T", "cos"),
    [(10, 1, 5.0, 2.0, 0.8), (10, 2, 3.0, 5.0, 0.9), (100, 1, 6.0, 2.0, 0.9)],
)
def test_nodes_stand_for_the_whole_cloud(L, R, theta, T, cos):
    """What the module's first lines promise of the default resolution."""
    model = SparseTokens(L, R, theta, 0.5)
    nodes, cloud = (
        predict_readout(
            attention(model, temperature=T, cos=cos, resolution=m), 3.0, 0.01, loss="square"
        ).test_error
        for m in (1536, None)
    )
    assert nodes == pytest.approx(cloud, rel=2.5e-4 if cloud > 0.01 else 1e-3)


def test_corners_below_the_support_are_lifted():
    """r ≥ half of the cloud's smallest, whatever the cells: here a corner reaches .43 of it."""
    model, T = SparseTokens(10**6, 1, 3.0, 0.5), np.sqrt(np.log(10**6) / 2)
    law = attention(model, temperature=T, cos=0.5, resolution=24)
    lowest = law.nodes.r[law.nodes.y < 0].min() / law.cloud(-1)[0][2].min()
    assert lowest == pytest.approx(0.5, rel=1e-12)


def test_a_learned_query_has_the_law_of_its_alignment():
    alignment = Alignment(0.5, 1.0, -0.6, 0.25, -0.15)
    law = learned_attention(MODEL, alignment, scale=8.0, resolution=48)
    assert (law.temperature, law.cos, law.resolution) == (2.0, -0.6, 48)
    assert learned_attention(MODEL, alignment, scale=0.0).nodes.a.max() == 0.1


MODEL = SparseTokens(10, 1, 1.0, 0.5)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: pooled("model"), "model"),
        (lambda: vectorized(None), "model"),
        (lambda: attention(MODEL, temperature=-1, cos=0.5), "temperature"),
        (lambda: attention(MODEL, temperature=1, cos=1.5), "cos"),
        (lambda: attention(MODEL, temperature=np.nan, cos=0.5), "temperature"),
        (lambda: attention(MODEL, temperature=1, cos=0.5, resolution=23), "resolution"),
        (lambda: gaussian_mixture(mean=-1, var_pos=1, var_neg=1), "mean"),
        (lambda: gaussian_mixture(var_pos=0, var_neg=1), "var_pos"),
        (lambda: gaussian_mixture(var_pos=1, var_neg=-1), "var_neg"),
        (lambda: gaussian_mixture(var_pos=1, var_neg=1, pi=1), "pi"),
        (lambda: pooled(MODEL).sample(0, 5, np.random.default_rng(0)), "n"),
        (lambda: pooled(MODEL).sample(5, 0, np.random.default_rng(0)), "d"),
        (lambda: pooled(MODEL).sample(5, 5, 0), "rng"),
        (lambda: vectorized(MODEL).sample(5, 5, None), "rng"),
        (
            lambda: attention(MODEL, temperature=1, cos=1).sample(5, 1, np.random.default_rng(0)),
            "d",
        ),
        (lambda: dense_features(MODEL, 5, 5, 3, temperature=1, cos=0), "rng"),
    ],
)
def test_bad_arguments_are_refused(call, name):
    with pytest.raises(ValueError, match=f"^{name} = .* is not allowed: {name} must be"):
        call()
