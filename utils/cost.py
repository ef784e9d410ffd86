"""What a trial costs: CPU seconds as a function of sizes, fitted to measured runs.

A trained readout costs a few passes over its features and, for the square loss, a Gram matrix; for
attention a softmax over every token besides. Literal tokens cost what it takes to draw them. The
rates of these passes are those of the machine: they are fitted, the shape is not. Appendix H.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from needle.kit.checks import check_choice, check_integer

from .results import Stored

CLASSIFIERS = ("pooled", "vectorized", "attention")
TASKS = (
    *(f"{classifier}, {loss}" for classifier in CLASSIFIERS for loss in ("square", "logistic")),
    *("alignment, exact", "alignment, literal"),
)


def passes(task: str, n: int, d: int, L: int) -> dict[str, float]:
    """How often a trial does what: the terms of its cost, named.

    With p weights (d, or Ld for the vectorized model) and n samples: n·p numbers for every pass
    over the features, min(n, p)²·max(n, p) for a Gram matrix and its factors, n·L for a softmax.
    Two gradient steps cost n and d where they are exact in law, n·L·d on literal tokens.

    >>> passes("vectorized, square", n=200, d=10, L=4)
    {'start': 1.0, 'features': 8000.0, 'gram': 320000.0}
    """
    check_choice("task", task, TASKS)
    n, d, L = check_integer("n", n, 1), check_integer("d", d, 1), check_integer("L", L, 2)
    kind, rule = task.split(", ")
    if kind == "alignment":
        sizes = (
            {"tokens": float(n) * L * d} if rule == "literal" else {"n": float(n), "d": float(d)}
        )
        return {"start": 1.0} | sizes
    p = d * L if kind == "vectorized" else d
    terms = {"start": 1.0, "features": float(n) * p}
    if rule == "square":
        terms["gram"] = float(min(n, p)) ** 2 * max(n, p)
    if kind == "attention":
        terms |= {"test": float(L), "softmax": float(n) * L}
    return terms


@dataclass(frozen=True)
class Cost:
    """Seconds for one unit of each term, for each task, on the machine that was measured."""

    rates: Mapping[str, Mapping[str, float]]

    def seconds(self, task: str, *, n: int, d: int, L: int) -> float:
        """CPU seconds of one trial.

        >>> cost = Cost({"alignment, exact": {"start": 0.001, "n": 1e-8, "d": 0.0}})
        >>> round(cost.seconds("alignment, exact", n=10**8, d=10**7, L=10), 3)
        1.001
        """
        terms = passes(task, n, d, L)
        return sum(self.rates[task][name] * amount for name, amount in terms.items())


def fit_cost(run: Stored) -> Cost:
    """The rates that fit measured runs best in relative error, none of them negative.

    `run` has the parameters task, n, d, L and the quantity seconds, as experiment `cost` has.
    """
    rates = {}
    for task in dict.fromkeys(str(point["task"]) for point in run.points):
        found = run.at(task=task)
        terms = [passes(task, *(int(point[name]) for name in "ndL")) for point, _ in found]
        seconds = np.array([float(estimates["seconds"]) for _, estimates in found])
        table = np.array([list(row.values()) for row in terms]) / seconds[:, None]
        size = np.linalg.norm(table, axis=0)
        solution = nnls(table / size, np.ones(len(seconds)))[0] / size
        rates[task] = dict(zip(terms[0], map(float, solution), strict=True))
    return Cost(rates)
