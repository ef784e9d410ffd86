"""Chapter 11: the same classifiers on digits and on benchmark bags that nobody here wrote."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from utils.bag_learner import NeedleClassifier
from utils.bags import Array, Bags, benchmark, digit_bags, digits
from utils.estimation import estimate
from utils.model import SparseTokens
from utils.whitening import whitening
from utils.yardsticks import fit_gated, fit_noisy_or, fit_pooling

RIDGES = {"mean": (0.01, 0.1, 1.0), "max": (0.01, 0.1, 1.0), "noisy-or": (1e-3, 1e-2, 1e-1)}
RIDGES["gated"] = (1e-3, 1e-2)
TEST = 1500  # fresh bags on which errors are counted


def fitted(method: str, bags: Bags, y: Array, rng: np.random.Generator) -> Callable[[Bags], Array]:
    """A tuned classifier as the function that scores bags; ridges chosen by validation."""
    if method == "needle":
        return (
            NeedleClassifier(random_state=int(rng.integers(2**31))).fit(bags, y).decision_function
        )

    def train(chosen: Array, lam: float) -> Callable[[Bags], Array]:
        white = whitening(bags.take(chosen), y[chosen])
        seen = white(bags.take(chosen))
        if method == "gated":
            score = fit_gated(seen, y[chosen], lam, rng, steps=200)
        elif method == "noisy-or":
            score = fit_noisy_or(seen, y[chosen], lam)
        else:
            score = fit_pooling(seen, y[chosen], lam, pool=method)
        return lambda unseen: score(white(unseen))

    losses = np.zeros(len(RIDGES[method]))
    folds = StratifiedKFold(3, shuffle=True, random_state=int(rng.integers(2**31)))
    for k, (inner, outer) in enumerate(folds.split(y, y)):
        if method == "gated" and k:
            break  # one validation set: three would triple the longest training there is
        for j, lam in enumerate(RIDGES[method]):
            losses[j] += np.logaddexp(0, -y[outer] * train(inner, lam)(bags.take(outer))).sum()
    return train(np.arange(len(bags)), RIDGES[method][int(np.argmin(losses))])


def digits_error(
    method: str, n: int, L: int, R: int, rng: np.random.Generator, needle: int = 0
) -> dict[str, float]:
    """Test error and AUC on fresh bags of images that training did not see."""
    rows = np.arange(len(digits()[0]))
    rng.shuffle(rows)
    bags, y, _ = digit_bags(n, L, R, rng, needle=needle, rows=rows[:1200])
    unseen, truth, _ = digit_bags(TEST, L, R, rng, needle=needle, rows=rows[1200:])
    scores = fitted(method, bags, y, rng)(unseen)
    return {
        "error": float(np.mean((scores > 0) != (truth > 0))),
        "auc": float(roc_auc_score(truth, scores)),
    }


def digits_predicted(
    n: int, L: int, R: int, kind: str, rng: np.random.Generator
) -> dict[str, float]:
    """What `estimate` and `plan` say of training bags, and what training then does.

    kind "digits": images. kind "gauss": tokens of the model, with the strength that an earlier
    portrait of digits gave (θ = 4, d = 61), for which the theory should hold.
    """
    if kind == "digits":
        rows = np.arange(len(digits()[0]))
        rng.shuffle(rows)
        bags, y, _ = digit_bags(n, L, R, rng, rows=rows[:1200])
        unseen, truth, _ = digit_bags(TEST, L, R, rng, rows=rows[1200:])
    else:
        model = SparseTokens(L=L, R=R, theta=4.0, pi=0.5)
        drawn = [model.sample(size, 61, rng) for size in (n, TEST)]
        (X, y, _), (Z, truth, _) = drawn
        bags, unseen = (Bags(A.reshape(-1, 61), np.arange(len(A) + 1) * L) for A in (X, Z))
    portrait = estimate(np.split(bags.tokens, bags.starts[1:-1]), y)
    row = portrait.plan(R=R).rows[1]
    errors = {
        method: np.mean((fitted(method, bags, y, rng)(unseen) > 0) != (truth > 0))
        for method in ("mean", "needle")
    }
    return {
        "delta": portrait.delta,
        "theta": row.theta,
        "pooled_predicted": row.pooled,
        "attention_predicted": row.attention,
        "best_possible": row.best_possible,
        "pooled": float(errors["mean"]),
        "attention": float(errors["needle"]),
    }


def benchmark_score(name: str, method: str, rng: np.random.Generator) -> dict[str, float]:
    """Accuracy and AUC of one 10-fold cross-validation; everything is learned within the folds."""
    bags, y = benchmark(name)
    right, aucs = [], []
    folds = StratifiedKFold(10, shuffle=True, random_state=int(rng.integers(2**31)))
    for train, test in folds.split(y, y):
        scores = fitted(method, bags.take(train), y[train], rng)(bags.take(test))
        right.append(np.mean((scores > 0) == (y[test] > 0)))
        aucs.append(roc_auc_score(y[test], scores))
    return {"accuracy": float(np.mean(right)), "auc": float(np.mean(aucs))}


def benchmark_shrinkage(name: str, shrinkage: float, rng: np.random.Generator) -> dict[str, float]:
    """10-fold accuracy and AUC of mean pooling and of two steps, nothing tuned, at one shrinkage.

    Tokens are whitened towards their own spread by the share `shrinkage`; 1 is standardizing.
    """
    bags, y = benchmark(name)
    found: dict[str, list[float]] = {}
    folds = StratifiedKFold(10, shuffle=True, random_state=int(rng.integers(2**31)))
    for train, test in folds.split(y, y):
        seen, unseen = bags.take(train), bags.take(test)
        white = whitening(seen, y[train], shrinkage, "own")
        steps = NeedleClassifier(sharpness=1.0, ridge=0.1, shrinkage=shrinkage, units="own")
        scores = {
            "mean": fit_pooling(white(seen), y[train], 0.1)(white(unseen)),
            "needle": steps.fit(seen, y[train]).decision_function(unseen),
        }
        for method, score in scores.items():
            right = float(np.mean((score > 0) == (y[test] > 0)))
            found.setdefault(f"{method}_accuracy", []).append(right)
            found.setdefault(f"{method}_auc", []).append(float(roc_auc_score(y[test], score)))
    return {what: float(np.mean(values)) for what, values in found.items()}


def benchmark_portrait(name: str, rng: np.random.Generator) -> dict[str, float]:
    """What `estimate` and `plan` say of a benchmark before training; nothing is drawn."""
    bags, y = benchmark(name)
    tokens = bags.tokens[:, bags.tokens.std(axis=0) > 0]  # entries that never vary say nothing
    tokens = tokens / tokens.std(axis=0)
    portrait = estimate(np.split(tokens, bags.starts[1:-1]), y)
    theta = max(portrait.delta * np.sqrt(portrait.L), 0.5)
    [row] = portrait.plan(R=1, theta=theta).rows
    facts = {a.name: a.value for a in portrait.assumptions}
    return facts | {
        "L": portrait.L,
        "d": portrait.d,
        "n": portrait.n,
        "pi": portrait.pi,
        "delta": portrait.delta,
        "delta_low": portrait.delta_interval[0],
        "delta_high": portrait.delta_interval[1],
        "separated": float(portrait.separated),
        "said_mean": row.pooled,
        "said_needle": row.attention if row.twice is None else row.twice,
        "said_mean_auc": row.auc["pooled"],
        "said_needle_auc": row.auc["attention" if row.twice is None else "twice"],
    }


def digits_said(n: int, L: int, R: int, rng: np.random.Generator) -> dict[str, float]:
    """What a portrait of n bags of digits says before training, of the same n bags."""
    rows = rng.permutation(len(digits()[0]))
    bags, y, _ = digit_bags(n, L, R, rng, rows=rows[:1200])
    portrait = estimate(np.split(bags.tokens, bags.starts[1:-1]), y)
    [row] = portrait.plan(R=R, theta=max(portrait.delta * np.sqrt(L) / R, 0.5)).rows
    return {
        "theta": row.theta,
        "mean": row.pooled,
        "needle": row.attention if row.twice is None else row.twice,
        "best": row.best_possible,
    }
