"""Bags of noise: the binned sampler against direct draws and exact moments, no shared code."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, ks_2samp, kstest, norm

from needle.data import noise
from needle.data.noise import sample_noise
from needle.oracle.limit import critical_theta

Z = 4.5


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.slow
@pytest.mark.false_alarm(1.2e-4)
@pytest.mark.parametrize(
    ("L", "n"),
    [
        (10**3, 2000),
        pytest.param(10**4, 1000, marks=pytest.mark.slow),
        pytest.param(10**5, 200, marks=pytest.mark.slow),
    ],
)
def test_binned_sampler_has_the_law_of_direct_sampling(L, n):
    """Two-sample Kolmogorov–Smirnov, p > 1e-5, on 12 statistics; one 5 % off is refused."""
    g = rng(10).standard_normal((n, L))
    noise = sample_noise(L + 1, 1, 4 * n, rng(11))
    _, binned = noise.tilted(0.0, lambda x: np.stack([x, x * np.tanh(x), x**2, x**4, x**5]))
    plain = np.array([f.sum(axis=1) for f in (g, g * np.tanh(g), g**2, g**4, g**5)])
    pairs = list(zip(plain, binned, strict=True))
    pairs.append((g.max(axis=1), noise.tilted(1.0, np.ones_like)[0]))
    for tau in (1.0, 3.0, critical_theta(L)):
        scale, (mass, moment) = noise.tilted(tau, lambda x: np.stack([np.ones_like(x), x]))
        weight = np.exp(tau * g)
        pairs.append((np.log(weight.sum(axis=1)), scale + np.log(mass)))
        pairs.append(((weight * g).sum(axis=1) / weight.sum(axis=1), moment / mass))
    p_values = [ks_2samp(*pair).pvalue for pair in pairs]
    assert min(p_values) > 1e-5, p_values
    wrong = [ks_2samp(one, 1.05 * other).pvalue for one, other in pairs]
    assert min(wrong) < 1e-7


@pytest.mark.false_alarm(1e-5)
def test_free_tokens_are_spread_evenly_and_normal():
    """One in each of eight equally likely intervals, so below chance from a normal sample."""
    free = sample_noise(50, 1, 4000, rng(16)).free
    assert np.array_equal(np.sort((8 * norm.cdf(free[..., 0])).astype(int)), [range(8)] * 4000)
    assert kstest(free.ravel(), "norm").pvalue > 1e-5
    assert kstest(1.1 * free.ravel(), "norm").pvalue < 1e-9


@pytest.mark.false_alarm(2e-5)
@pytest.mark.parametrize("L", [200, 10**9])
def test_extreme_tokens_one_by_one(L):
    """Chances above the largest and the 30th largest token are beta; 10 % off is refused."""
    bag = sample_noise(L + 1, 1, 2000, rng(17))
    parts = np.split(bag.tail, bag.start[1:])
    order = np.array([np.sort(-part)[[0, 29]] for part in parts])
    above = norm.cdf(order)  # the chance of a token above
    for k, u in zip((1, 30), above.T, strict=True):
        assert kstest(u, beta(k, L + 1 - k).cdf).pvalue > 1e-5
        assert kstest(0.9 * u, beta(k, L + 1 - k).cdf).pvalue < 1e-5 or k == 1


def test_tokens_drawn_again_are_those_that_were_kept(monkeypatch):
    kept = sample_noise(5000, 2, 200, rng(15), method="direct")
    sums = kept.tilted(1.5, lambda g: g[None])
    monkeypatch.setattr(noise, "KEPT", 0)
    again = sample_noise(5000, 2, 200, rng(15), method="direct")
    assert all(map(np.array_equal, sums, again.tilted(1.5, lambda g: g[None])))


@pytest.mark.parametrize(("L", "tau"), [(10**4, 2.0), (10**8, 3.0), (10**12, 3.7), (10**12, 7.4)])
def test_share_of_variance_lost_in_bins_is_below_its_bound(L, tau):
    """Not statistical: Σ_b p_b Var(e^{τg} | bin b) over Σ_b p_b E[e^{2τg} | bin b]."""
    bag = sample_noise(L, 1, 2, rng(13))
    half = noise.BIN_WIDTH / 2
    centre = bag.nodes[:, 1]
    assert np.ptp(bag.nodes, axis=1).max() < 2 * half
    x, w = np.polynomial.legendre.leggauss(20)
    x = centre[:, None] + half * x
    w = w * np.exp(-(x**2) / 2)
    p, f = w.sum(axis=1), np.exp(tau * (x - centre.max()))
    mean, square = ((w * f**k).sum(axis=1) / p for k in (1, 2))
    lost = (p * (square - mean**2)).sum() / (p * square).sum()
    assert 0 < lost < min((tau * noise.BIN_WIDTH) ** 2 / 12, 0.012)


@pytest.mark.false_alarm(1e-4)
@pytest.mark.parametrize("L", [10**6, 10**12])
def test_bag_sums_have_exact_means(L):
    """Four means within 4.5 standard errors, four spreads within 5; .1 % off in a mean fails."""
    noise = sample_noise(L, 1, 4000, rng(14))
    _, sums = noise.tilted(0.0, lambda x: np.stack([x, x**2, x**4, np.exp(x)]))
    expected = (L - 1) * np.array([0, 1, 3, math.exp(0.5)])
    z = (sums.mean(axis=1) - expected) / (sums.std(axis=1) / math.sqrt(4000))
    assert np.abs(z).max() < Z
    shift = 1e-3 * expected / (sums.std(axis=1) / math.sqrt(4000))
    assert np.abs(z + shift)[1:].min() > Z
    deviation = np.sqrt((L - 1) * np.array([1, 2, 96, math.exp(2) - math.exp(1)]))
    # the standard deviation of 4000 draws is within 6 % at more than 5 standard errors
    assert np.abs(sums.std(axis=1) / deviation - 1).max() < 0.06


class Wide(np.random.Generator):
    """Counts that are not safely cast to an index, as on a 32-bit machine (the browser is one)."""

    def multinomial(self, *arguments, **options):
        return super().multinomial(*arguments, **options).astype(np.uint64)


def test_counts_wider_than_an_index_are_narrowed():
    with pytest.raises(TypeError, match="safe"):
        np.repeat([1.0], Wide(np.random.PCG64(0)).multinomial(3, [1.0]))
    narrow = sample_noise(1000, 1, 20, rng(3)).tilted(1.0, np.ones_like)
    wide = sample_noise(1000, 1, 20, Wide(np.random.PCG64(3))).tilted(1.0, np.ones_like)
    assert all(np.array_equal(a, b) for a, b in zip(narrow, wide, strict=True))
