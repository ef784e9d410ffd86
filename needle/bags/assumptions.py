"""Do real bags look like the model's? Whitening by the negatives, and three tests in plain words.

The model asks that the tokens of negative bags be isotropic, independent within a bag, and
Gaussian. Whitening mends the first; the second and third can only be reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .arrays import Array, Bags
from .units import Whitening


@dataclass(frozen=True)
class Assumption:
    """One hypothesis of the model: what was measured, what the model says, and what it means.

    Attributes
    ----------
    name : "isotropy", "independence" or "tails"
    value, expected : the number measured, and that of the model
    holds : whether they are close enough for the plan to be trusted
    words : what it means
    """

    name: str
    value: float
    expected: float
    holds: bool
    words: str


def isotropy(value: Array, N: int, d: int) -> Assumption:
    """The spread of the eigenvalues against that of N isotropic tokens (Marchenko and Pastur)."""
    spread, edge = float(value.max() * d / value.sum()), (1 + math.sqrt(d / N)) ** 2
    holds = spread < 1.2 * edge
    words = (
        "the tokens of negative bags have the same spread in every direction"
        if holds
        else f"in some direction the noise has {spread:.2g} times the mean variance; tokens were "
        "whitened by the negatives, and so must those be that a model is trained on"
    )
    return Assumption("isotropy", spread, edge, holds, words)


def independence(bags: Bags, y: Array, white: Whitening, value: Array) -> Assumption:
    """Scatter of the negative bags' means over that of their tokens: 1 for independent tokens.

        [Σ Lᵢ|z̄ᵢ − z̄|²/(k − 1)] / [Σ |z − z̄ᵢ|²/(N − k)]

    for k negative bags of N whitened tokens, whatever the spectrum of the noise or the shrinkage;
    1 + Lρ/(1 − ρ) at an intraclass correlation ρ.

    Parameters
    ----------
    white, value : the whitening by these very negatives, and the eigenvalues of their covariance
    """
    sizes = bags.sizes[y < 0]
    k, N = len(sizes), int(sizes.sum())
    between = float(sizes @ (white.rows(bags.means()[y < 0]) ** 2).sum(axis=1))
    if k < 2 or k == N or not white.trace > between / N:
        return Assumption("independence", 1.0, 1.0, True, "bags of one token share nothing")
    factor = (between / (k - 1)) / ((N * white.trace - between) / (N - k))
    shares = (
        value / (value + 1e-300)
        if white.shrinkage == 0
        else value
        / ((1 - white.shrinkage) * value + white.shrinkage * value.sum() / len(white.mean))
    )
    slack = 0.1 + 4 * math.sqrt(2 * float((shares**2).sum()) / shares.sum() ** 2 / k)
    holds = abs(factor - 1) < slack
    words = "the tokens of a bag are as good as independent"
    alike = float(np.mean(sizes)) / factor
    if factor > 1 and not holds:
        words = (
            f"the tokens of a bag share a common part: the mean of a bag scatters {factor:.2g} "
            "times as much as it should; pooling suffers, and a bag acts like one of "
            + (f"{alike:.3g} tokens" if alike > 1 else "less than one token")
        )
    elif not holds:
        words = (
            "the tokens of a bag keep apart, as if each were drawn only once: the mean of a bag "
            f"scatters {factor:.2g} times as much as it should; pooling gains by it"
        )
    return Assumption("independence", factor, 1.0, holds, words)


def tails(heights: Array) -> Assumption:
    """Kurtosis of the negatives' projections on the query: 3 for Gaussian tokens."""
    N = len(heights)
    z = (heights - heights.mean()) / heights.std()
    kurtosis, largest = float(np.mean(z**4)), float(np.abs(z).max())
    usual = math.sqrt(2 * math.log(2 * N))
    holds = abs(kurtosis - 3) < 0.3 + 4 * math.sqrt(24 / N) and largest < usual + 1.5
    words = "the noise along the query has Gaussian tails"
    if not holds:
        tall = largest > usual + 0.5
        measure = (
            f"largest {largest:.1f} standard deviations, Gaussian {usual:.1f}"
            if tall
            else f"kurtosis {kurtosis:.1f}, Gaussian 3"
        )
        kind = "heavy" if kurtosis > 3 else "other"
        words = f"the noise along the query has {kind} tails ({measure})"
        if kurtosis > 3:
            words += (
                ": softmax takes such tokens for needles; rescale or clip the tokens before "
                "anything else"
            )
    return Assumption("tails", kurtosis, 3.0, holds, words)
