"""One head trained from nothing to the end at any length: in its exact law, and on literal tokens.

The query is learned in two gradient steps on α₀ samples per dimension, a readout on α₁ fresh ones
behind softmax(Tq̂) with T = √(2 log L). In law a trial costs the same at L = 10² and at 10⁹; on
tokens nothing is larger than one sample. Chapter 4, One criterion for every line. R = 1, ξ = e₁.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, softmax

from ..data.noise import one, sample_noise
from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_array, check_integer, check_real, check_rng
from ..kit.losses import get_loss
from ..kit.threads import in_one_thread
from ..steps.alignment import simulate_alignment
from .fit import fit_readout

Array = np.ndarray
_BLOCK = 2**22  # noise tokens are drawn in single precision, at most so many numbers at a time
TARGET = 0.05
_LR_W, _LR_B = 0.5, 4.0  # rates of the two steps
_FRESH = 1500  # bags that judge a readout
NEAR, FAR = (0.94, 1.0, 1.06), (0.6, 0.75, 0.87, 1.0, 1.15, 1.32, 1.6)


def sharpness(L: float) -> float:
    """T = √(2 log L), the height of the largest of L straws."""
    return float(np.sqrt(2 * np.log(L)))


def draw_coefficients(
    model: SparseTokens, y: Array, rng: np.random.Generator, *, temperature: float, cos: float
) -> tuple[Array, Array, Array]:
    """(a, c, r) of `needle.attention`, one triple for each label; L hardly moves the cost.

    The straws are counted on narrow bins and the largest drawn one by one (`needle.data.noise`).

    >>> model, y = SparseTokens(L=10**9, R=1, theta=200.0, pi=0.5), np.array([1, -1] * 50)
    >>> rng = np.random.default_rng(0)
    >>> a, c, r = draw_coefficients(model, y, rng, temperature=6.4, cos=0.05)
    >>> bool(a[y > 0].mean() > 0.9), float(a[y < 0].max())
    (True, 0.0)
    """
    model, rng = _single(model), check_rng(rng)
    T, cos = check_real("temperature", temperature, 0, open_low=True), check_real("cos", cos, -1, 1)
    y = check_array("y", y, "n")
    straws, shift = sample_noise(model.L, 1, len(y), rng), model.theta * cos * (y > 0)
    own = T * (rng.standard_normal(len(y)) + shift)
    scale, (S0, S1) = straws.tilted(T, lambda g: np.stack([np.ones_like(g), g]))
    _, (S2,) = straws.tilted(2 * T, one)
    high = np.maximum(scale, own)
    e, rest = np.exp(own - high), np.exp(scale - high)
    total = e + rest * S0
    a, c = e / total * (y > 0), (e * (own / T - shift) + rest * S1) / total
    return a, c, np.sqrt(e**2 + rest**2 * S2) / total


def error_behind(
    model: SparseTokens, w: Array, b: float, q: Array, rng: np.random.Generator
) -> float:
    """Test error of the readout (w, b) behind the query q: given (a, c, r) a score is Gaussian."""
    w, q = check_array("w", w, "d"), check_array("q", q, "d")
    y, q = np.where(np.arange(_FRESH) % 2, 1, -1), q / np.linalg.norm(q)
    options = {"temperature": sharpness(model.L), "cos": float(np.clip(q[0], -1, 1))}
    a, c, r = draw_coefficients(model, y, rng, **options)
    mean, spread = model.theta * a * w[0] + c * (w @ q) + b, r * np.sqrt(w @ w - (w @ q) ** 2)
    wrong = ndtr(-y * mean / spread)
    return float(model.pi * wrong[y > 0].mean() + (1 - model.pi) * wrong[y < 0].mean())


@in_one_thread
def train_readout(
    model: SparseTokens,
    d: int,
    rng: np.random.Generator,
    *,
    cos: float,
    alpha: float = 2.0,
) -> float:
    """Test error of a readout trained on αd features in law behind a query of that cosine."""
    model, d = _single(model), check_integer("d", d, 2)
    q, y = np.zeros(d), np.where(rng.random(round(alpha * d)) < model.pi, 1, -1)
    q[:2] = cos, np.sqrt(1 - cos**2)
    a, c, r = draw_coefficients(model, y, rng, temperature=sharpness(model.L), cos=cos)
    F = r[:, None] * rng.standard_normal((len(y), d))
    F += np.outer(c - F @ q, q)
    F[:, 0] += model.theta * a
    fit = fit_readout(F, y, 0.01)
    return error_behind(model, fit.w, fit.b, q, rng)


def train_head(model: SparseTokens, d_query: int, d: int, rng: np.random.Generator) -> float:
    """Test error of a head in law: two steps at dimension `d_query`, then a readout at `d`.

    Two samples per dimension for each of the two stages.

    >>> model = SparseTokens(L=1000, R=1, theta=15.0, pi=0.5)
    >>> train_head(model, 10_000, 100, np.random.default_rng(0)) < 0.05
    True
    """
    cos = simulate_alignment(model, d_query, 2.0, rng, lr_b=_LR_B).query_cos
    return train_readout(model, d, rng, cos=cos)


def strength_at(strengths: ArrayLike, errors: ArrayLike) -> float:
    """The strength of a test error of 5 %, by lines through the errors in units of the normal law.

    >>> round(strength_at([1.0, 2.0], [0.5, 0.005]), 3)
    1.639
    """
    z = ndtri(np.clip(errors, 1e-6, 0.5))
    return float(np.interp(-ndtri(TARGET), -z, np.asarray(strengths, dtype=float)))


def strength_in_law(
    L: int,
    centre: float,
    d_query: int,
    d: int,
    rng: np.random.Generator,
    *,
    factors: Sequence[float] = NEAR,
    steps: int = 2,
) -> float:
    """The strength that one draw of a head needs: the same random numbers at all strengths.

    The needle's strengths are centre × factors, and further out where a head needs less or more.
    The query is learned in two steps or one, or (0) it is ξ, and the readout has all 4d samples.

    >>> rng = np.random.default_rng
    >>> near, far = (strength_in_law(100, c, 10_000, 100, rng(0)) for c in (6.0, 3.0))
    >>> near > 5 and abs(far / near - 1) < 0.03
    True
    """
    thetas, seeds = _strengths(centre, factors), _seeds(rng)
    steps = check_integer("steps", steps, 0, 2)

    def errors(thetas: Array) -> list[float]:
        found = []
        for theta in thetas:
            task = SparseTokens(L, 1, theta, 0.5)
            first, second = map(np.random.default_rng, seeds)
            cos, alpha = 1.0, 4.0
            if steps:
                query = simulate_alignment(task, d_query, 2.0, first, lr_b=4.0)
                cos, alpha = (query.readout_cos, query.query_cos)[steps - 1], 2.0
            found.append(train_readout(task, d, second, cos=cos, alpha=alpha))
        return found

    return _bracketed(errors, thetas)


def noise_blocks(L: int, d: int, n: int, seed: int) -> Iterator[tuple[slice, Array]]:
    """Noise tokens (…, L, d) of n samples in single precision, block by block; always the same."""
    rng, size = np.random.default_rng(seed), max(1, _BLOCK // (L * d))
    for start in range(0, n, size):
        stop = min(n, start + size)
        yield slice(start, stop), rng.standard_normal((stop - start, L, d), dtype=np.float32)


Blocks = Callable[[], Iterator[tuple[slice, Array]]]


def literal_queries(blocks: Blocks, y: Array, thetas: Array) -> Array:
    """q⁽²⁾ (k, d) by both gradient steps, for k strengths of the first token on the same noise.

    A sample leaves its mean token, its covariance and the needle's own noise: all that the two
    gradients ask of it (logistic loss). `blocks()` yields (slice, noise) as `noise_blocks` does.
    """
    y, thetas = check_array("y", y, "n"), check_array("thetas", thetas, "k")
    n, parts = len(y), []
    for _, Z in blocks():
        L, mean = Z.shape[1], Z.mean(axis=1, dtype=float)
        off = Z - mean[:, None].astype(np.float32)
        parts.append((mean, Z[:, 0].copy(), np.swapaxes(off, 1, 2) @ off))
    means, first, spread = (np.concatenate(part) for part in zip(*parts, strict=True))
    slope = get_loss("logistic").first
    start, up = -slope(np.zeros(n), y), y > 0
    W = np.tile(_LR_W / n * start @ means, (len(thetas), 1))
    W[:, 0] += _LR_W / n * start[up].sum() * thetas / L
    t = means @ W.T + np.outer(up, thetas * W[:, 0] / L) + _LR_B * start.mean()
    pulls, queries, off = -slope(t, y[:, None]), np.empty_like(W), (first - means)[up]
    for k, (theta, w) in enumerate(zip(thetas, W, strict=True)):
        g = pulls[up, k]
        queries[k] = pulls[:, k] @ (spread @ w) + theta * w[0] * (g @ off)
        queries[k, 0] += theta * g @ (off @ w) + theta**2 * (1 - 1 / L) * w[0] * g.sum()
    return queries


def literal_features(blocks: Blocks, y: Array, thetas: Array, queries: Array) -> Array:
    """Features Xᵀsoftmax(TXq̂) of literal tokens behind each of k queries, (n, k, d)."""
    F = np.empty((len(y), *queries.shape))
    unit = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    for part, Z in blocks():
        U = sharpness(Z.shape[1]) * unit
        scores = np.swapaxes(Z @ U.T.astype(np.float32), 1, 2)
        scores[:, :, 0] += np.outer(y[part] > 0, thetas * U[:, 0])
        s = softmax(scores, axis=2)
        F[part] = s @ Z
        F[part, :, 0] += (y[part] > 0)[:, None] * s[:, :, 0] * thetas
    return F


def strength_on_tokens(
    L: int, centre: float, d: int, rng: np.random.Generator, *, factors: Sequence[float] = FAR
) -> float:
    """The strength that a head needs which has seen tokens only: 2d for the query, 2d for w.

    The same random numbers at all strengths, which are chosen as in `strength_in_law`.

    >>> 5 < strength_on_tokens(50, 6.0, 40, np.random.default_rng(0)) < 9
    True
    """
    L, d, n = check_integer("L", L, 2), check_integer("d", d, 2), 2 * check_integer("d", d, 2)
    thetas, rng, seeds = _strengths(centre, factors), check_rng(rng), _seeds(rng)
    y, fresh = np.where(rng.random((2, n)) < 0.5, 1, -1)
    last = int(rng.integers(2**62))

    def errors(thetas: Array) -> list[float]:
        queries = literal_queries(lambda: noise_blocks(L, d, n, seeds[0]), y, thetas)
        F = literal_features(lambda: noise_blocks(L, d, n, seeds[1]), fresh, thetas, queries)
        found = []
        for k, theta in enumerate(thetas):
            fit, task = fit_readout(F[:, k], fresh, 0.01), SparseTokens(L, 1, theta, 0.5)
            stream = np.random.default_rng(last)
            found.append(error_behind(task, fit.w, fit.b, queries[k], stream))
        return found

    return _bracketed(errors, thetas)


def _strengths(centre: float, factors: Sequence[float]) -> Array:
    if len(factors) < 2 or not np.all(np.diff([0.0, *factors]) > 0):
        raise ValueError(f"factors = {factors} is not allowed: two or more are needed, increasing")
    return check_real("centre", centre, 0, open_low=True) * np.asarray(factors)


def _bracketed(errors_at: Callable[[Array], list[float]], thetas: Array) -> float:
    """`strength_at` once the errors lie on both sides of 5 %: outwards by the last ratio till then.

    Without a needle a head errs on half of the samples, behind a strong one on none: both ends.
    """
    errors = errors_at(thetas)
    while errors[0] < TARGET:
        thetas = np.r_[thetas[0] ** 2 / thetas[1], thetas]
        errors = errors_at(thetas[:1]) + errors
    while errors[-1] > TARGET:
        thetas = np.r_[thetas, thetas[-1] ** 2 / thetas[-2]]
        errors = errors + errors_at(thetas[-1:])
    return strength_at(thetas, errors)


def _seeds(rng: np.random.Generator) -> list[int]:
    return check_rng(rng).integers(2**62, size=2).tolist()


def _single(model: SparseTokens) -> SparseTokens:
    if check_model(model).R != 1:
        raise ValueError(f"model.R = {model.R} is not allowed: model.R must be 1")
    return model
