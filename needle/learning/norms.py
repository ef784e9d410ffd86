"""Long bags, where the norms of tokens count: a learner that reads norms and direction at once.

One bag of L tokens with one needle has, against pure noise, the likelihood
L⁻¹ Σ exp(θ⟨x_ℓ, ξ⟩ − ½θ²|ξ|²). Expectation propagation puts one Gaussian factor
exp(⟨h_i, ξ⟩ − ½Λ_i|ξ|²) in place of bag i: with all factors but its own the learner has
ξ ~ N(m, CI), looks at the bag, and chooses h_i and Λ_i anew so that mean and mean square are those
of the exact bag. With D = 1 + θ²C what it looks at is

    v = softmax((θ⟨x_ℓ, m⟩ + ½θ²C|x_ℓ|²)/D):   attention with a norm bias on the keys.

As C → 0 the direction is known and norms do not count. For d → ∞ the rounds follow
`predict_learning(…, d=d)`. Chapter 11, prop-11-norms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_integer, check_real, check_rng
from ..kit.records import Learning

Array = np.ndarray
KEPT = 2**27  # entries of tokens kept in memory; more are drawn again in every pass
BLOCK = 2**23  # of the largest array otherwise
SETTLED, STILL = 1e-3, 1e-4
LEAST = 0.5  # factors together never take more than this share of the prior's precision away


class LongBags:
    """n bags of L tokens in R^d, needle first (no learner here looks at places), in blocks."""

    def __init__(self, n: int, model: SparseTokens, d: int, rng: np.random.Generator) -> None:
        self.n, self.L, self.d, self.theta = n, model.L, d, model.theta
        self.seed, self.step = int(rng.integers(2**63)), max(1, BLOCK // (model.L * d))
        self.kept = list(self._draw()) if n * model.L * d <= KEPT else None

    def _draw(self) -> Iterator[tuple[slice, Array, Array]]:
        rng = np.random.default_rng(self.seed)
        for start in range(0, self.n, self.step):
            rows = slice(start, min(start + self.step, self.n))
            X = rng.standard_normal((rows.stop - start, self.L, self.d), dtype=np.float32)
            X[:, 0, 0] += np.float32(self.theta)
            yield rows, X, np.einsum("nld,nld->nl", X, X)

    def blocks(self) -> Iterator[tuple[slice, Array, Array]]:
        """(which bags, their tokens, their squared norms)."""
        return iter(self.kept) if self.kept is not None else self._draw()

    def longest(self, bag: int, count: int) -> Array:
        """The `count` longest tokens of one bag, (count, d)."""
        for rows, X, square in self.blocks():
            if rows.start <= bag < rows.stop:
                order = np.argsort(square[bag - rows.start])[::-1][:count]
                return np.asarray(X[bag - rows.start][order], dtype=float)
        raise AssertionError("no such bag")


class Factors(NamedTuple):
    """K sets of factors: h (n, d, K) and Λ (n, K)."""

    h: Array
    precision: Array

    @classmethod
    def nothing(cls, bags: LongBags, K: int = 1) -> Factors:
        return cls(np.zeros((bags.n, bags.d, K)), np.zeros((bags.n, K)))

    @classmethod
    def guess(cls, bags: LongBags, bag: int, tokens: Array) -> Factors:
        """Each of K tokens (K, d) taken for the needle of one bag."""
        found = cls.nothing(bags, len(tokens))
        found.h[bag], found.precision[bag] = bags.theta * tokens.T, bags.theta**2
        return found

    def mean(self, d: int) -> tuple[Array, Array]:
        """Posterior means (d, K) and precisions (K,)."""
        P = d + self.precision.sum(axis=0)
        return self.h.sum(axis=0) / P, P

    def take(self, which: Array) -> Factors:
        return Factors(self.h[:, :, which], self.precision[:, which])


def _gauss(square: Array, P: Array, d: int) -> Array:
    """log ∫ exp(⟨h, ξ⟩ − ½P|ξ|²) up to a constant, from |h|²/P²."""
    return (P * square - d * np.log(P)) / 2


def look_again(bags: LongBags, old: Factors) -> tuple[Factors, Array, Array]:
    """One round, all bags at once: the new factors, and what the old ones are worth (K,).

    Their log evidence, and the log probability of the bags when each is foretold by the others.
    """
    theta, d = bags.theta, bags.d
    mean, P = old.mean(d)
    C = 1 / (P - old.precision)
    m = C[:, None] * (P * mean - old.h)
    D = 1 + theta**2 * C
    evidence = _gauss((mean**2).sum(axis=0), P, d) + d * math.log(d) / 2
    foretold = np.zeros(old.precision.shape[1])
    h, precision = np.empty_like(old.h), np.empty_like(old.precision)
    for rows, X, square in bags.blocks():
        c, big = C[rows], D[rows]
        look = (theta / big[:, None] * m[rows]).astype(np.float32)
        v = X @ look
        v += square[:, :, None] * (theta**2 * c / (2 * big)).astype(np.float32)[:, None]
        top = v.max(axis=1, keepdims=True)
        v = np.exp(v - top, out=v)
        total = v.sum(axis=1, keepdims=True)
        v /= total
        F = (X.transpose(0, 2, 1) @ v).astype(float)
        spread = (np.einsum("nlk,nl->nk", v, square) - (F**2).sum(axis=1)) / d
        sharp = big / c / (1 + theta**2 * c * spread / big)  # precision with the exact bag
        h[rows] = (sharp / big)[:, None] * (m[rows] + theta * c[:, None] * F)
        h[rows] -= m[rows] / c[:, None]
        precision[rows] = np.maximum(sharp - 1 / c, -LEAST * d / bags.n)
        length = (m[rows] ** 2).sum(axis=1)
        bag = np.log(total / bags.L)[:, 0] + top[:, 0] - theta**2 * length / (2 * big)
        bag = bag - d * np.log(big) / 2
        cavity, whole = _gauss(length, 1 / c, d), _gauss((mean**2).sum(axis=0), P, d)
        foretold, evidence = (
            foretold + bag.sum(axis=0),
            evidence + (bag + cavity - whole).sum(axis=0),
        )
    return Factors(h, precision), evidence, foretold


def error_with_norms(
    model: SparseTokens, d: int, mean: Array, P: float, rng: np.random.Generator, tokens: int
) -> float:
    """Errors on fresh bags of Bayes' rule when ξ ~ N(mean, I/P), which reads norms as well.

    A token enters through its projection on the mean and the rest of its squared norm, so nothing
    is drawn in R^d.
    """
    L, pi, theta = model.L, model.pi, model.theta
    length = math.sqrt(mean @ mean)
    cos, C = (float(mean[0]) / length if length else 0.0), 1 / P
    D = 1 + theta**2 * C
    level = math.log((1 - pi) / pi) + math.log(L)
    level += d * math.log(D) / 2 + theta**2 * length**2 / (2 * D)
    n, wrong = max(200, tokens // L), 0
    for start in range(0, n, step := max(1, 2**20 // L)):
        y = model.sample_labels(min(step, n - start), rng)
        along, rest = rng.standard_normal((len(y), L)), rng.chisquare(d - 1, (len(y), L))
        yes = y > 0
        along[yes, 0] += theta * cos
        rest[yes, 0] = rng.noncentral_chisquare(d - 1, theta**2 * (1 - cos**2) + 1e-300, yes.sum())
        field = (theta * length * along + theta**2 * C / 2 * (along**2 + rest)) / D
        top = field.max(axis=1)
        score = top + np.log(np.exp(field - top[:, None]).sum(axis=1))
        wrong += int(((score > level) != yes).sum())
    return wrong / n


def _record(
    bags: LongBags, model: SparseTokens, state: Factors, path: list[float], evidence: float,
    rng: np.random.Generator, fresh: int,
) -> Learning:  # fmt: skip
    mean, P = state.mean(bags.d)
    settled = next(k for k in range(len(path)) if np.ptp(path[k:]) <= SETTLED) + 1
    error = error_with_norms(model, bags.d, mean[:, 0], float(P[0]), rng, fresh)
    return Learning(path[-1], error, evidence / bags.d, settled, path=tuple(path))


def _cosines(mean: Array) -> Array:
    return mean[0] / np.maximum(np.sqrt((mean**2).sum(axis=0)), 1e-300)


def _until_still(bags: LongBags, state: Factors, rounds: int) -> tuple[Factors, list[float], float]:
    path: list[float] = []
    for _ in range(rounds):
        state, evidence, _ = look_again(bags, state)
        path.append(float(_cosines(state.mean(bags.d)[0])[0]))
        if len(path) > 2 and np.ptp(path[-3:]) < STILL:
            break
    return state, path, float(evidence[0])


def learn_with_norms(
    model: SparseTokens, d: int, alpha: float, rng: np.random.Generator, rounds: int,
    informed: bool, fresh: int,
) -> Learning:  # fmt: skip
    """Rounds of `look_again` on positive bags, from nothing or from the true needles."""
    bags = _positive(model, d, alpha, rng)
    state = Factors.nothing(bags)
    if informed:
        for rows, X, _ in bags.blocks():
            state.h[rows, :, 0] = model.theta * X[:, 0]
        state.precision[:] = model.theta**2
    return _record(bags, model, *_until_still(bags, state, rounds), rng, fresh)


def simulate_guessing(
    model: SparseTokens,
    d: int,
    alpha: float,
    rng: np.random.Generator,
    *,
    guesses: int = 300,
    bags: int = 6,
    rounds: int = 30,
    fresh: int = 2_000_000,
) -> Learning:
    """Learning by guessing one needle: many starts, the one that foretells bags best wins.

    Each start takes one long token for the needle of its bag, and rounds go on from there. Of each
    of the first `bags` positive bags the `guesses` longest tokens are tried at once; those from
    which the other bags are foretold best go on, a third after every look. The search ends
    with the first bag that holds a guess better than chance would be among all these tries.

    Examples
    --------
    >>> model = SparseTokens(L=1000, R=1, theta=5.0, pi=0.5)
    >>> found = simulate_guessing(model, 100, 0.6, np.random.default_rng(0), fresh=1000)
    >>> round(found.cos, 1)
    0.9
    """
    data = _positive(model, d, alpha, rng)
    guesses = check_integer("guesses", guesses, 1, data.L)
    bags, rounds = check_integer("bags", bags, 1), check_integer("rounds", rounds, 1)
    fresh = check_integer("fresh", fresh, 1)
    state, best, chance = Factors.nothing(data), 0.0, math.log(guesses * bags) + 10
    for bag in range(min(bags, data.n)):
        tried = Factors.guess(data, bag, data.longest(bag, guesses))
        for share in (3, 3, 3, 3, 3):
            again, _, foretold = look_again(data, tried)
            order = np.argsort(foretold)[::-1][: -(-len(foretold) // share)]
            tried = again.take(order)
        if foretold[order[0]] > best:
            best, state = float(foretold[order[0]]), tried.take(np.arange(1))
        if best > chance:
            break
    return _record(data, model, *_until_still(data, state, rounds), rng, fresh)


def _positive(model: object, d: object, alpha: object, rng: object) -> LongBags:
    """The positive bags among αd, checked."""
    model, rng, d = check_model(model), check_rng(rng), check_integer("d", d, 2)
    if model.R > 1:
        raise ValueError(f"R = {model.R} is not allowed: with norms, R must be 1")
    n = max(1, round(check_real("alpha", alpha, 0, open_low=True) * d))
    return LongBags(int((model.sample_labels(n, rng) > 0).sum()), model, d, rng)
