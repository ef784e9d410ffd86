"""Chapter 13: the same classifiers on digits and on benchmark bags that nobody here wrote."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from needle.bags import Bags, Report, benchmark, digit_bags, digits, report
from needle.bags import NeedleClassifier as Learner
from needle.bags.arrays import Array
from needle.bags.messages import message_passing
from needle.bags.portrait import estimate
from needle.bags.units import whitening
from needle.bags.yardsticks import fit_pooling, tune

NeedleClassifier = partial(Learner, units="common")  # both units are tried by `report`
TEST = 1500  # fresh bags on which errors are counted
YARDSTICKS = ("mean", "max", "noisy-or", "gated")
PIXELS, ENTRIES = (None, 0.3, 1.0), (0.1, 0.3, 1.0)  # shrinkages to choose from
RIDGES = (0.003, 0.03, 0.3)


def fitted(
    method: str, bags: Bags, y: Array, rng: np.random.Generator, rhos: tuple = PIXELS
) -> Callable[[Bags], Array]:
    """A tuned classifier as the function that scores bags; all choices made within these bags.

    "needle": two steps, tuned like the others; "whitened": the same with the shrinkage of Ledoit
    and Wolf, as the theory has it; "messages": the query of message passing, tuned; "best":
    message passing with Bayes' rule of its own opinion, in which nothing is tuned.
    """
    if method in ("needle", "whitened", "messages"):
        learner = NeedleClassifier(
            sharpness=(0.0, 1.0, 2.0, 4.0),
            ridge=RIDGES,
            shrinkage=None if method == "whitened" else rhos,
            learner="messages" if method == "messages" else "steps",
            cv=3,
            random_state=int(rng.integers(2**31)),
        )
        return learner.fit(bags, y).decision_function
    if method == "best":
        return message_passing(bags, y, whitening(bags, y)).score
    return tune(method, bags, y, rng, scales=[("common", rho) for rho in rhos])


def drawn(kind: str, n: int, L: int, rng: np.random.Generator) -> list[tuple[Bags, Array]]:
    """Training and test bags with one needle, from images that the other half does not hold.

    kind "images": a zero among other digits; "two digits": a zero or a four among the others. The
    others are Gaussian tokens that get the properties of images one after another: "model"
    isotropic, with the strength of zeros; "two directions" the same, each needle along one of two
    orthogonal directions; "correlated" as other digits are; "own spread": needles scatter as zeros
    do; "clusters": straws of nine Gaussians, one for each other digit.
    """
    images, names = digits()
    order = rng.permutation(len(images))
    halves = (order[:1200], n), (order[1200:], TEST)
    if kind == "images":
        return [digit_bags(size, L, 1, rng, rows=rows)[:2] for rows, size in halves]
    if kind == "two digits":
        return [two_digits(rows, size, L, rng) for rows, size in halves]
    law = {digit: gaussian(images[names == digit]) for digit in range(10)}
    middle, root = gaussian(images[names != 0])
    found = []
    for size in (n, TEST):
        y, noise = np.where(rng.random(size) < 0.5, 1, -1), rng.normal(size=(size, L, 64))
        if kind in ("model", "two directions"):
            shift = np.zeros((size, 64))
            axis = rng.integers(2, size=size) if kind == "two directions" else 0
            shift[np.arange(size), axis] = np.linalg.norm(np.linalg.solve(root, law[0][0] - middle))
            noise[y > 0, 0] += shift[y > 0]
            found.append((Bags(noise.reshape(-1, 64), np.arange(size + 1) * L), y))
            continue
        tokens = middle + noise @ root.T
        if kind == "clusters":
            which = rng.choice(names[names != 0], (size, L))
            for digit in range(1, 10):
                mean, own = law[digit]
                tokens[which == digit] = mean + noise[which == digit] @ own.T
        spread = root if kind == "correlated" else law[0][1]
        tokens[y > 0, 0] = law[0][0] + noise[y > 0, 0] @ spread.T
        found.append((Bags(tokens.reshape(-1, 64), np.arange(size + 1) * L), y))
    return found


def two_digits(rows: Array, n: int, L: int, rng: np.random.Generator) -> tuple[Bags, Array]:
    """Bags whose one needle is a zero or a four, and whose straws are the other eight digits."""
    images, names = digits()
    needle = np.isin(names[rows], (0, 4))
    y = np.where(rng.random(n) < 0.5, 1, -1)
    places = rng.choice(rows[~needle], (n, L))
    kinds = [rng.choice(rows[names[rows] == digit], n) for digit in (0, 4)]
    hidden = np.where(rng.random(n) < 0.5, *kinds)
    places[y > 0, 0] = hidden[y > 0]
    return Bags(images[places].reshape(n * L, -1), np.arange(n + 1) * L), y


def gaussian(sample: Array) -> tuple[Array, Array]:
    """Mean, and a root of the covariance that leaves no direction without noise."""
    covariance = np.cov(sample.T) + 1e-3 * np.eye(sample.shape[1])
    return sample.mean(axis=0), np.linalg.cholesky(covariance)


def promised(kind: str, n: int, L: int, rng: np.random.Generator) -> dict[str, float]:
    """What a portrait of training bags says, and what training on the same bags then gives."""
    (bags, y), (unseen, truth) = drawn(kind, n, L, rng)
    portrait = estimate(np.split(bags.tokens, bags.starts[1:-1]), y)
    [row] = portrait.plan(R=1, theta=max(portrait.delta * np.sqrt(L), 0.5)).rows
    found = {
        "delta": portrait.delta,
        "theta": row.theta,
        "said_mean": row.pooled,
        "said_needle": row.attention if row.twice is None else row.twice,
        "said_best": row.best_possible,
    }
    others = YARDSTICKS if kind in ("images", "two digits") else ("mean", "noisy-or")
    for method in (*others, "needle", "whitened", "messages", "best"):
        scores = fitted(method, bags, y, rng)(unseen)
        found[f"error_{method}"] = float(np.mean((scores > 0) != (truth > 0)))
        found[f"auc_{method}"] = float(roc_auc_score(truth, scores))
    for method, promise in (("mean", "mean"), ("whitened", "needle"), ("best", "best")):
        found[f"gap_{method}"] = found[f"error_{method}"] - found[f"said_{promise}"]
    return found


def benchmark_scores(name: str, rng: np.random.Generator) -> dict[str, float]:
    """One 10-fold cross-validation of all methods on the same folds, everything learned within.

    Means over the folds of accuracy and AUC, their variances over the folds, and the same of the
    difference of two steps to each other method.
    """
    bags, y = benchmark(name)
    folds = StratifiedKFold(10, shuffle=True, random_state=int(rng.integers(2**31)))
    methods = (*YARDSTICKS, "needle")
    scored: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    for train, test in folds.split(y, y):
        seen, unseen = standardized(bags.take(train), bags.take(test))
        for method in methods:
            scores = fitted(method, seen, y[train], rng, ENTRIES)(unseen)
            right = float(np.mean((scores > 0) == (y[test] > 0)))
            scored[method].append((right, float(roc_auc_score(y[test], scores))))
    found = {}
    for method in methods:
        pairs = {method: np.array(scored[method])}
        if method != "needle":
            pairs[f"needle-{method}"] = np.array(scored["needle"]) - pairs[method]
        for what, values in pairs.items():
            for column, score in enumerate(("accuracy", "auc")):
                found[f"{what}_{score}"] = float(values[:, column].mean())
                found[f"{what}_{score}_variance"] = float(values[:, column].var(ddof=1))
    return found


def standardized(seen: Bags, unseen: Bags) -> list[Bags]:
    """Entries in units of their spread over all tokens seen; those that never vary are left out."""
    spread = seen.tokens.std(axis=0)
    kept = spread > 1e-9 * np.abs(seen.tokens).max()
    return [bags.mapped(bags.tokens[:, kept] / spread[kept]) for bags in (seen, unseen)]


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


@lru_cache(maxsize=1)
def reported(name: str) -> Report:
    """The report on a benchmark, made once for all trials: its seed is its own."""
    return report(*benchmark(name))


def benchmark_report(name: str, rng: np.random.Generator) -> dict[str, float]:
    """What `report` says of a benchmark; nothing is drawn. A promise that is withheld is −1."""
    made = reported(name)
    found = {"n": made.n, "L": made.L, "d": made.d, "pi": made.pi, "pvalue": made.signal.pvalue}
    for learner, one in made.measured.items():
        found[f"error_{learner}"], found[f"auc_{learner}"] = one.error, one.auc
        found[f"low_{learner}"], found[f"high_{learner}"] = one.interval
    found["difference"] = made.difference[0]
    found["difference_low"], found["difference_high"] = made.difference[1]
    found["independence"], found["told"] = made.independence, float(made.needles.told)
    found["gain"], found["chance"] = made.needles.found.gain, made.needles.chance
    for learner, promise in made.promised.items():
        found[f"promised_{learner}"] = -1.0 if promise is None else promise
    found["leaks"] = float(sum(text.startswith("leak") for text in made.warnings))
    return found


def benchmark_portrait(name: str, rng: np.random.Generator) -> dict[str, float]:
    """What `estimate` and `plan` say of a benchmark before training; nothing is drawn."""
    bags, y = benchmark(name)
    tokens = bags.tokens[:, bags.tokens.std(axis=0) > 0]  # entries that never vary say nothing
    tokens = tokens / tokens.std(axis=0)
    portrait = estimate(bags.mapped(tokens), y)
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
