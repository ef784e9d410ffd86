"""Three classifiers, one feature law: f = θ a ξ + c q̂ + r z.

Pooled, vectorized and attention features differ only in the joint law of the label y and the
coefficients (a, c, r), and in how many copies of the token dimension the readout sees. Everything
downstream (readouts, asymptotics, capacity) takes a `FeatureLaw` and knows nothing of classifiers.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, softmax
from scipy.stats import qmc

from utils.model import SparseTokens
from utils.validation import check_real


class Nodes(NamedTuple):
    """A quadrature rule for the law of (y, a, c, r): five arrays (m,), the weights summing to 1."""

    y: np.ndarray
    a: np.ndarray
    c: np.ndarray
    r: np.ndarray
    weight: np.ndarray


class Features(NamedTuple):
    """A sample of the law: F (n, copies·d) and labels y (n,)."""

    F: np.ndarray
    y: np.ndarray


class Scores(NamedTuple):
    """Law of the score of a fixed readout: a mixture over nodes of N(mean, sd²) with label y."""

    y: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    weight: np.ndarray
