"""Attention on some of the tokens of each bag: needles may be lost.

Chapter 11, prop-11-capture.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from ..data.classifiers import attention
from ..data.law import FeatureLaw, Nodes
from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_integer, check_real, check_rng

Array = np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class _Subsampled(FeatureLaw):
    """Attention on some of the tokens; parts[k] is the law with k needles left."""

    parts: tuple[FeatureLaw, ...] = field(repr=False)
    share: Array = field(repr=False)

    def coefficients(self, y: Array, rng: np.random.Generator | None) -> tuple[Array, Array, Array]:
        rng, left = check_rng(rng), np.zeros(len(y), dtype=int)
        left[y > 0] = rng.choice(len(self.share), size=int((y > 0).sum()), p=self.share)
        found = np.empty((3, len(y)))
        for k, part in enumerate(self.parts):
            here = left == k
            if here.any():
                found[:, here] = part.coefficients(np.where(left[here] > 0, 1, -1), rng)
        return found[0], found[1], found[2]

    @cached_property
    def nodes(self) -> Nodes:
        empty = [x[self.parts[0].nodes.y < 0] for x in self.parts[0].nodes]
        rest = empty[4] / empty[4].sum()
        y, a, c, r = empty[:4]
        rows = [Nodes(y, a, c, r, (1 - self.pi) * rest)]
        rows.append(Nodes(-y, a, c, r, self.pi * self.share[0] * rest))
        for part, share in zip(self.parts[1:], self.share[1:], strict=True):
            y, a, c, r, weight = (x[part.nodes.y > 0] for x in part.nodes)
            rows.append(Nodes(y, a, c, r, self.pi * share * weight / weight.sum()))
        return Nodes(*map(np.concatenate, zip(*rows, strict=True)))


def subsampled(
    model: SparseTokens, kept: int, *, temperature: float, cos: float, resolution: int | None = 1536
) -> FeatureLaw:
    """Attention on `kept` tokens drawn from each bag at random: needles may be lost.

    A positive bag keeps k of its R needles with the hypergeometric probability, and its label in
    any case: a share of positives that look like negatives.

    Examples
    --------
    >>> law = subsampled(SparseTokens(100, 1, 5.0, 0.5), 50, temperature=2.0, cos=0.9)
    >>> y, a, *_, weight = law.nodes
    >>> round(float(weight[(y > 0) & (a == 0)].sum()), 6)  # needles lost in half of the positives
    0.25
    """
    m, kept = check_model(model), check_integer("kept", kept, 2, model.L)
    T, cos = check_real("temperature", temperature, 0, open_low=True), check_real("cos", cos, -1, 1)
    most = min(m.R, kept)
    k = np.arange(most + 1)
    choose = lambda n, k: gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)  # noqa: E731
    with np.errstate(invalid="ignore"):
        log = choose(m.R, k) + choose(m.L - m.R, kept - k) - choose(m.L, kept)
    share = np.where(kept - k <= m.L - m.R, np.exp(log), 0.0)
    parts = tuple(
        attention(
            SparseTokens(kept, max(int(j), 1), m.theta, m.pi), temperature=T, cos=cos,
            resolution=resolution,
        )
        for j in k
    )  # fmt: skip
    return _Subsampled(
        name="subsampled attention", theta=m.theta, pi=m.pi, cos=cos, query=True, parts=parts,
        share=share / share.sum(),
    )  # fmt: skip
