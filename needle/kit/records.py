"""The records that theory and simulation share, so that one can be held against the other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


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


class Measured(float):
    """A number that was itself measured: a float with its `standard_error`, over `trials`.

    >>> x = Measured(0.5, 0.01, 4)
    >>> x, x.standard_error, x.trials
    (0.5, 0.01, 4)
    """

    standard_error: float
    trials: int

    def __new__(cls, value: float, standard_error: float, trials: int) -> Measured:
        self = super().__new__(cls, value)
        self.standard_error, self.trials = standard_error, trials
        return self

    @classmethod
    def of(cls, trials: ArrayLike) -> Measured:
        """The mean of independent trials (at least 2), with its standard error."""
        x = np.asarray(trials, dtype=float)
        return cls(float(x.mean()), float(x.std(ddof=1)) / math.sqrt(len(x)), len(x))

    def __reduce__(self) -> tuple[Any, ...]:
        return Measured, (float(self), self.standard_error, self.trials)


@dataclass(frozen=True)
class Descent:
    """Query, readout and intercept after `step` steps of descent on one training set.

    Attributes
    ----------
    step : steps taken
    train_loss, train_error : mean loss without the decay, and share of wrong labels, on the bags
    test_error : probability of a wrong label on a fresh bag
    query_cos, query_norm : cosine of q with ξ (0 for a vector of length 0), and |q|
    readout_cos, readout_norm : the same of w
    bias : the intercept b
    overlap : ⟨q, w⟩

    Of a prediction all but `step` are `Measured`.
    """

    step: int
    train_loss: float
    train_error: float
    test_error: float
    query_cos: float
    query_norm: float
    readout_cos: float
    readout_norm: float
    bias: float
    overlap: float


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
