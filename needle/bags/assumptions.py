"""Do real bags look like the model's? Whitening by the negatives, and three tests in plain words.

The model asks that the tokens of negative bags be isotropic, independent within a bag, and
Gaussian. Whitening mends the first; the second and third can only be reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kit.checks import check_array, check_labels

Array = np.ndarray
LARGEST = 1e50  # whose fourth powers are still numbers


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


def check_bags(bags: object, labels: object) -> tuple[list[Array], Array]:
    """Bags as a list of float arrays (L_i, d), and their labels, or an error that says what to do.

    >>> bags, y = check_bags(np.zeros((12, 3, 4)), [1, -1] * 6)
    >>> len(bags), bags[0].shape
    (12, (3, 4))
    """
    if not isinstance(bags, Sequence | np.ndarray) or isinstance(bags, str) or len(bags) == 0:
        raise ValueError(
            "bags are not allowed: bags must be an array (n, L, d) or a list of arrays (L_i, d)"
        )
    found = [check_array(f"bags[{i}]", bag, "L", "d") for i, bag in enumerate(bags)]
    d = found[0].shape[1]
    for i, bag in enumerate(found):
        if np.abs(bag).max() > LARGEST:
            raise ValueError(
                f"bags[{i}] with an entry of size {np.abs(bag).max():g} is not allowed: entries "
                f"must lie within ±{LARGEST:g}"
            )
        if bag.shape[1] != d:
            raise ValueError(
                f"bags[{i}] of shape {bag.shape} is not allowed: all tokens must have d = {d} "
                "entries like those of bags[0]"
            )
    y = check_labels("labels", np.asarray(labels), len(found))
    few = min(int(np.sum(y > 0)), int(np.sum(y < 0)))
    if few < 6:
        raise ValueError(
            f"labels with {few} of the rarer one are not allowed: labels must hold at least 6 of "
            "each"
        )
    return found, y


def whiten(bags: Sequence[Array], y: Array) -> tuple[list[Array], Array, Array]:
    """Bags in units of the negatives' noise, with the eigenvalues and the number of their tokens.

    x → Σ^{−1/2}(x − m) with mean m and covariance Σ of the tokens of negative bags. Σ is shrunk
    towards its mean eigenvalue by the share d/(d + N), N tokens.
    """
    tokens = np.concatenate([bag for bag, label in zip(bags, y, strict=True) if label < 0])
    mean, N, d = tokens.mean(axis=0), *tokens.shape
    centered = tokens - mean
    value, vector = np.linalg.eigh(centered.T @ centered / N)
    level = float(value.mean())
    if not level > 0:
        raise ValueError("bags are not allowed: the tokens of negative bags must vary")
    shrunk = (N * np.maximum(value, 0) + d * level) / (N + d)
    root = (vector / np.sqrt(shrunk)) @ vector.T
    return [(bag - mean) @ root for bag in bags], value, np.array(N)


def isotropy(value: Array, N: int) -> Assumption:
    """The spread of the eigenvalues against that of N isotropic tokens (Marchenko and Pastur)."""
    d = len(value)
    spread, edge = float(value.max() / value.mean()), (1 + math.sqrt(d / N)) ** 2
    holds = spread < 1.2 * edge
    words = (
        "the tokens of negative bags have the same spread in every direction"
        if holds
        else f"in some direction the noise has {spread:.2g} times the mean variance; tokens were "
        "whitened by the negatives, and so must those be that a model is trained on"
    )
    return Assumption("isotropy", spread, edge, holds, words)


def independence(bags: Sequence[Array], y: Array) -> Assumption:
    """L_i|mean of a negative bag|²/d, 1 for independent tokens: the factor lost in averaging."""
    means = np.array([bag.mean(axis=0) for bag, label in zip(bags, y, strict=True) if label < 0])
    sizes = np.array([len(bag) for bag, label in zip(bags, y, strict=True) if label < 0])
    center = (sizes @ means) / sizes.sum()
    n, d = means.shape
    factor = float(sizes @ ((means - center) ** 2).sum(axis=1) / (d * (n - 1)))
    slack = 0.1 + 4 * math.sqrt(2 / (n * d))
    holds = abs(factor - 1) < slack
    words = "the tokens of a bag are as good as independent"
    if not holds:
        shared = "share a common part" if factor > 1 else "keep apart"
        words = (
            f"the tokens of a bag {shared}: the mean of a bag scatters {factor:.2g} times as much "
            "as it should; pooling suffers, and a bag acts like one of "
            f"{np.mean(sizes) / max(factor, 1e-9):.3g} tokens"
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
        words = (
            f"the noise along the query has {'heavy' if kurtosis > 3 else 'other'} tails (largest "
            f"{largest:.1f} standard deviations, Gaussian {usual:.1f}): softmax takes "
            "such tokens for needles; rescale or clip the tokens before anything else"
        )
    return Assumption("tails", kurtosis, 3.0, holds, words)
