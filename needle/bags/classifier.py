"""Two gradient steps on real bags, with scikit-learn's interface.

1. **Whiten by the negatives**: x → Σ_ϱ^{−1/2}(x − m), `needle.bags.units`.
2. **Two steps** at the calibrated rate, `needle.bags.turn`; or the query of message passing.
3. **A readout**: logistic regression with ridge on the softmax averages Σ_ℓ softmax(τ⟨q̂, x_ℓ⟩) x_ℓ.

Units, shrinkage ϱ, sharpness τ and ridge λ are chosen by cross-validation in which whitening, query
and readout are learned anew in every fold; τ = 0 is among them, so pooling is chosen where
attention does not help. Or τ and λ are those of `plan`, from a portrait of the bags.

Tokens are never whitened one by one nor copied for a fold: heights and averages are linear in them,
and a bag that is held out has weight 0. Tokens may be sparse, or in single precision; besides them
memory holds min(d, N)² and a few times n·d numbers, and a few for each token. A fit with nothing to
choose reads all tokens four times, and of very many negatives a part for their covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from ..kit.checks import check_integer
from ..kit.threads import in_one_thread
from .arrays import Array, Bags, as_bags
from .fitting import Fit, Task
from .labels import check_known
from .scorer import PARTS, Scorer

SHARPNESSES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
RIDGES = (1e-3, 1e-2, 1e-1, 1.0)


class NeedleClassifier(ClassifierMixin, BaseEstimator):
    """Attention by two gradient steps on bags: whitened, tuned, with scikit-learn's interface.

    Parameters
    ----------
    sharpness : τ ≥ 0, or a sequence to choose from (default: eight from 0, pooling, to 6)
    ridge : λ > 0 of the readout, or a sequence to choose from
    shrinkage : of the negatives' covariance, in [0, 1], or None as Ledoit and Wolf choose it; or a
        sequence to choose from
    units : "common" or "own", what the covariance is shrunk to (`needle.bags.units`), or a sequence
        of both to choose from (default)
    tuning : "validation", or "plan": sharpness and ridge as `plan` says from a portrait,
        in the first of the units
    needles : needles in a positive bag, for a plan where the bags do not tell
    learner : "steps", the query of two gradient steps, or "messages", that of message passing
    share : None: the query and the readout both see all bags; a number in (0, 1): that share of
        the bags teaches the query, the rest the readout
    cv : folds in which the choices are made: a number, a splitter, or pairs of numbers of bags
    class_weight : None, "balanced", or a mapping from labels to weights
    threshold : the probability from which on a bag is called positive; or "error", "balanced",
        "f1": the one best for that on bags held out
    calibrate : whether probabilities are fitted to bags held out (Platt)
    n_jobs : folds learned at the same time, in threads;  verbose : whether a bar of folds is shown
    random_state : seed of the folds and of the split; None for another each time

    Attributes
    ----------
    classes_ : the labels; sharpness_, ridge_, shrinkage_, units_ : as chosen
    scores_ : mean validation loss (scale, τ, λ);  portrait_ : what `estimate` said, for a plan
    whitening_, query_, coef_, intercept_ : what was learned, in whitened coordinates
    scorer_ : the same in the tokens' own, as `save` writes it; `scorer_.code()` prints it
    estimators_ : for three labels and more a classifier for each against the rest

    Examples
    --------
    >>> from needle.bags.datasets import digit_bags
    >>> bags, y, _ = digit_bags(400, 10, 1, np.random.default_rng(0))
    >>> model = NeedleClassifier(cv=3).fit(bags, y)
    >>> model.sharpness_ > 0, bool(np.mean(model.predict(bags) == y) > 0.9)
    (True, True)
    """

    def __init__(
        self,
        sharpness: float | Sequence[float] = SHARPNESSES,
        ridge: float | Sequence[float] = RIDGES,
        shrinkage: float | Sequence[float | None] | None = None,
        units: str | Sequence[str] = ("common", "own"),
        tuning: str = "validation",
        needles: int = 1,
        learner: str = "steps",
        share: float | None = None,
        cv: Any = 5,
        class_weight: Any = None,
        threshold: float | str = 0.5,
        calibrate: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.sharpness = sharpness
        self.ridge = ridge
        self.shrinkage = shrinkage
        self.units = units
        self.tuning = tuning
        self.needles = needles
        self.learner = learner
        self.share = share
        self.cv = cv
        self.class_weight = class_weight
        self.threshold = threshold
        self.calibrate = calibrate
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _bags(self, X: Any, reset: bool = False) -> Bags:
        table = not _holds_bags(X)
        if reset:
            self.table_ = table
        elif table and not self.table_ and getattr(X, "ndim", 0) == 2:
            raise ValueError(
                f"X of shape {X.shape} is not allowed: fit saw bags; a single bag is given as [X]"
            )
        if table:  # bags of one token, checked as scikit-learn checks tables
            tokens = validate_data(self, X, dtype=[np.float64, np.float32], reset=reset)
            return Bags(tokens, np.arange(len(tokens) + 1))
        bags = as_bags(X)
        width = bags.tokens.shape[1]
        if reset:
            self.n_features_in_ = width
        elif width != self.n_features_in_:
            raise ValueError(
                f"X with tokens of {width} entries is not allowed: it must have "
                f"{self.n_features_in_} like the bags of fit"
            )
        return bags

    @in_one_thread
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> NeedleClassifier:
        """Learn from bags and labels.

        X is a list of arrays (L_i, d), an array (n, L, d), `Bags`, or what `as_bags` takes; bags of
        one of the `groups` are never on both sides of a fold.
        """
        bags = self._bags(X, reset=True)
        labels = column_or_1d(y, warn=True)
        if labels.dtype == object:
            check_known(labels)
        check_classification_targets(labels)
        if len(labels) != len(bags):
            raise ValueError(f"y of length {len(labels)} is not allowed: X holds {len(bags)} bags")
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) == 1:
            raise ValueError(
                f"y = {self.classes_[0]} throughout, one class, is not allowed: y holds two labels"
            )
        weight = np.ones(len(bags))
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, np.zeros((len(bags), 1)), dtype=float)
            if weight.min() < 0:
                raise ValueError("sample_weight is not allowed: weights must be at least 0")
        weight = weight * compute_sample_weight(self.class_weight, labels)
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = int(check_random_state(seed).randint(2**31))
        check_integer("random_state", seed, 0)
        means = bags.means()
        ones = range(len(self.classes_)) if len(self.classes_) > 2 else [1]
        fits = []
        for k in ones:
            task = Task(bags, np.where(codes == k, 1, -1), weight, means)
            if not (weight[task.signs > 0].sum() > 0 and weight[task.signs < 0].sum() > 0):
                raise ValueError(
                    "sample_weight is not allowed: both labels must have weight, one class is left"
                )
            fits.append(Fit(self, task, int(seed), groups, self.classes_[k]))
        self._keep(fits)
        return self

    def _keep(self, fits: list[Fit]) -> None:
        first = fits[0]
        if len(fits) == 1:
            for name in (
                "sharpness_", "ridge_", "units_", "shrinkage_", "scores_", "whitening_", "query_",
                "coef_", "intercept_",
            ):  # fmt: skip
                setattr(self, name, getattr(first, name))
            if first.portrait_ is not None:
                self.portrait_ = first.portrait_
        else:
            self.estimators_ = fits
        parts: dict[str, Any] = {
            name: np.array([getattr(one, name) for one in fits]) for name in PARTS
        }
        facts = {"sharpness": [float(one.sharpness_) for one in fits]}
        self.scorer_ = Scorer(**parts, classes=self.classes_, facts=facts)

    @in_one_thread
    def decision_function(self, X: Any) -> Array:
        """The score of each bag, positive for the second class; or (n, k) for k > 2 classes."""
        check_is_fitted(self, "scorer_")
        scores = self.scorer_.scores(self._bags(X)) - self.scorer_.threshold
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @in_one_thread
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes (n, k), as the logistic loss or the calibration means."""
        check_is_fitted(self, "scorer_")
        return self.scorer_.probabilities(self._bags(X))

    def predict(self, X: Any) -> Array:
        """The label of each bag."""
        check_is_fitted(self, "scorer_")
        return self.scorer_.labels(self._bags(X))

    @in_one_thread
    def attention(self, X: Any) -> list[Array]:
        """The attention weights of the tokens of each bag: where the classifier looked."""
        check_is_fitted(self, "scorer_")
        bags = self._bags(X)
        weights = self.scorer_.weights(bags)
        stacked = weights[0] if len(weights) == 1 else np.column_stack(weights)
        return list(np.split(stacked, bags.starts[1:-1]))

    @in_one_thread
    def instance_scores(self, X: Any) -> list[Array]:
        """What each token of each bag says for the positive class: `Scorer.instance_scores`."""
        check_is_fitted(self, "scorer_")
        return self.scorer_.instance_scores(self._bags(X))

    def save(self, path: str | Path) -> None:
        """Write what scores bags, a few kB without pickle."""
        check_is_fitted(self, "scorer_")
        self.scorer_.save(path)

    def save_onnx(self, path: str | Path) -> None:
        """Write the scorer of one bag for other runtimes: `Scorer.save_onnx`."""
        check_is_fitted(self, "scorer_")
        self.scorer_.save_onnx(path)

    @classmethod
    def load(cls, path: str | Path) -> NeedleClassifier:
        """A classifier that scores bags as the saved one did; a damaged file is refused."""
        model = cls()
        model.scorer_ = Scorer.load(path)
        model.classes_, model.table_ = model.scorer_.classes, False
        model.n_features_in_ = model.scorer_.query.shape[1]
        return model


def _holds_bags(X: Any) -> bool:
    """Whether X is a collection of tables, and not one table of lone tokens."""
    if isinstance(X, Bags) or (isinstance(X, np.ndarray) and X.ndim == 3):
        return True
    many = isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype == object)
    many = many or (hasattr(X, "to_numpy") and getattr(X, "ndim", 2) == 1)  # a Series
    if not many or len(X) == 0 or getattr(X, "ndim", 1) != 1:
        return False
    first = X.iloc[0] if hasattr(X, "iloc") else X[0]
    return getattr(first, "ndim", 0) == 2 or (isinstance(first, list) and np.ndim(first) == 2)
