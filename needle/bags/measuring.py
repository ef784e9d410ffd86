"""The work of a report in pieces, here or on any executor: the same numbers wherever it is done.

A piece is a repetition of the nested folds, a rival on one fold, bag size, or the permutations.
Each has a random stream of its own, named by the seed of the report and its place: neither order
nor machine matters. On an executor the pieces are trials of `needle.trials.sweep`, which starts
again what died with its worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from ..trials.grid import sweep
from .arrays import Array, Bags
from .chance import evidence
from .folds import auc
from .leaks import size_rows
from .logistic import readouts
from .nesting import Repetition, nested
from .resampling import over_folds
from .verdict import Difference, Measured
from .yardsticks import tune

RIVALS = {"max": "max", "noisy_or": "noisy-or", "gated": "gated"}
Task = tuple[str, int]


class Piece(NamedTuple):
    """What a piece of work gives, and the seconds it took."""

    value: Any
    seconds: float


class Work:
    """Bags, signs, cuts into blocks and groups of one report, and what is to be done with them."""

    def __init__(
        self, bags: Bags, y: Array, cuts: list[Array], groups: Array | None, seed: int,
        rivals: tuple[str, ...],
    ) -> None:  # fmt: skip
        self.bags, self.y, self.cuts, self.groups, self.seed = bags, y, cuts, groups, seed
        self.rivals = rivals
        folds = range(int(cuts[0].max()) + 1)
        self.tasks: list[Task] = [("nested", k) for k in range(len(cuts))]
        self.tasks += [("size", 0), ("evidence", 0)]
        self.tasks += [(name, a) for name in rivals for a in folds]

    def piece(self, number: int) -> Piece:
        """One piece of work."""
        name, k = self.tasks[number]
        rng, clock = np.random.default_rng([self.seed, number]), time.perf_counter()
        bags, y = self.bags, self.y
        found: Any
        if name == "nested":
            found = nested(bags, y, self.cuts[k])
        elif name == "evidence":
            found = evidence(bags, y, rng, self.groups)
        elif name == "size":
            found = [self._size(cut) for cut in self.cuts]
        else:
            seen, held = self.cuts[0] != k, self.cuts[0] == k
            scales: list[Any] = [("own", 1.0), ("own", None)][: 1 + (name == "noisy_or")]
            score = tune(RIVALS[name], bags.take(seen), y[seen], rng, scales=scales)
            found = score(bags.take(held))
        return Piece(found, time.perf_counter() - clock)

    def _size(self, cut: Array) -> Array:
        """Scores by the size of a bag alone."""
        rows, held = size_rows(self.bags), np.empty(len(self.y))
        for a in np.unique(cut):
            [line] = readouts(rows[cut != a], self.y[cut != a], [1e-3])
            held[cut == a] = line(rows[cut == a])
        return held

    def done(self, executor: Executor | None, tick: Callable[[], Any]) -> dict[str, Any]:
        """All pieces by name, in order; "evidence" is its value alone."""
        if executor is None:
            pieces = []
            for number in range(len(self.tasks)):
                pieces.append(self.piece(number))
                tick()
        else:
            grid = {"number": list(range(len(self.tasks)))}
            ran = sweep(partial(_trial, work=self), grid, trials=1, seed=0, executor=executor)
            pieces = [trial for [trial] in ran.results]
        found: dict[str, Any] = {}
        for (name, _), piece in zip(self.tasks, pieces, strict=True):
            found.setdefault(name, []).append(piece)
        found["evidence"] = found["evidence"][0].value
        return found

    def runs(self, done: dict[str, Any]) -> list[Repetition]:
        """The repetitions of the nested folds."""
        return [piece.value for piece in done["nested"]]

    def _scores(self, done: dict[str, Any]) -> dict[str, list[Array]]:
        """Scores of held-out bags: learner → an array for each cut it was judged on."""
        runs = self.runs(done)
        found = {name: [run.scores[name] for run in runs] for name in ("pooled", "needle")}
        found["size"] = done["size"][0].value
        for name in self.rivals:
            held = np.empty(len(self.y))
            for a, piece in enumerate(done[name]):
                held[self.cuts[0] == a] = piece.value
            found[name] = [held]
        return found

    def measured(self, done: dict[str, Any]) -> dict[str, Measured]:
        """Every learner on its cuts."""
        both = sum(piece.seconds for piece in done["nested"]) / 2
        spent = {"pooled": both, "needle": both, "size": done["size"][0].seconds}
        spent |= {name: sum(piece.seconds for piece in done[name]) for name in self.rivals}
        scores = self._scores(done)
        return {name: measure(self.y, self.cuts, scores[name], spent[name]) for name in spent}

    def differences(self, done: dict[str, Any]) -> dict[tuple[str, str], Difference]:
        """Error of one learner less that of another on the same folds, for every ordered pair."""
        errors = {
            name: [fold_errors(self.y, cut, s) for cut, s in zip(self.cuts, some, strict=False)]
            for name, some in self._scores(done).items()
        }
        folds, found = int(self.cuts[0].max()) + 1, {}
        for one, other in permutations(errors, 2):
            pairs = zip(errors[one], errors[other], strict=False)  # the cuts both were judged on
            gaps = [a - b for two in pairs for a, b in zip(*two, strict=True)]
            made = over_folds(gaps, folds=folds)
            found[one, other] = made.mean, (made.low, made.high)
        return found


def _trial(number: int, rng: np.random.Generator, work: Work) -> Piece:
    """A piece as a trial; its stream is its own, that of the sweep stays unused."""
    return work.piece(number)


def fold_errors(y: Array, block: Array, scores: Array) -> list[float]:
    """The share of wrong labels in each block."""
    wrong = (scores > 0) != (y > 0)
    return [float(wrong[block == a].mean()) for a in np.unique(block)]


def measure(y: Array, cuts: list[Array], scores: list[Array], seconds: float) -> Measured:
    """Error with its interval, and AUC, over all folds of all repetitions."""
    errors = [e for cut, s in zip(cuts, scores, strict=False) for e in fold_errors(y, cut, s)]
    folds = int(cuts[0].max()) + 1
    made = over_folds(errors, folds=folds)
    few = 1 - 0.05 ** (1 / len(y))  # what no error among n bags still allows
    chance = (made.mean * len(y) + 1) / (len(y) + 2)  # bags as many coins: never surer than that
    reach = max(made.high - made.mean, 1.96 * (chance * (1 - chance) / len(y)) ** 0.5)
    low, high = max(0.0, made.mean - reach), min(1.0, made.mean + reach)
    areas = [
        auc(s[cut == a], y[cut == a])
        for cut, s in zip(cuts, scores, strict=False)
        for a in np.unique(cut)
        if len(np.unique(y[cut == a])) == 2
    ]
    area = float(np.mean(areas)) if areas else 0.5
    return Measured(area, made.mean, (low, max(high, few)), seconds)
