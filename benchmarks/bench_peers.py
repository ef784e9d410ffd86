"""What people would use instead, with its default tolerances, and how far its answer is off.

The other files hold peers to our accuracy. Here scikit-learn runs as one calls it; a ratio below
one is a race that it wins.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from benchmarks.bench_readout import LAW, fastest, objective
from needle import gaussian_mixture, pooled, separability
from needle.data import SparseTokens
from needle.readout import fit_margin, fit_readout

COIN = gaussian_mixture(mean=0.0, var_pos=1.0, var_neg=1.0)
POOLED = pooled(SparseTokens(10, 1, 5.0, 0.5))


def row(what: str, ours: float, other: float) -> dict[str, Any]:
    return {"what": what, "ours": ours, "other": other, "ratio": other / ours}


def default_logistic(n: int, d: int, lam: float) -> dict[str, Any]:
    """A logistic fit as scikit-learn stops it, and by how much its objective is larger."""
    F, y = LAW.sample(n, d, np.random.default_rng(1))
    model = LogisticRegression(C=1 / (n * lam), max_iter=10_000)
    ours, other = fastest([lambda: fit_readout(F, y, lam), lambda: model.fit(F, y)], 5)
    fit = fit_readout(F, y, lam)
    best = objective(F, y, lam, fit.w, fit.b)
    gap = objective(F, y, lam, model.coef_[0], model.intercept_[0]) / best - 1
    what = f"logistic fit, scikit-learn with default tolerance, n = {n}, d = {d}, λ = {lam:g}"
    return row(f"{what} (its objective is {gap:.0e} of itself too large)", ours, other)


def separable_sets(name: str, law: Any, alphas: tuple[float, ...], d: int = 200) -> dict[str, Any]:
    """Whether data are separable, against the training error of a support-vector machine."""
    missed, times = 0, []
    for k, alpha in enumerate(alphas):
        F, y = law.sample(round(alpha * d), d, np.random.default_rng(k))
        model = LinearSVC(C=1e4, max_iter=20_000)
        times.append(fastest([partial(separability, F, y), partial(model.fit, F, y)], 2))
        missed += bool(separability(F, y).separable and model.score(F, y) < 1)
    ours, other = np.sum(times, axis=0)
    what = f"separability of {len(alphas)} sets, {name}, d = {d}, against LinearSVC at C = 10⁴"
    return row(f"{what} (which misses {missed} separable ones)", float(ours), float(other))


def margin(d: int, n: int) -> dict[str, Any]:
    """The largest margin against libsvm at its default tolerance."""
    F, y = POOLED.sample(n, d, np.random.default_rng(2))
    model = SVC(kernel="linear", C=1e8)
    ours, other = fastest([lambda: fit_margin(F, y), lambda: model.fit(F, y)], 3)
    theirs = float((y * model.decision_function(F)).min() / np.linalg.norm(model.coef_))
    gap = 1 - theirs / fit_margin(F, y).margin
    what = f"largest margin against libsvm, d = {d}, n = {n} (its margin {gap:.0e} too small)"
    return row(what, ours, other)


def run() -> list[dict[str, Any]]:
    """One row for each comparison; none is promised."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    sizes = ((400, 200, 1e-2), (2000, 500, 1e-1), (2000, 500, 1e-2), (3000, 1000, 1e-3))
    rows = [default_logistic(*size) for size in sizes]
    rows.append(separable_sets("coin labels", COIN, (1.6, 1.8, 1.9, 2.1, 2.4)))
    rows.append(separable_sets("pooled features", POOLED, (2.4, 2.7, 2.8, 3.1, 3.5)))
    rows += [margin(100, 150), margin(400, 600)]
    return rows
