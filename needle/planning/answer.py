"""What a plan is, and the advice it gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from .printed import html, number, text
from .tuner import Recipe

CLEAR = 0.9  # an error counts as better than another from this ratio on
LEARNERS = ("pooled", "attention", "twice", "best_possible")


@dataclass(frozen=True)
class PlanRow:
    """One signal strength: what each learner reaches, and the recipe behind it.

    Attributes
    ----------
    theta : signal strength θ
    silent : test error of always giving the commoner answer, min(π, 1−π)
    recipes : for each learner how to train it and what it gives: "pooled" (mean pooling, its best
        ridge, all n bags), "attention" (two gradient steps and a readout, the data split at the
        best share), "twice" (all data used for both; missing beyond L = 10⁴) and "best_possible"
        (message passing, Chapter 9, of which only the cosine and what it reaches are known)
    choice : what to use: "pooled", "attention" (data split), "twice", or "none" of them
    advice : what to do, in a sentence
    warnings : where the theory behind this row is strained

    `pooled`, `attention`, `twice` and `best_possible` are the errors; `share`, `cosine`,
    `temperature` and `ridge` the settings of the split, with `twice_` before them those of all data
    twice; `balanced` whether both labels weigh the same in the steps; `auc` and `recall` map
    learners to theirs, at the plan's rate of false alarms.
    """

    theta: float
    silent: float
    recipes: Mapping[str, Recipe]
    choice: str
    advice: str
    warnings: tuple[str, ...]

    pooled = property(lambda self: self.recipes["pooled"].error)
    attention = property(lambda self: self.recipes["attention"].error)
    best_possible = property(lambda self: self.recipes["best_possible"].error)
    twice = property(lambda self: self._twice("error"))
    share = property(lambda self: self.recipes["attention"].share)
    cosine = property(lambda self: self.recipes["attention"].cosine)
    temperature = property(lambda self: self.recipes["attention"].temperature)
    ridge = property(lambda self: self.recipes["attention"].ridge)
    twice_cosine = property(lambda self: self._twice("cosine"))
    twice_temperature = property(lambda self: self._twice("temperature"))
    twice_ridge = property(lambda self: self._twice("ridge"))
    balanced = property(lambda self: self.recipes["attention"].balanced)

    def _twice(self, name: str) -> float | None:
        return getattr(self.recipes["twice"], name) if "twice" in self.recipes else None

    @property
    def auc(self) -> dict[str, float]:
        """AUC of each learner."""
        return {name: recipe.auc for name, recipe in self.recipes.items()}

    @property
    def recall(self) -> dict[str, float]:
        """Recall of each learner."""
        return {name: recipe.recall for name, recipe in self.recipes.items()}


@dataclass(frozen=True)
class Plan:
    """What `plan` returns; it prints as advice and a table, in a terminal and in a notebook.

    Attributes
    ----------
    L, R, d, n, pi, loss : the setting
    rate : the calibrated η_b (for data: that of the data's own share of positives)
    error : the test error that `needed` asks for
    false_alarms : the rate of false alarms of `recall`
    rows : one `PlanRow` for each θ, weakest first
    warnings : what strains the theory in every row
    measured : AUC of learners that were measured on the bags at hand, for a portrait's plan
    """

    L: int
    R: int
    d: int
    n: int
    pi: float
    loss: str
    rate: float
    error: float
    false_alarms: float
    rows: tuple[PlanRow, ...]
    warnings: tuple[str, ...]
    search: Callable[[str], float] = field(repr=False, compare=False)
    measured: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def needed(self) -> dict[str, float]:
        """The smallest θ at which each learner reaches `error`; inf where none does."""
        return {name: self.search(name) for name in LEARNERS}

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, for JSON; None where a θ is out of reach."""
        names = ("L", "R", "d", "n", "pi", "loss", "rate", "error", "false_alarms", "warnings")
        found = {name: getattr(self, name) for name in names}
        needed = {name: x if math.isfinite(x) else None for name, x in self.needed.items()}
        rows = [asdict(row) for row in self.rows]
        return {**found, "measured": dict(self.measured), "needed": needed, "rows": rows}

    def __repr__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)


def advise(
    silent: float, pooled: Recipe, split: Recipe, twice: Recipe | None, best: Recipe
) -> tuple[str, str]:
    """Which learner to use, and one sentence: its settings, and how far from the best possible.

    The learner is "pooled", "attention" (data split), "twice", or "none" of them.
    """
    steps = min((recipe for recipe in (twice, split) if recipe), key=lambda recipe: recipe.error)
    floor = f"best possible {number(best.error)}"
    if min(pooled.error, steps.error, best.error) > CLEAR * silent:
        gain = max(pooled.auc, steps.auc, best.auc)
        if gain > 0.6:
            return "none", f"Too weak for decisions, enough for a ranking: AUC up to {gain:.2f}."
        return "none", "Too weak: nobody does better than the commoner answer; get more bags."
    if min(pooled.error, steps.error) > CLEAR * silent:
        return "none", (
            f"Two steps see nothing yet, but the data hold it ({floor}): take more gradient rounds "
            "or message passing (Chapter 9)."
        )
    if pooled.error <= steps.error / CLEAR:
        better = "is as good as" if pooled.error > CLEAR * steps.error else "beats"
        return "pooled", (
            f"Average: pooling {better} attention, error {number(pooled.error)} ({floor})."
        )
    if twice and twice.error * CLEAR <= split.error:
        choice, recipe, how = "twice", twice, "all data twice"
    else:
        choice, recipe = "attention", split
        how = f"{100 * split.share:.0f} % of the data for the query"
    if recipe.balanced:
        how += ", labels weighed alike in the steps"
    return choice, (
        f"Use attention, {how}: sharpness {recipe.temperature:.1f}, ridge {recipe.ridge:.2g}, "
        f"error {number(recipe.error)} ({floor})."
    )
