"""The records that theory and simulation share, so that one can be held against the other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Alignment:
    """What two gradient steps leave behind: the readout w⁽¹⁾ and the query q⁽²⁾ (at η_qβ = 1).

    Attributes
    ----------
    readout_cos, readout_norm : cosine of w⁽¹⁾ with ξ, and |w⁽¹⁾|
    query_cos, query_norm, query_overlap : cosine of q⁽²⁾ with ξ, |q⁽²⁾| and ⟨q⁽²⁾, ξ⟩
    rate : the constant C of |query_cos| = 1 − C/α₀ + o(1/α₀); None for a simulation
    signal, echo, noise : q⁽²⁾ = signal·ξ + echo·w⁽¹⁾/|w⁽¹⁾| + a vector of length noise ⊥ w⁽¹⁾
    """

    readout_cos: float
    readout_norm: float
    query_cos: float
    query_norm: float
    query_overlap: float
    rate: float | None = None
    signal: float = 0.0
    echo: float = 0.0
    noise: float = 0.0

    @classmethod
    def of(
        cls,
        along: float,
        across: float,
        overlap: float,
        norm: float,
        signal: float,
        echo: float,
        noise: float,
        rate: float | None = None,
    ) -> Alignment:
        """Of w⁽¹⁾ with parts `along` and `across` ξ, and q⁽²⁾ of given overlap and norm."""
        readout = math.hypot(along, across)
        cosines = (along / readout if readout else 0.0, overlap / norm if norm else 0.0)
        readout_cos, query_cos = (min(1.0, max(-1.0, cosine)) for cosine in cosines)
        return cls(readout_cos, readout, query_cos, norm, overlap, rate, signal, echo, noise)


@dataclass(frozen=True)
class Readout:
    """A trained readout, predicted in the limit or measured at finite dimension.

    Attributes
    ----------
    test_error, train_error : probability of a wrong label on new data and on the training set
    train_loss : mean loss over the training set, without the ridge term
    signal : ⟨w, ξ⟩ (for the vectorized model ⟨W, 1ξᵀ⟩/√L)
    norm : |w|
    bias : the intercept b
    converged, iterations : how the solver ended
    """

    test_error: float
    train_loss: float
    train_error: float
    signal: float
    norm: float
    bias: float
    converged: bool = True
    iterations: int = 0


@dataclass(frozen=True)
class Learning:
    """What a learner knows after n = αd bags, predicted in the limit or measured at finite d.

    Attributes
    ----------
    cos : cosine of the estimate with ξ
    test_error : probability of a wrong label on new data, with Bayes' rule along the estimate
    free_entropy : log evidence of the estimate per dimension, relative to knowing nothing
    rounds : rounds after which the cosine stays within 10⁻³ of `cos`
    path : the cosine after every round; None for a prediction
    """

    cos: float
    test_error: float
    free_entropy: float
    rounds: int
    path: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Thresholds:
    """Samples per dimension n/d: two solutions from `lower` to `algorithm`, equal at `information`.

    From `information` on the posterior knows ξ; from `algorithm` on message passing finds it.
    """

    information: float
    algorithm: float
    lower: float


@dataclass(frozen=True)
class Training:
    """Query, readout and intercept after `samples` samples per dimension of one-pass descent.

    Attributes
    ----------
    samples : n/d, the steps taken over the token dimension
    query_cos, readout_cos : cosines of q and w with ξ (0 for a vector of length 0)
    query_norm, readout_norm, overlap : |q|, |w| and ⟨q, w⟩
    bias : the intercept b
    test_error : probability of a wrong label on a fresh bag
    """

    samples: float
    query_cos: float
    readout_cos: float
    query_norm: float
    readout_norm: float
    overlap: float
    bias: float
    test_error: float


@dataclass(frozen=True)
class Descent(Training):
    """The same after descent on one training set of `samples` bags per dimension.

    Attributes
    ----------
    steps : steps taken
    train_loss, train_error : mean loss without the decay term, and share of wrong labels
    """

    steps: int
    train_loss: float
    train_error: float


class ConvergenceError(RuntimeError):
    """A solver stopped short of its tolerance; `estimate` is the best answer it had."""

    def __init__(self, message: str, estimate: Any = None) -> None:
        super().__init__(message)
        self.estimate = estimate


@dataclass(frozen=True)
class Estimate:
    """The mean over independent trials; `agree` takes it as a simulation."""

    estimate: float
    standard_error: float
    trials: int

    def __float__(self) -> float:
        return self.estimate
