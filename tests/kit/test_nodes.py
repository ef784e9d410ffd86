"""Points and weights against closed forms and exact moments."""

import numpy as np
import pytest
from scipy.special import ndtr

from needle.kit.nodes import (
    GRID,
    MASS,
    _many_roots,
    _root,
    _truncated_moments,
    falling_normals,
    falling_sums,
    gaussian_nodes,
    merge,
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
