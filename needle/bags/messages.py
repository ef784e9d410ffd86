"""The best learner of Chapter 9 on real bags: message passing on whitened tokens of positives.

The rounds are those of `simulate_learning` with an unknown height, for one needle in each positive
bag, bags of any lengths, and whitened tokens that are never made: with A their tokens z,

    b = Aᵀv̂ − μ Σ v̂(1 − v̂) ξ̂,    ξ̂ ← b/|b|,    a = Aξ̂ − (D/|b|) v̂,    v̂ = softmax(μa) bag by bag,

μ = Σ v̂a/n₊, and D the mean of |z|² over negatives, which is d where nothing was shrunk. Fresh bags
are judged by the likelihood ratio of a needle of height μ along ξ̂.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..kit.checks import check_integer
from ..kit.threads import in_one_thread
from .arrays import Array, Bags
from .units import Whitening


class Messages(NamedTuple):
    """What message passing learned: a direction, the height μ of needles along it, rounds taken."""

    query: Array
    height: float
    rounds: int
    log_odds: float
    white: Whitening

    def score(self, bags: Bags) -> Array:
        """Log-odds that a bag is positive, by Bayes' rule for Gaussian straws and one needle."""
        heights = self.height * self.white.heights(bags, self.query)
        top = bags.largest(heights)
        ratio = top + np.log(bags.sums(np.exp(heights - top[bags.owner])) / bags.sizes)
        return ratio - self.height**2 / 2 + self.log_odds


@in_one_thread
def message_passing(bags: Bags, y: Array, white: Whitening, *, rounds: int = 30) -> Messages:
    """Message passing on the positive bags, from equal weights and a first guess of the height.

    Too few bags for a start may end on chance tokens, as at finite d it does in Chapter 9.

    >>> from needle.data.tokens import SparseTokens
    >>> from needle.bags.arrays import as_bags
    >>> from needle.bags.units import whitening
    >>> model = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
    >>> X, y, _ = model.sample(300, 30, np.random.default_rng(0))
    >>> bags = as_bags(X)
    >>> found = message_passing(bags, y, whitening(bags, y))
    >>> float(round(abs(found.query[0]), 2)), round(found.height)
    (0.99, 5)
    """
    rounds = check_integer("rounds", rounds, 1)
    strength = 2.0
    loud, d = bags.take(y > 0), len(white.mean)
    v = np.repeat(1 / loud.sizes, loud.sizes)
    xi, path, positives = np.zeros(d), [], len(loud)
    for _ in range(rounds):
        b = white.turned(loud.gathered(v) - v.sum() * white.mean)
        b = b - strength * (v @ (1 - v)) * xi
        length = float(np.linalg.norm(b))
        if not length > 0:
            break
        turned, xi = float(xi @ b) / length, b / length
        a = white.heights(loud, xi) - white.trace / length * v
        v = loud.weights(strength * a)
        strength = min(max(float(v @ a) / positives, 1e-3), 50.0)
        path.append(turned)
        if turned > 1 - 1e-6:
            break
    share = positives / len(bags)
    return Messages(xi, strength, len(path), math.log(share / (1 - share)), white)
