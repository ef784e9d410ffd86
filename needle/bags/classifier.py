"""Two gradient steps on real bags, with scikit-learn's interface.

1. **Whiten by the negatives**: x → Σ_ϱ^{−1/2}(x − m), `needle.bags.units`.
2. **Two steps** at the calibrated rate (Chapter 12): w⁽¹⁾ = η_w Σᵢ γᵢ x̄ᵢ/n, and the query
   q⁽²⁾ = Σᵢ γᵢ Covᵢ w⁽¹⁾/n, with the covariance Covᵢ of the tokens *within* bag i (eq-b-query for
   bags of unequal length). Or the query of message passing, `needle.bags.messages`.
3. **A readout**: logistic regression with ridge on the softmax averages Σ_ℓ softmax(τ⟨q̂, x_ℓ⟩) x_ℓ.

Shrinkage ϱ, sharpness τ and ridge λ are chosen by cross-validation in which whitening, query and
readout are learned anew in every fold; τ = 0 is among them, so pooling is chosen where attention
does not help. Or τ and λ are those of `plan`, from a portrait of the bags, without a validation.

Tokens are never whitened one by one: heights and averages are linear in them. So tokens may be
sparse, and besides them memory holds d² and n·d numbers and a few for each token.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from ..kit.checks import check_choice, check_integer, check_real
from ..kit.losses import get_loss
from ..kit.threads import in_one_thread
from ..readout.fit import fit_readout
from ..steps.rates import RATE_W, calibrated_rate
from .arrays import Array, Bags, as_bags
from .messages import message_passing
from .portrait import estimate
from .units import Whitening, moments

SHARPNESSES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
Scale = tuple[str, float | None]


class Learned(NamedTuple):
    """A whitening and a query, and the bags that the readout may see with their heights."""

    white: Whitening
    query: Array
    chosen: Array
    bags: Bags
    heights: Array

    def features(self, tau: float) -> Array:
        """What the readout learns from."""
        return self.white.rows(self.bags.attended(tau * self.heights))


@in_one_thread
def query(bags: Bags, y: Array, white: Whitening | None = None) -> Array:
    """The direction of the second step at the calibrated rate, for bags of unequal length.

    With `white` it is that of the whitened tokens, which are not made.

    >>> from needle.data.tokens import SparseTokens
    >>> from needle.steps.rule import two_steps
    >>> model = SparseTokens(L=8, R=2, theta=4.0, pi=0.5)
    >>> X, y, _ = model.sample(200, 12, np.random.default_rng(0))
    >>> pi = np.mean(y > 0)
    >>> q = two_steps(X, y, lr_w=RATE_W, lr_b=calibrated_rate(pi)).q
    >>> np.allclose(query(as_bags(list(X)), y), q / np.linalg.norm(q))
    True
    """
    gradient = get_loss("logistic").first
    d = bags.tokens.shape[1]
    white = Whitening(np.zeros(d), np.eye(d), 0.0, float(d)) if white is None else white
    n, means = len(y), white.rows(bags.means())
    slopes = gradient(np.zeros(n), y)
    w = -RATE_W * (slopes @ means) / n
    b = -calibrated_rate(float(np.mean(y > 0))) * slopes.mean()
    heights, middle = white.heights(bags, w), means @ w
    pulls = -gradient(middle + b, y) / (n * bags.sizes)
    # the weights of a bag add up to zero, so that its tokens need not be centered
    q = ((pulls[bags.owner] * (heights - middle[bags.owner])) @ bags.tokens) @ white.root
    length = np.linalg.norm(q)
    return q / length if length > 0 else q


class NeedleClassifier(ClassifierMixin, BaseEstimator):
    """Attention by two gradient steps on bags: whitened, tuned, with scikit-learn's interface.

    Parameters
    ----------
    sharpness : τ ≥ 0, or a sequence to choose from (default: eight from 0, pooling, to 6)
    ridge : λ > 0 of the readout, or a sequence to choose from
    shrinkage : of the negatives' covariance, in [0, 1], or None as Ledoit and Wolf choose it; or a
        sequence to choose from
    units : "common" or "own", what the covariance is shrunk to (`needle.bags.units`), or a sequence
        of both to choose from
    tuning : "validation", or "plan": sharpness and ridge as `plan` says from a portrait of the bags
    needles : needles in a positive bag, for a plan where the bags do not tell
    learner : "steps", the query of two gradient steps, or "messages", that of message passing
    share : None: the query and the readout both see all bags; a number in (0, 1): that share of
        the bags teaches the query, the rest the readout
    cv : folds in which the choices are made
    random_state : seed of the folds and of the split

    Attributes
    ----------
    classes_ : the two labels; sharpness_, ridge_, shrinkage_ : as chosen
    scores_ : mean validation loss (scale, τ, λ);  portrait_ : what `estimate` said, for a plan
    whitening_, query_, coef_, intercept_ : what was learned

    Examples
    --------
    >>> from needle.bags.arrays import digit_bags
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
        units: str | Sequence[str] = "common",
        tuning: str = "validation",
        needles: int = 1,
        learner: str = "steps",
        share: float | None = None,
        cv: int = 5,
        random_state: int = 0,
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
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _bags(self, X: Any, reset: bool = False) -> Bags:
        listed = isinstance(X, list | tuple) and len(X) > 0
        listed = listed and (issparse(X[0]) or np.ndim(X[0]) == 2)
        if isinstance(X, Bags) or listed or (isinstance(X, np.ndarray) and X.ndim == 3):
            bags = as_bags(X)
        else:  # a table: bags of one token, checked as scikit-learn checks tables
            table = validate_data(self, X, dtype=float, reset=reset)
            return Bags(table, np.arange(len(table) + 1))
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
    def fit(self, X: Any, y: Any) -> NeedleClassifier:
        """Learn from bags (list of arrays (L_i, d), array (n, L, d), `Bags`) and two labels."""
        bags = self._bags(X, reset=True)
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(labels) != len(bags):
            raise ValueError(f"y of length {len(labels)} is not allowed: X holds {len(bags)} bags")
        if len(self.classes_) == 1:
            raise ValueError(
                f"y = {self.classes_[0]} throughout, one class, is not allowed: y has two labels"
            )
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"multiclass: y with the labels {self.classes_[:4]} is not allowed"
            )
        signs = np.where(codes > 0, 1, -1)
        check_choice("learner", self.learner, ("steps", "messages"))
        scales, taus, lams = self._grids()
        rng = np.random.default_rng(check_integer("random_state", self.random_state, 0))
        self.scores_ = None
        if check_choice("tuning", self.tuning, ("validation", "plan")) == "plan":
            taus, lams = self._planned(bags, signs)
        best = (0, 0, 0)
        folds = min(check_integer("cv", self.cv, 2), int(np.bincount(codes).min()))
        if len(scales) * len(taus) * len(lams) > 1 and folds >= 2:
            self.scores_ = self._validate(bags, signs, scales, taus, lams, folds)
            place = np.unravel_index(np.argmin(self.scores_), self.scores_.shape)
            best = int(place[0]), int(place[1]), int(place[2])
        self.sharpness_, self.ridge_ = taus[best[1]], lams[best[2]]
        [learned] = self._learn(bags, signs, [scales[best[0]]], rng)
        self.whitening_, self.query_ = learned.white, learned.query
        self.units_, self.shrinkage_ = scales[best[0]][0], learned.white.shrinkage
        fit = fit_readout(learned.features(self.sharpness_), signs[learned.chosen], self.ridge_)
        self.coef_, self.intercept_ = fit.w, fit.b
        return self

    def _grids(self) -> tuple[list[Scale], list[float], list[float]]:
        def grid(value: Any) -> list:
            return list(value) if np.iterable(value) and not isinstance(value, str) else [value]

        scales = [
            (units, rho if rho is None else check_real("shrinkage", rho, 0, 1))
            for units in grid(self.units)
            for rho in grid(self.shrinkage)
        ]
        taus = [check_real("sharpness", tau, 0) for tau in grid(self.sharpness)]
        return scales, taus, [check_real("ridge", lam, 1e-12) for lam in grid(self.ridge)]

    def _planned(self, bags: Bags, signs: Array) -> tuple[list[float], list[float]]:
        """Sharpness and ridge as `plan` says, from a portrait of the bags."""
        if issparse(bags.tokens):
            raise ValueError("tuning = 'plan' is not allowed with sparse tokens")
        self.portrait_ = found = estimate(np.split(bags.tokens, bags.starts[1:-1]), signs)
        R = check_integer("needles", self.needles, 1)
        theta = found.delta * math.sqrt(found.L) / R if found.theta is None else found.theta
        options = {} if self.share is None else {"alpha_share": self.share}
        known = None if found.separated else R
        [row] = found.plan(R=known, theta=max(theta, 0.5), **options).rows
        tau, lam = row.temperature, row.ridge
        if self.share is None and row.twice_temperature is not None:
            tau, lam = row.twice_temperature, float(row.twice_ridge or lam)
        return [tau if row.choice in ("attention", "twice") else 0.0], [lam]

    def _learn(
        self, bags: Bags, signs: Array, scales: Iterable[Scale], rng: np.random.Generator
    ) -> list[Learned]:
        """Whitening and query for every way to scale, and the bags that the readout may see."""
        first = second = np.arange(len(bags))
        if self.share is not None:
            first, second = self._split(signs, rng)
        teachers = bags if self.share is None else bags.take(first)
        seen = bags if self.share is None else bags.take(second)
        known, found = {}, []
        for units, rho in scales:
            if units not in known:
                known[units] = moments(teachers, signs[first], units)
            white = known[units].whitening(rho)
            if self.learner == "steps":
                q = query(teachers, signs[first], white)
            else:
                q = message_passing(teachers, signs[first], white).query
            found.append(Learned(white, q, second, seen, white.heights(seen, q)))
        return found

    def _split(self, signs: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The bags that teach the query and the others, each with the same share of positives.

        A label's only bag is in both.
        """
        share = check_real("share", self.share, 0, 1, open_low=True, open_high=True)
        parts = []
        for label in (-1, 1):
            own = rng.permutation(np.flatnonzero(signs == label))
            cut = min(max(1, round(share * len(own))), max(1, len(own) - 1))
            parts.append((own[:cut], own[cut:] if len(own) > 1 else own))
        first, second = (np.sort(np.concatenate(half)) for half in zip(*parts, strict=True))
        return first, second

    def _validate(
        self, bags: Bags, signs: Array, scales: list[Scale], taus: list[float], lams: list[float],
        folds: int,
    ) -> Array:  # fmt: skip
        """Mean validation loss of every triple (scale, τ, λ)."""
        total = np.zeros((len(scales), len(taus), len(lams)))
        loss = get_loss("logistic")
        splitter = StratifiedKFold(folds, shuffle=True, random_state=self.random_state)
        for train, test in splitter.split(np.zeros(len(bags)), signs):
            rng = np.random.default_rng(self.random_state)
            unseen = bags.take(test)
            for r, learned in enumerate(self._learn(bags.take(train), signs[train], scales, rng)):
                heights = learned.white.heights(unseen, learned.query)
                for i, tau in enumerate(taus):
                    F = learned.features(tau)
                    G = learned.white.rows(unseen.attended(tau * heights))
                    for j, lam in enumerate(lams):
                        fit = fit_readout(F, signs[train][learned.chosen], lam)
                        total[r, i, j] += loss.value(G @ fit.w + fit.b, signs[test]).sum()
        return total / len(bags)

    @in_one_thread
    def decision_function(self, X: Any) -> Array:
        """The score of each bag; positive means the second class."""
        check_is_fitted(self)
        bags = self._bags(X)
        heights = self.whitening_.heights(bags, self.query_)
        averages = bags.attended(self.sharpness_ * heights)
        return self.whitening_.rows(averages) @ self.coef_ + self.intercept_

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the two classes (n, 2), as the logistic loss means them."""
        positive = expit(self.decision_function(X))
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: Any) -> Array:
        """The label of each bag."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    @in_one_thread
    def attention(self, X: Any) -> list[Array]:
        """The attention weights of the tokens of each bag: where the classifier looked."""
        check_is_fitted(self)
        bags = self._bags(X)
        weight = bags.weights(self.sharpness_ * self.whitening_.heights(bags, self.query_))
        return np.split(weight, bags.starts[1:-1])
