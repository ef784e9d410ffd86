"""The best learner known that runs in polynomial time: approximate message passing on tokens.

Only positive bags matter: negative ones are noise whatever ξ is. With A their tokens, stacked, a
round asks in turn where the needles are and where they point:

    b = Aᵀv̂ − θ Σ v̂(1 − v̂) ξ̂,   ϱ = θ²|v̂|²/d,   ξ̂ = θ b / (d(1 + ϱ)),
    a = Aξ̂ − θ/(1 + ϱ) v̂,        v̂ = P(token is a needle | θa), bag by bag,

which for R = 1 is v̂ = softmax(θa): attention with query θξ̂. A round passes over the tokens twice.

`literal` tokens are drawn once in single precision and kept, or drawn again in every pass where
they would not fit. `exact` draws only what the rounds look at, from its exact joint law (after k
products with a Gaussian matrix, the next one is known on what has been seen and fresh elsewhere):
the same random variables at the price of N + d numbers a round instead of N·d.
Chapter 9, alg-9-amp.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import expit, logsumexp

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_choice, check_flag, check_integer, check_real, check_rng
from ..kit.records import Learning
from ..kit.threads import in_one_thread
from .norms import learn_with_norms
from .posterior import log_subsets

Array = np.ndarray
KEPT, BLOCK = 2**27, 2**22  # entries of A kept in memory, and drawn at a time
ENTRIES = 2**22  # numbers in a table of subsets
SETTLED = 1e-3


def subset_weights(logits: Array, R: int = 1) -> tuple[Array, Array]:
    """P(token in S) when P(S) ∝ Π_S e^{logit} over R-subsets S, and log e_R, for bags (n, L).

    For R = 1 the softmax and its log-sum-exp. For R > 1 every token is kept on its own with odds
    e^{x + logit}, for any x; then P(token in S) = P(token kept | R kept), from the probabilities of
    k kept among the tokens before and behind it. All terms are positive: no digit is lost.

    >>> weights, log_e = subset_weights(np.log([[1.0, 2.0, 3.0]]), 2)
    >>> (11 * weights).round(6), np.exp(log_e).round(6)
    (array([[5., 8., 9.]]), array([11.]))
    """
    logits = np.asarray(logits, dtype=float)
    n, L = logits.shape
    if R == L:
        return np.ones_like(logits), logits.sum(axis=1)
    if R == 1:
        top = logits.max(axis=1, keepdims=True)
        weights = np.exp(logits - top)
        total = weights.sum(axis=1, keepdims=True)
        return weights / total, (top + np.log(total))[:, 0]
    step = max(1, ENTRIES // (L * R))
    if n > step:
        parts = [subset_weights(logits[k : k + step], R) for k in range(0, n, step)]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    ordered = np.partition(logits, L - R, axis=1)[:, : L - R]
    x = math.log(R) - logsumexp(ordered, axis=1)  # so that about R are kept
    u = (logits + x[:, None]).T
    win, lose = expit(u), expit(-u)

    def kept(order: range) -> Array:
        """P(k kept) for k < R among the tokens that come before each in that order."""
        table, current = np.empty((L, R, n)), np.zeros((R, n))
        current[0] = 1
        for token in order:
            table[token] = current
            current = current * lose[token]
            current[1:] += table[token, :-1] * win[token]
        return table

    before, behind = kept(range(L)), kept(range(L - 1, -1, -1))
    weights = win * np.einsum("ljn,ljn->ln", before, behind[:, ::-1])
    chance = weights.sum(axis=0) / R
    return (weights / chance).T, np.log(chance) - R * x + np.logaddexp(0, u).sum(axis=0)


class Literal:
    """The tokens of n positive bags: θ on coordinate 0 where `where` (n·L,), noise elsewhere."""

    def __init__(self, where: Array, d: int, theta: float, rng: np.random.Generator) -> None:
        self.where, self.d, self.theta = where, d, theta
        self.seed, self.rows = int(rng.integers(2**63)), max(1, BLOCK // d)
        self.kept = list(self._draw()) if len(where) * d <= KEPT else None

    def _draw(self) -> Iterator[Array]:
        rng = np.random.default_rng(self.seed)
        for start in range(0, len(self.where), self.rows):
            marked = self.where[start : start + self.rows]
            block = rng.standard_normal((len(marked), self.d), dtype=np.float32)
            block[:, 0] += np.float32(self.theta) * marked
            yield block

    def times(self, x: Array) -> Array:
        """A x."""
        x = x.astype(np.float32)
        return np.concatenate([block @ x for block in self.kept or self._draw()]).astype(float)

    def transposed(self, u: Array) -> Array:
        """Aᵀ u."""
        u, result, start = u.astype(np.float32), np.zeros(self.d), 0
        for block in self.kept or self._draw():
            result += u[start : start + len(block)] @ block
            start += len(block)
        return result


class Exact:
    """The same products with A = θ 1[where] e₀ᵀ + Z, from their joint law, without A."""

    def __init__(self, where: Array, d: int, theta: float, rng: np.random.Generator) -> None:
        self.where, self.theta, self.rng, self.d = where, theta, rng, d
        self.right: list[tuple[Array, Array]] = []  # orthonormal e with Z e
        self.left: list[tuple[Array, Array]] = []  # orthonormal f with Zᵀ f

    def _product(self, x: Array, known: list, other: list, size: int) -> Array:
        """Z x (or Zᵀx): known along earlier x, conditioned by `other`, fresh in what remains."""
        result, rest = np.zeros(size), x.astype(float)
        for _ in range(2):  # twice, so that rounding leaves `rest` orthogonal
            for e, image in known:
                share = e @ rest
                rest = rest - share * e
                result += share * image
        length = math.sqrt(rest @ rest)
        if length <= 1e-12 * max(1.0, math.sqrt(x @ x)):
            return result
        e = rest / length
        image = self.rng.standard_normal(size)
        for f, seen in other:
            image += (seen @ e - f @ image) * f
        known.append((e, image))
        return result + length * image

    def times(self, x: Array) -> Array:
        """A x."""
        return self.theta * x[0] * self.where + self._product(
            x, self.right, self.left, len(self.where)
        )

    def transposed(self, u: Array) -> Array:
        """Aᵀ u."""
        result = self._product(u, self.left, self.right, self.d)
        result[0] += self.theta * (u @ self.where)
        return result


def _places(n: int, L: int, R: int, rng: np.random.Generator) -> Array:
    """Uniform R-subsets of each of n bags, as (n·L,) of 0 and 1."""
    where = np.zeros((n, L))
    if R == 1:
        where[np.arange(n), rng.integers(L, size=n)] = 1
        return where.ravel()
    for row in where:
        row[rng.choice(L, R, replace=False)] = 1
    return where.ravel()


def fresh_error(
    model: SparseTokens, cos: float, height: float, rng: np.random.Generator, tokens: int
) -> float:
    """Errors of Bayes' rule for needles of that height on so many tokens of fresh bags.

    A fresh token enters only through its projection on the estimate of ξ, N(0, 1), plus θ·cos for
    a needle.
    """
    L, R, pi = model.L, model.R, model.pi
    n = max(200, tokens // L)
    level = math.log((1 - pi) / pi) + log_subsets(L, R) + R * height**2 / 2
    wrong, step = 0, max(1, 2**20 // L)
    for start in range(0, n, step):
        y = model.sample_labels(min(step, n - start), rng)
        h = rng.standard_normal((len(y), L))
        h[:, :R] += model.theta * cos * (y > 0)[:, None]  # the rule does not ask for places
        _, log_e = subset_weights(height * h, R)
        wrong += int(((log_e > level) != (y > 0)).sum())
    return wrong / n


@in_one_thread
def simulate_learning(
    model: SparseTokens,
    d: int,
    alpha: float,
    rng: np.random.Generator,
    *,
    rounds: int = 30,
    informed: bool = False,
    method: str = "literal",
    height: float | None = None,
    norms: bool = False,
    fresh: int = 2_000_000,
) -> Learning:
    """Approximate message passing on n = αd bags, from nothing or from the truth.

    It stops after `rounds`, or when the cosine has moved by less than 10⁻⁴ in each of two rounds.
    At finite d, between about one and two times the threshold, a run may also run away: it ends
    with sharp weights on chance tokens, a cosine near 0 and a free entropy far below 0.

    Parameters
    ----------
    model, d, alpha : bags of L tokens in R^d, n = round(αd) of them with random labels
    rounds : at most so many; each costs two passes over the tokens of the positive bags
    informed : start from the places of the needles instead of from equal weights
    method : "literal" tokens in single precision (bounded memory), or "exact", the same law
        without tokens, for d far beyond what tokens allow
    height : None when θ is known. Otherwise θ is learned: a first guess of the needle's height
        μ = θ·cos; the rounds then use v̂ = P(needle | μa) with a = Aξ̂/|ξ̂| − (d/|b|) v̂ and
        μ = Σ v̂a/Σ v̂ (expectation–maximization), and never θ
    norms : read the norms of tokens as well, which tell in bags much longer than tokens are wide:
        expectation propagation (`needle.learning.norms`) on literal tokens, R = 1, θ known
    fresh : tokens of the fresh bags on which the error is counted, at least 200 bags

    Returns
    -------
    Learning : `cos` of the estimate with ξ; `test_error` counted on fresh bags with the learner's
        own opinion of its cosine; Bethe `free_entropy` per dimension; `rounds` after which the
        cosine stayed within 10⁻³ of where it ended; `path`, the cosine after each round

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> learned = simulate_learning(model, 400, 4.0, np.random.default_rng(0))
    >>> round(learned.cos, 2), len(learned.path) < 30
    (0.97, True)
    """
    model, rng = check_model(model), check_rng(rng)
    d, rounds = check_integer("d", d, 2), check_integer("rounds", rounds, 1)
    alpha = check_real("alpha", alpha, 0, open_low=True)
    informed = check_flag("informed", informed)
    check_choice("method", method, ("literal", "exact"))
    fresh = check_integer("fresh", fresh, 1)
    if height is not None:
        height = check_real("height", height, 0, open_low=True)
    if check_flag("norms", norms):
        if method != "literal" or height is not None:
            raise ValueError(
                f"norms = {norms!r} is not allowed: norms must be False unless tokens "
                "are literal and θ is known"
            )
        return learn_with_norms(model, d, alpha, rng, rounds, informed, fresh)
    L, R, theta = model.L, model.R, model.theta
    bags = int((model.sample_labels(max(1, round(alpha * d)), rng) > 0).sum())
    if bags == 0 or theta**2 == 0:
        error = fresh_error(model, 0.0, 0.0, rng, fresh)
        return Learning(0.0, error, 0.0, 0, path=(0.0,))
    where = _places(bags, L, R, rng)
    tokens = (Literal if method == "literal" else Exact)(where, d, theta, rng)
    v = where.copy() if informed else np.full(bags * L, R / L)
    xi, a, path = np.zeros(d), np.zeros(bags * L), []
    strength = theta if height is None else height
    for _ in range(rounds):
        b = tokens.transposed(v) - strength * (v @ (1 - v)) * xi
        power = v @ v
        if height is None:
            snr = theta**2 * power / d
            xi, reaction = theta * b / (d * (1 + snr)), theta / (1 + snr)
        else:
            length = math.sqrt(b @ b)
            snr, xi, reaction = max(length**2 / (d * power) - 1, 1e-9), b / length, d / length
        path.append(float(xi[0] / math.sqrt(xi @ xi)))
        a = tokens.times(xi) - reaction * v
        weights, log_e = subset_weights(strength * a.reshape(bags, L), R)
        v = weights.ravel()
        if height is not None:
            strength = max(float(v @ a) / (R * bags), 1e-3)
        if len(path) > 2 and np.ptp(path[-3:]) < 1e-4:
            break
    squared = snr / (1 + snr)
    tall = theta * math.sqrt(squared) if height is None else strength
    bag_free = float(log_e.mean()) - log_subsets(L, R) - R * tall**2 / 2
    free = bags / d * bag_free + float(squared + math.log1p(-squared)) / 2
    settled = next(k for k in range(len(path)) if np.ptp(path[k:]) <= SETTLED) + 1
    error = fresh_error(model, path[-1], tall, rng, fresh)
    return Learning(path[-1], error, free, settled, path=tuple(path))
