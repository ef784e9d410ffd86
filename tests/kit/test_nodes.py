"""Points and weights against closed forms and exact moments."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import qmc

from needle.kit.nodes import (
    GRID,
    MASS,
    _many_roots,
    _root,
    _truncated_moments,
    cells,
    falling_normals,
    falling_sums,
    gaussian_nodes,
    merge,
    normal_grid,
    sobol,
    softmax_sums,
)


@pytest.mark.parametrize("mean", [-40.0, -3.0, 0.0, 0.7, 5.0])
@pytest.mark.parametrize("sd", [1e-6, 0.02, 1.0, 30.0, 1e4])
def test_gaussian_nodes_integrate_polynomials_and_sigmoids(mean, sd):
    t, weight = gaussian_nodes(mean, sd)
    assert weight.sum() == pytest.approx(1, rel=1e-13)
    assert weight @ t == pytest.approx(mean, abs=1e-12 * (abs(mean) + sd))
    assert weight @ ((t - mean) / sd) ** 4 == pytest.approx(3, rel=1e-8)
    assert weight @ ndtr(t) == pytest.approx(ndtr(mean / np.hypot(1, sd)), rel=1e-9, abs=1e-13)
    assert gaussian_nodes(mean, 0.0)[0].tolist() == [mean]


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1e-3), (0.0, 7.0), (-3.0, 2.0), (41.17, 3.3)])
def test_panels_double_in_width_away_from_zero(mean, sd):
    """Panels end at the mean ± whole multiples of sd, at 0, ±2, ±4, ±8, …, and at ±12 sd."""
    t, _ = gaussian_nodes(mean, sd)
    assert np.all(np.diff(t) > 0) and np.all(np.abs(t - mean) < 12 * sd)
    powers = 2.0 ** np.arange(1, 12)
    inside = np.concatenate([-powers, [0.0], powers])
    inside = inside[np.abs(inside - mean) < 12 * sd]
    edges = np.unique(np.concatenate([mean + sd * np.arange(-12.0, 13.0), inside]).round(9))
    found = t.reshape(-1, 20)
    x = np.polynomial.legendre.leggauss(20)[0]
    assert found == pytest.approx(
        edges[:-1, None] + np.diff(edges)[:, None] * (1 + x) / 2, abs=1e-8 * (1 + sd)
    )


def test_a_certain_score_has_one_node():
    t, weight = gaussian_nodes(-3.0, 0.0)
    assert t.tolist() == [-3.0] and weight.tolist() == [1.0]


def test_bad_nodes_are_refused():
    with pytest.raises(ValueError, match=r"^mean = 'a' is not allowed: mean must be"):
        gaussian_nodes("a", 1.0)
    with pytest.raises(ValueError, match=r"^sd = -1 is not allowed: sd must be .* \[0, inf"):
        gaussian_nodes(0.0, -1)


def test_a_grid_of_other_points():
    points, mass = normal_grid(np.array([-1.0, 0.0, 2.0]))
    heights = np.exp([-0.5, 0.0, -2.0])
    assert points.tolist() == [-1.0, 0.0, 2.0]
    assert mass == pytest.approx(heights / heights.sum(), rel=1e-15)


def test_sobol_points_stay_off_the_walls(monkeypatch):
    whole = sobol(3, 6, 0)
    assert whole.shape == (64, 3) and np.all(np.histogram(whole[:, 0], 64, (0, 1))[0] == 1)
    assert np.array_equal(whole, qmc.Sobol(3, bits=30, rng=0).random_base2(6))
    assert not np.array_equal(whole, sobol(3, 6, 1))

    class Walls:
        def __init__(self, width, **_):
            self.width = width

        def random_base2(self, bits):
            return np.tile([[0.0], [0.5], [1.0]], self.width)

    monkeypatch.setattr(qmc, "Sobol", Walls)
    assert sobol(2, 1, 0)[:, 1].tolist() == [2.0**-31, 0.5, 1 - 2.0**-31]


def test_the_grid_integrates_smooth_functions():
    moments = [MASS @ GRID**k for k in (0, 2, 4, 6)]
    assert moments == pytest.approx([1, 1, 3, 15], rel=1e-12)
    assert MASS @ np.exp(2 * GRID) == pytest.approx(np.exp(2), rel=1e-12)


@pytest.mark.parametrize(("signal", "noise"), [(1, 9), (3, 40), (13, 10**6)])
def test_falling_normals_are_order_statistics(signal, noise):
    """U = Φ(g) of the largest of n is beta(n, 1); U₂/U₁ is beta(n − 1, 1), whatever U₁."""
    groups, weight = falling_normals(signal, noise)
    assert weight.sum() == pytest.approx(1)
    for n, (g, others) in zip((signal, noise), groups, strict=True):
        assert len(g) == (n if n <= 12 else 6)
        assert others.shape[1] == 3 * (n > 12)
        u = ndtr(g)
        assert weight @ u[0] ** (n / 2) == pytest.approx(2 / 3, abs=2e-4)
        assert weight @ u[0] ** (2 * n) == pytest.approx(1 / 3, abs=2e-4)
        if n > 1:
            ratio = (u[1] / u[0]) ** (n - 1)
            assert weight @ ratio == pytest.approx(1 / 2, abs=1e-3)
            product = weight @ (ratio * u[0] ** n)
            assert product == pytest.approx(1 / 4, abs=1e-3)  # independent


@pytest.mark.parametrize("T", [0.2, 0.8])
@pytest.mark.parametrize("count", [8, 13, 60, 2000])
def test_softmax_sums_have_exact_means_and_covariances(count, T):
    """S₀ = Σ e^{Tg}, S₁ = Σ g e^{Tg}, S₂ = Σ e^{2Tg} of `count` tokens, log-normal moments."""
    (_, (g, others)), weight = falling_normals(0, count)
    peak, S = softmax_sums(g, others, count, T)
    S = S * np.exp(np.array([1, 1, 2])[:, None] * peak)

    def moment(j, k):
        """E gʲ e^{kTg}."""
        m = k * T
        return (1, m, 1 + m * m)[j] * np.exp(m * m / 2)

    mean = np.array([moment(0, 1), moment(1, 1), moment(0, 2)])
    second = [(0, 2), (1, 2), (0, 3)], [(1, 2), (2, 2), (1, 3)], [(0, 3), (1, 3), (0, 4)]
    cov = np.array([[moment(*pair) for pair in row] for row in second]) - np.outer(mean, mean)
    found = S @ weight
    assert found == pytest.approx(count * mean, rel=1e-3)
    off = S - found[:, None]
    scale = count * np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
    np.testing.assert_allclose((weight * off) @ off.T / scale, count * cov / scale, atol=0.03)


@pytest.mark.parametrize("top", [-3.0, 0.0, 1.5, 6.0])
@pytest.mark.parametrize("T", [0.3, 2.0])
def test_moments_below_the_smallest_token_drawn(top, T):
    """E[gʲ e^{kTg} | g < top] by the trapezoidal rule."""
    fine = np.linspace(-12, top, 20_001)
    weight = np.exp(-(fine**2) / 2)
    weight[[0, -1]] /= 2
    for k in range(5):
        found = _truncated_moments(np.array([top]), k, T, np.zeros(1))
        for j in range(3):
            exact = (weight * fine**j) @ np.exp(k * T * fine) / weight.sum()
            assert found[j][0] == pytest.approx(exact, rel=1e-5, abs=1e-6)


def test_no_tokens_no_sums():
    peak, S = softmax_sums(np.zeros((0, 5)), np.zeros((5, 0)), 0, 1.0)
    assert peak.shape == (5,) and S.shape == (3, 5)
    assert np.all(peak == -np.inf) and not S.any()


@pytest.mark.parametrize("most", [1, 7, 100])
def test_merging_keeps_mass_mean_and_covariance(most):
    rng = np.random.default_rng(0)
    cloud, weight = np.exp(rng.normal(size=(3, 2000))), rng.random(2000)
    weight /= weight.sum()
    points, mass = merge(cloud, weight, np.array([1.0, 2.0, 3.0]), most)
    assert points.shape[1] % 4 == 0 and points.shape[1] <= 4 * most
    assert mass.sum() == pytest.approx(1)
    np.testing.assert_allclose(points @ mass, cloud @ weight, rtol=1e-12)
    np.testing.assert_allclose((mass * points) @ points.T, (weight * cloud) @ cloud.T, rtol=1e-11)


def cells_by_hand(place, weight, most):
    """The rule of `cells`, a cell after the other."""
    cells = [list(range(len(weight)))]
    while True:
        cuts = []
        for members in cells:
            w, x = weight[members], place[:, members]
            off = x - (x * w).sum(axis=1, keepdims=True) / w.sum()
            spread = (w / x[-1] * off**2).sum(axis=1)
            cuts.append((spread.max(), members, off[spread.argmax()], w))
        bar = max(max(cut[0] for cut in cuts) / 2, 1e-30)
        large = sorted((cut for cut in cuts if cut[0] > bar), key=lambda cut: -cut[0])
        large = large[: most - len(cells)]
        if not large:
            return {frozenset(members) for members in cells}
        for _, members, off, w in large:
            up = off > 0
            middle = (np.average(off[up], weights=w[up]) + np.average(off[~up], weights=w[~up])) / 2
            cells.remove(members)
            above = off > middle
            cells += [list(itertools.compress(members, side)) for side in (above, ~above)]


@pytest.mark.parametrize("most", [1, 2, 9, 40])
def test_cells_are_those_cut_one_by_one(most):
    rng = np.random.default_rng(1)
    place, weight = np.exp(1.5 * rng.normal(size=(3, 300))), rng.random(300)
    cell = cells(place, weight, most)
    found = {frozenset(np.flatnonzero(cell == k)) for k in range(cell.max() + 1)}
    assert found == cells_by_hand(place, weight, most) and len(found) <= most


def test_equal_points_are_one_cell():
    assert not cells(np.ones((3, 50)), np.ones(50), 10).any()


def test_corners_and_the_scale_of_merging():
    rng = np.random.default_rng(2)
    cloud, weight = np.exp(rng.normal(size=(3, 300))), rng.random(300)
    points, mass = merge(cloud, weight, np.array([1.0, 5.0, 0.2]), 1)
    mean = cloud @ weight / weight.sum()
    cov = np.cov(cloud, aweights=weight, ddof=0)
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    assert points == pytest.approx(mean[:, None] + _root(cov[..., None])[0] @ corners.T)
    assert mass == pytest.approx(np.full(4, weight.sum() / 4))
    scale = np.array([1.0, 5.0, 0.2])
    shares = [weight[list(c)].sum() for c in cells_by_hand(scale[:, None] * cloud, weight, 6)]
    assert np.sort(merge(cloud, weight, scale, 6)[1]) == pytest.approx(
        np.sort(np.repeat(np.array(shares) / 4, 4))
    )


def test_roots_of_round_covariances():
    """Two equal eigenvalues: the cosine of Cardano's angle is ±1, and rounding passes it."""
    direction = np.random.default_rng(3).normal(size=(3, 5000))
    direction /= np.linalg.norm(direction, axis=0)
    for long, flat in [(2.0, 1.0), (1.0, 2.0)]:
        cov = flat * np.eye(3)[..., None] + (long - flat) * direction[:, None] * direction[None]
        roots = flat**0.5 * np.eye(3)[..., None]
        roots = roots + (long**0.5 - flat**0.5) * direction[:, None] * direction[None]
        assert _many_roots(cov) == pytest.approx(roots, abs=1e-7)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-150])
def test_many_roots_are_those_of_eigh(scale):
    """Also where a covariance is flat; their error is the square root of rounding at most."""
    half = (
        np.random.default_rng(0).normal(size=(3, 3, 200)) * np.array([1, 0.1, 1e-3])[:, None, None]
    )
    half[2, :, :5] = half[0, :, :5]
    cov = np.einsum("ijn,kjn->ikn", half, half) * scale**2
    cov[..., -1] = np.eye(3) * scale**2
    cov[..., -2] = 0.0
    root = _many_roots(cov)
    assert np.einsum("ijn,jkn->ikn", root, root) == pytest.approx(cov, abs=1e-9 * scale**2, rel=0)
    assert root == pytest.approx(np.moveaxis(_root(cov), 0, 2), abs=2e-6 * scale, rel=0)
    assert not root[..., -2].any()


def test_shared_sums_are_those_of_each_group():
    (signal, noise), weight = falling_sums(2, 40, 1.5)
    groups, again = falling_normals(2, 40)
    for ours, group, count in zip((signal, noise), groups, (2, 40), strict=True):
        for one, other in zip(ours, softmax_sums(*group, count, 1.5), strict=True):
            assert np.array_equal(one, other)
            assert not one.flags.writeable
    assert np.array_equal(weight, again)
