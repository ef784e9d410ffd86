"""Bayes' error at any length and rarity, from typical bags: no sample under the prior.

With Λ = e_R(x)/C(L, R), x = e^{θh − θ²/2}, and k = (1 − π)/π the error is

    ε = ∫ min(π p₊, (1 − π) p₋) = π E₊ min(1, k/Λ),

never negative and never above π. The straws of a positive bag are typical where this is decided,
its needles are not: R − 1 of them are drawn where it matters, tilted by what Λ sees of them, and
the last one is integrated. Appendix A, eq-A-rare and alg-A-rare.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import log_expit, log_ndtr, logsumexp, ndtri

from .rules import OracleError
from .straws import LOG_ROOT_2PI, Straws, record, sample_straws

Array = np.ndarray
FEW = 12  # needles that can be placed one by one
SETS = 4  # sets of needles for every bag of straws, and three times as many for R > 4
CELLS = 2_000  # of the heights of needles
_X, _W = np.polynomial.legendre.leggauss(16)


def bayes_risk(
    L: float, R: int, theta: float, pi: float, rng: np.random.Generator, trials: int = 10_000
) -> OracleError:
    """Bayes' error for R needles among L ≤ 10³⁰⁰ tokens; its standard error is relative to it.

    >>> found = bayes_risk(100, 1, 5.0, 1e-6, np.random.default_rng(0))
    >>> f"{found.error:.2e}"
    '9.13e-07'
    """
    log_k = math.log1p(-pi) - math.log(pi)
    level = log_k + _log_subsets(L, R)
    strong = 2 * math.sqrt(2 * max(level, 0.0)) + 80  # beyond it the error is below 10⁻³⁰⁰
    if theta > strong:
        return OracleError(0.0, 0.0, -log_k)
    farthest = math.sqrt(2 * math.log(L)) + 40 + theta  # of any height, but for one in 10³⁰⁰
    if R * theta * farthest <= abs(log_k) or theta == 0:  # log Λ never reaches log k
        return OracleError(min(pi, 1 - pi), 0.0, -log_k)
    sets = 1 if R == 1 else SETS if R <= 4 else 3 * SETS
    bags = 2 * math.ceil(trials / (2 * min(sets, SETS)))
    h, log_weight = np.zeros((0, bags * sets)), np.zeros(bags * sets)
    if R > 1:
        aim, wall = (theta**2 + 2 * level / R) / (2 * theta), math.sqrt(2 * math.log(L))
        draw = _strata if aim > wall + 1.5 else _tilted  # far above all straws, or among them
        h, log_weight = draw(L, R, theta, level, bags * sets, rng)
    log_risks = log_weight + _log_risks(L, R, theta, level, h, bags, rng)
    of_bags = logsumexp(log_risks.reshape(sets, bags), axis=0) - math.log(sets)
    return record(math.log(pi) + of_bags, pi, -log_k, None, paired=True)


def _log_subsets(L: float, R: int) -> float:
    """log C(L, R), also at L = 10³⁰⁰."""
    return sum(math.log((L - j) / (j + 1)) for j in range(R))


def log_symmetric(straws: Straws, r: float, R: int, rng: np.random.Generator) -> Array:
    """log e_0, …, log e_R of the weights e^{rg} of every bag of straws, (R + 1, bags).

    The mean of the others' weights fluctuates by a lognormal factor with its exact variance.
    """
    bags = len(straws.top)
    e = np.full((R + 1, bags), -np.inf)
    e[0] = 0.0
    for row in straws.top.T:
        e[1:] = np.logaddexp(e[1:], e[:-1] + r * row)
    groups, size = straws.log_groups(r)
    if not len(size):
        return e
    last, below, n = straws.top[:, -1], straws.log_below, straws.others
    ratio = r * r + log_ndtr(last - 2 * r) + below - 2 * log_ndtr(last - r)
    wobble = np.log1p(np.exp(np.minimum(ratio - math.log(n), 500.0))) - np.log1p(1 / n)
    groups = groups + (np.sqrt(wobble) * rng.standard_normal(bags) - wobble / 2)[:, None]
    power = np.arange(R + 1)[:, None]
    for row, c in zip(groups.T, size, strict=True):
        k = np.arange(1, R + 1)
        log_choose = np.append(0.0, np.cumsum(np.log(np.maximum(c - k + 1, 1e-300) / k)))[:, None]
        new = np.empty_like(e)
        for j in range(R + 1):  # Σ_i C(c, i) wⁱ e_{j−i}
            terms = e[j::-1] + log_choose[: j + 1] + power[: j + 1] * row
            peak = terms.max(axis=0)
            new[j] = peak + np.log(np.exp(terms - peak).sum(axis=0))
        e = new
    return e


def _log_risks(
    L: float, R: int, theta: float, level: float, h: Array, bags: int, rng: np.random.Generator
) -> Array:
    """log E min(1, k/Λ) given straws and the heights (R − 1, n) of all needles but the last."""
    e = log_symmetric(sample_straws(L - R, bags, rng), theta, R, rng)
    e -= (np.arange(R + 1) * theta**2 / 2)[:, None]
    e = np.tile(e, (1, h.shape[1] // bags))
    for row in theta * h:
        e[1:] = np.logaddexp(e[1:], e[:-1] + row - theta**2 / 2)
    return log_mean_verdict(e[R], e[R - 1], level, theta)


def _strata(
    L: float, R: int, theta: float, level: float, n: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Heights (R − 1, n) of needles with their mean in strata, and log weights φ(s)/density.

    Far above the straws Λ knows only the sum of the heights. A pilot finds which means misses have:
    at most the θ of the model, and above u = (θ² + 2 log k/R + 2 log C(L, R)/R)/2θ.
    """

    def heights(s: Array) -> Array:
        g = rng.standard_normal((R - 1, len(s)))
        return np.asarray(theta + g + s / math.sqrt(R - 1) - g.mean(axis=0))

    aim = (theta**2 + 2 * level / R) / (2 * theta)
    low = (min(max(aim, 0.0), theta) - theta) * math.sqrt(R - 1) - 6
    wide, pilot = 6 - low, 2 * max(200, n // 20)
    s = low + wide * (np.arange(pilot) + rng.random(pilot)) / pilot
    share = -s * s / 2 + _log_risks(L, R, theta, level, heights(s), pilot, rng)
    share = np.exp(share - logsumexp(share))
    center = float(share @ s)
    spread = max(0.5, 1.3 * math.sqrt(float(share @ (s - center) ** 2)))
    some = n // 10  # of the values cover all of the range
    u = (np.arange(n) + rng.random(n)) / n
    s = center + spread * ndtri(np.maximum(u - some / n, 1e-9) / (1 - some / n))
    s[:some] = low + wide * u[:some] * n / some
    near = math.log1p(-some / n) - ((s - center) / spread) ** 2 / 2 - math.log(spread)
    far = np.where((s > low) & (s < 6), math.log(some / n / wide), -np.inf)
    log_weight = -s * s / 2 - LOG_ROOT_2PI - np.logaddexp(near - LOG_ROOT_2PI, far)
    return heights(s), log_weight


def _tilted(
    L: float, R: int, theta: float, level: float, n: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Heights (R − 1, n) of needles where Bayes misses them, and their log weights.

    A needle that is lower than the straws' own sum, at height c, is as good as one at c. So needles
    follow φ(h − θ)e^{−λf(h)}, f(h) = log(e^{θh} + e^{θc})/θ, with a λ between 0 and θ; a pilot
    says which of many λ the misses come from.
    """
    log_sum = log_symmetric(sample_straws(L - R, 200, rng), theta, 1, rng)[1]
    c = min(max(float(np.median(log_sum)) / theta, -5.0), theta + 5)
    lams = np.linspace(0, theta, 6 + int(theta * math.sqrt(R - 1) / 1.5))
    edge = np.linspace(min(c, theta) - 14, theta + 10, CELLS + 1)
    x = (edge[1:] + edge[:-1]) / 2
    f = np.logaddexp(theta * x, theta * c) / theta
    log_q = -((x - theta) ** 2) / 2 - lams[:, None] * f
    log_q -= logsumexp(log_q, axis=1, keepdims=True) + math.log(edge[1] - edge[0])
    pilot = 2 * max(400, n // 30)
    share = np.full(len(lams), 1 / len(lams))
    h, log_weight, origin = _mixture(R, theta, edge, log_q, share, pilot, rng)
    found = log_weight + _log_risks(L, R, theta, level, h, pilot // 2, rng)
    share = np.exp(logsumexp(found + origin, axis=1) - logsumexp(found))
    kept = np.convolve(share, np.ones(5), "same") > 1e-3
    share = 0.9 * share[kept] / share[kept].sum() + 0.1 / kept.sum()
    return _mixture(R, theta, edge, log_q[kept], share, n, rng)[:2]


def _mixture(
    R: int, theta: float, edge: Array, log_q: Array, share: Array, n: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """n draws of R − 1 heights from a mixture, log weights, log posteriors of the components."""
    wide = edge[1] - edge[0]
    count = np.floor(np.cumsum(share) * n + 0.5).astype(int)
    chosen = np.repeat(np.arange(len(share)), np.diff(count, prepend=0))
    chosen = rng.permutation(np.pad(chosen, (0, n - len(chosen)), mode="edge"))
    at = np.empty((R - 1, n), dtype=int)
    for k in range(len(share)):
        mine = chosen == k
        below = np.cumsum(np.exp(log_q[k])) * wide
        uniform = rng.random((R - 1, int(mine.sum()))) * below[-1]
        at[:, mine] = np.minimum(np.searchsorted(below, uniform), len(edge) - 2)
    h = edge[at] + wide * rng.random(at.shape)
    log_p = -((h - theta) ** 2).sum(axis=0) / 2 - (R - 1) * LOG_ROOT_2PI
    each = np.array([row[at].sum(axis=0) for row in log_q]) + np.log(share)[:, None]
    total = logsumexp(each, axis=0)
    return h, log_p - total, each - total


def log_mean_verdict(log_a: Array, log_b: Array, log_k: float, r: float) -> Array:
    """log E min(1, k/(A + B e^{rh − r²/2})), h ~ N(r, 1): the last needle.

    >>> at_1 = log_mean_verdict(np.array([-np.inf]), np.array([0.0]), 0.0, 2.0)  # P(h < 1) + …
    >>> round(float(np.exp(at_1)[0]), 4)
    0.3173
    """
    value, sure = np.empty(len(log_a)), log_a >= log_k
    if sure.any():
        gain = (log_a - log_b)[sure] - r * r / 2
        value[sure] = log_k - log_a[sure] + _log_mean_sigmoid(gain, r)
    a, b = log_a[~sure], log_b[~sure]
    with np.errstate(divide="ignore"):
        edge = (log_k + np.log(-np.expm1(a - log_k)) - b) / r + r / 2  # where Λ = k
    low = np.maximum(edge, -12.0)
    total = log_ndtr(low - r)
    ends = np.geomspace(2 / max(r, 1.0), max(2 * r, float((r + 10 - low).max(initial=4.0))), 8)
    for left, right in itertools.pairwise([0.0, *ends]):
        h = low[:, None] + left + (right - left) * (_X + 1) / 2
        ratio = log_k - np.logaddexp(a[:, None], b[:, None] + r * h - r * r / 2)
        exponent = np.minimum(ratio, 0.0) - (h - r) ** 2 / 2
        top = exponent.max(axis=1)
        mass = np.exp(exponent - top[:, None]) @ _W * ((right - left) / 2)
        total = np.logaddexp(total, top + np.log(mass) - LOG_ROOT_2PI)
    value[~sure] = total
    return value


def _log_mean_sigmoid(t: Array, r: float) -> Array:
    """log E sigmoid(t + rg), g ~ N(0, 1), interpolated in t."""
    step = 0.5 / max(r, 5.0)
    g = np.arange(-9.0, max(9.0, min(-t.min() / r, r) + 9.0), step)
    grid = np.linspace(t.min(), t.max() + 1e-9, 40 + int(min(np.ptp(t), 60)))
    values = [logsumexp(log_expit(x + r * g) - g * g / 2) for x in grid]
    return np.asarray(CubicSpline(grid, values)(t) + math.log(step) - LOG_ROOT_2PI)
