"""Two gradient steps on real bags, with scikit-learn's interface.

1. **Whiten by the negatives**: x → Σ^{−1/2}(x − m), m and Σ of the tokens of negative bags, Σ
   shrunk as Ledoit and Wolf choose it.
2. **Two steps** at the calibrated rate (Chapter 10): w⁽¹⁾ = η_w Σᵢ γᵢ x̄ᵢ/n, and the query
   q⁽²⁾ = Σᵢ γᵢ Covᵢ w⁽¹⁾/n, with the covariance Covᵢ of the tokens *within* bag i (eq-b-query for
   bags of unequal length).
3. **A readout**: logistic regression with ridge on the softmax averages Σ_ℓ softmax(τ⟨q̂, x_ℓ⟩) x_ℓ.

Sharpness τ and ridge λ are chosen by cross-validation in which whitening, query and readout are
learned anew in every fold; τ = 0 is among them, so pooling is chosen where attention does not help.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.covariance import empirical_covariance, ledoit_wolf, shrunk_covariance
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from .bags import Array, Bags, as_bags
from .losses import get_loss
from .rates import RATE_W, calibrated_rate
from .readout import fit_readout
from .validation import check_integer, check_real

SHARPNESSES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
RIDGES = (1e-3, 1e-2, 1e-1, 1.0)


class Whitening(NamedTuple):
    """x → root·(x − mean): the tokens of negative bags have mean 0 and covariance about 1."""

    mean: Array
    root: Array
    shrinkage: float

    def __call__(self, bags: Bags) -> Bags:
        return bags.mapped((bags.tokens - self.mean) @ self.root)


def whitening(bags: Bags, y: Array, shrinkage: float | None = None) -> Whitening:
    """By the tokens of the negative bags; directions in which they do not vary stay small.

    The covariance is shrunk towards a multiple of the identity by `shrinkage`, or by the share that
    Ledoit and Wolf compute from the tokens.
    """
    tokens = bags.tokens[(y < 0)[bags.owner]]
    mean = tokens.mean(axis=0)
    if shrinkage is None:
        covariance, shrinkage = ledoit_wolf(tokens)
    else:
        covariance = shrunk_covariance(empirical_covariance(tokens), shrinkage)
    value, vector = np.linalg.eigh(covariance)
    floor = max(float(value.max()), np.finfo(float).tiny) * 1e-10
    root = (vector / np.sqrt(np.maximum(value, floor))) @ vector.T
    return Whitening(mean, root if value.max() > 0 else np.eye(len(mean)), float(shrinkage))


def query(bags: Bags, y: Array) -> Array:
    """The direction of the second step at the calibrated rate, for bags of unequal length.

    >>> from utils.model import SparseTokens
    >>> from utils.alignment import two_steps
    >>> model = SparseTokens(L=8, R=2, theta=4.0, pi=0.5)
    >>> X, y, _ = model.sample(200, 12, np.random.default_rng(0))
    >>> pi = np.mean(y > 0)
    >>> q = two_steps(X, y, lr_w=RATE_W, lr_b=calibrated_rate(pi)).q
    >>> np.allclose(query(as_bags(list(X)), y), q / np.linalg.norm(q))
    True
    """
    gradient = get_loss("logistic").first
    n, means = len(y), bags.means()
    slopes = gradient(np.zeros(n), y)
    w = -RATE_W * (slopes @ means) / n
    b = -calibrated_rate(float(np.mean(y > 0))) * slopes.mean()
    heights, middle = bags.tokens @ w, means @ w
    pulls = -gradient(middle + b, y) / (n * bags.sizes)
    q = (pulls[bags.owner] * (heights - middle[bags.owner])) @ bags.tokens
    length = np.linalg.norm(q)
    return q / length if length > 0 else q


class NeedleClassifier(ClassifierMixin, BaseEstimator):
    """Attention by two gradient steps on bags: whitened, tuned, with scikit-learn's interface.

    Parameters
    ----------
    sharpness : τ ≥ 0, or a sequence to choose from (default: eight from 0, pooling, to 6)
    ridge : λ > 0 of the readout, or a sequence to choose from
    share : None: the query and the readout both see all bags; a number in (0, 1): that share of
        the bags teaches the query, the rest the readout
    shrinkage : of the negatives' covariance, in [0, 1]; None: as Ledoit and Wolf choose it
    cv : folds in which sharpness and ridge are chosen
    random_state : seed of the folds and of the split

    Attributes
    ----------
    classes_ : the two labels; sharpness_, ridge_ : as chosen; scores_ : mean validation loss (τ, λ)
    whitening_, query_, coef_, intercept_ : what was learned

    Examples
    --------
    >>> from utils.bags import digit_bags
    >>> bags, y, _ = digit_bags(400, 10, 1, np.random.default_rng(0))
    >>> model = NeedleClassifier(cv=3).fit(bags, y)
    >>> model.sharpness_ > 0, bool(np.mean(model.predict(bags) == y) > 0.9)
    (True, True)
    """

    def __init__(
        self,
        sharpness: float | Sequence[float] = SHARPNESSES,
        ridge: float | Sequence[float] = RIDGES,
        share: float | None = None,
        shrinkage: float | None = None,
        cv: int = 5,
        random_state: int = 0,
    ) -> None:
        self.sharpness = sharpness
        self.ridge = ridge
        self.share = share
        self.shrinkage = shrinkage
        self.cv = cv
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _bags(self, X: Any, reset: bool = False) -> Bags:
        listed = isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 2
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
        taus, lams = (
            self._grid("sharpness", self.sharpness, 0),
            self._grid("ridge", self.ridge, 1e-12),
        )
        rng = np.random.default_rng(check_integer("random_state", self.random_state, 0))
        self.scores_ = None
        self.sharpness_, self.ridge_ = taus[0], lams[0]
        folds = min(check_integer("cv", self.cv, 2), int(np.bincount(codes).min()))
        if len(taus) * len(lams) > 1 and folds >= 2:
            self.scores_ = self._validate(bags, signs, taus, lams, folds)
            best = np.unravel_index(np.argmin(self.scores_), self.scores_.shape)
            self.sharpness_, self.ridge_ = taus[best[0]], lams[best[1]]
        self.whitening_, self.query_, features, chosen = self._learn(bags, signs, rng)
        fit = fit_readout(features(self.sharpness_), signs[chosen], self.ridge_)
        self.coef_, self.intercept_ = fit.w, fit.b
        return self

    @staticmethod
    def _grid(name: str, value: Any, low: float) -> list[float]:
        values = value if np.iterable(value) else [value]
        return [check_real(name, x, low) for x in values]

    def _learn(self, bags: Bags, signs: Array, rng: np.random.Generator) -> tuple:
        """Whitening and query, and the features of the bags that the readout may see, by τ."""
        first = second = np.arange(len(bags))
        if self.share is not None:
            share = check_real("share", self.share, 0, 1, open_low=True, open_high=True)
            order = rng.permutation(len(bags))
            cut = min(max(2, round(share * len(bags))), len(bags) - 2)
            first, second = order[:cut], order[cut:]
        if self.shrinkage is not None:
            check_real("shrinkage", self.shrinkage, 0, 1)
        white = whitening(bags.take(first), signs[first], self.shrinkage)
        whole = white(bags)
        q = query(whole.take(first), signs[first])
        seen = whole.take(second)
        heights = seen.tokens @ q
        return white, q, lambda tau: seen.attended(tau * heights), second

    def _validate(
        self, bags: Bags, signs: Array, taus: list[float], lams: list[float], folds: int
    ) -> Array:
        """Mean validation loss of every pair (τ, λ)."""
        total = np.zeros((len(taus), len(lams)))
        loss = get_loss("logistic")
        splitter = StratifiedKFold(folds, shuffle=True, random_state=self.random_state)
        for train, test in splitter.split(np.zeros(len(bags)), signs):
            rng = np.random.default_rng(self.random_state)
            white, q, features, chosen = self._learn(bags.take(train), signs[train], rng)
            unseen = white(bags.take(test))
            heights = unseen.tokens @ q
            for i, tau in enumerate(taus):
                F, G = features(tau), unseen.attended(tau * heights)
                for j, lam in enumerate(lams):
                    fit = fit_readout(F, signs[train][chosen], lam)
                    total[i, j] += loss.value(G @ fit.w + fit.b, signs[test]).sum()
        return total / len(bags)

    def decision_function(self, X: Any) -> Array:
        """The score of each bag; positive means the second class."""
        check_is_fitted(self)
        bags = self.whitening_(self._bags(X))
        return (
            bags.attended(self.sharpness_ * (bags.tokens @ self.query_)) @ self.coef_
            + self.intercept_
        )

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the two classes (n, 2), as the logistic loss means them."""
        positive = expit(self.decision_function(X))
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: Any) -> Array:
        """The label of each bag."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def attention(self, X: Any) -> list[Array]:
        """The attention weights of the tokens of each bag: where the classifier looked."""
        check_is_fitted(self)
        bags = self.whitening_(self._bags(X))
        weight = bags.weights(self.sharpness_ * (bags.tokens @ self.query_))
        return np.split(weight, bags.starts[1:-1])
