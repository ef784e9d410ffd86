"""What a plan is and how it speaks: advice in sentences, then a table in per cent."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from html import escape
from typing import Any

from .tuner import Recipe

CLEAR = 0.9  # an error counts as better than another from this ratio on
LEARNERS = ("pooled", "attention", "twice", "best_possible")
NAMES = {
    "pooled": "averaging",
    "attention": "attention, data split",
    "twice": "attention, all data twice",
    "best_possible": "best learner",
}


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
    twice; `auc` and `recall` map learners to theirs, at the plan's rate of false alarms.
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


def number(value: float | None) -> str:
    """Three decimals, four for small errors, which are not known below 1e-4; a dash for nothing.

    >>> [number(x) for x in (0.2999, 0.0371, 0.0012, 2e-9, None)]
    ['0.300', '0.037', '0.0012', '<1e-4', '–']
    """
    if value is None or value != value:
        return "–"
    if value >= 0.01:
        return f"{value:.3f}"
    return f"{value:.4f}" if value >= 1e-4 else "<1e-4"


def percent(value: float | None) -> str:
    """The same in per cent.

    >>> [percent(x) for x in (0.2999, 0.0371, 0.0012, 2e-9, None)]
    ['30.0', '3.7', '0.12', '<.01', '–']
    """
    if value is None or value != value:
        return "–"
    if value >= 0.01:
        return f"{100 * value:.1f}"
    return f"{100 * value:.2f}" if value >= 1e-4 else "<.01"


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
    return choice, (
        f"Use attention, {how}: sharpness {recipe.temperature:.1f}, ridge {recipe.ridge:.2g}, "
        f"error {number(recipe.error)} ({floor})."
    )


Group = tuple[str, tuple[str, ...]]
GROUPS: tuple[Group, ...] = (
    ("", ("θ", "always", "averaging")),
    ("data split", ("error", "query", "sharp", "ridge")),
    ("all data twice", ("error", "sharp", "ridge", "AUC", "recall")),
    ("best", ("known",)),
)


def _cells(row: PlanRow) -> tuple[tuple[str, ...], ...]:
    """The cells of one row, a tuple a group; errors, share and recall in per cent."""
    split, twice = row.recipes["attention"], row.recipes.get("twice")
    both: tuple[str, ...] = ("–",) * 5
    if twice:
        both = (
            percent(twice.error), f"{twice.temperature:.1f}", f"{twice.ridge:.2g}",
            f"{twice.auc:.3f}", f"{100 * twice.recall:.0f}",
        )  # fmt: skip
    return (
        (f"{row.theta:g}", percent(row.silent), percent(row.pooled)),
        (
            percent(split.error), f"{100 * split.share:.0f}", f"{split.temperature:.1f}",
            f"{split.ridge:.2g}",
        ),
        both,
        (percent(row.best_possible),),
    )  # fmt: skip


def _setting(plan: Plan) -> str:
    return (
        f"{plan.n} bags of {plan.L} tokens in {plan.d} dimensions (α = {plan.n / plan.d:.3g}), "
        f"{100 * plan.pi:.3g} % positive with {plan.R} needle{'s' * (plan.R > 1)} each; "
        f"{plan.loss} loss, calibrated bias rate {plan.rate:.3f}."
    )


def _needed(plan: Plan) -> str:
    parts = [
        f"{NAMES[name]} {theta:.3g}" if theta < math.inf else f"{NAMES[name]} out of reach"
        for name, theta in plan.needed.items()
        if theta == theta
    ]
    return f"Strength needed for an error of {100 * plan.error:.3g} %: " + ", ".join(parts) + "."


def _notes(plan: Plan) -> list[str]:
    """Warnings, those of several rows once, and what was measured."""
    lines = [f"Mind: {text}." for text in plan.warnings]
    spoken: dict[str, list[str]] = {}
    for row in plan.rows:
        for told in row.warnings:
            spoken.setdefault(told, []).append(f"{row.theta:g}")
    lines += [f"Mind, at θ = {', '.join(at)}: {told}." for told, at in spoken.items()]
    if plan.measured:
        found = ", ".join(f"{NAMES[name]} {auc:.3f}" for name, auc in plan.measured.items())
        lines.insert(0, f"Measured on these bags, AUC: {found}.")
    return lines


def text(plan: Plan) -> str:
    """The plan for a terminal of 80 columns."""
    lines = textwrap.wrap(_setting(plan), 79)
    lines.append("")
    for row in plan.rows:
        lines += textwrap.wrap(f"θ = {row.theta:g}: {row.advice}", 79, subsequent_indent="  ")
    table = _table(plan, {})
    if max(map(len, table)) > 80:
        table = _table(plan, {"averaging": "mean", "recall": "rec."})
    lines += ["", "errors, share of the query and recall in per cent", *table]
    lines.append(f"recall at {plan.false_alarms:.0%} false alarms")
    for note in ["", _needed(plan), *_notes(plan)]:
        lines += textwrap.wrap(note, 79, subsequent_indent="  ") or [""]
    return "\n".join(lines)


def _table(plan: Plan, short: Mapping[str, str]) -> list[str]:
    """Lines of the table, some heads said in fewer letters."""
    columns = [tuple(short.get(name, name) for name in names) for _, names in GROUPS]
    rows = [_cells(row) for row in plan.rows]
    widths = [
        [max(len(line[g][k]) for line in [columns, *rows]) for k in range(len(names))]
        for g, names in enumerate(columns)
    ]
    spans = [sum(w) + len(w) - 1 for w in widths]
    heads = [f"{name:^{span}}" for (name, _), span in zip(GROUPS, spans, strict=True)]
    lines = ["  ".join(heads).rstrip()]
    for line in [columns, *rows]:
        groups = [
            " ".join(x.rjust(w) for x, w in zip(cells, width, strict=True))
            for cells, width in zip(line, widths, strict=True)
        ]
        lines.append("  ".join(groups))
    return lines


def html(plan: Plan) -> str:
    """The plan for a notebook: advice first, then the table with the chosen learner in bold."""
    chosen = {"pooled": (0, 2), "attention": (1, 0), "twice": (2, 0)}
    top = "".join(
        f'<th colspan="{len(names)}" style="text-align:center">{escape(name)}</th>'
        for name, names in GROUPS
    )
    pad = ' style="text-align:right;padding:0.2em 0.7em"'
    heads = "".join(f"<th{pad}>{escape(x)}</th>" for _, names in GROUPS for x in names)
    body = ""
    for row in plan.rows:
        body += "<tr>"
        for g, group in enumerate(_cells(row)):
            for k, x in enumerate(group):
                bold = chosen.get(row.choice) == (g, k)
                body += f"<td{pad}>" + (f"<b>{escape(x)}</b>" if bold else escape(x)) + "</td>"
        body += "</tr>"
    advice = "".join(f"<p><b>θ = {row.theta:g}.</b> {escape(row.advice)}</p>" for row in plan.rows)
    notes = "".join(f"<p>{escape(told)}</p>" for told in (_needed(plan), *_notes(plan)))
    caption = f"Errors, share of the query and recall (at {plan.false_alarms:.0%} false alarms)"
    return (
        '<div class="shown smalltable">'
        f"<p>{escape(_setting(plan))}</p>{advice}<table><caption>{caption} in per cent.</caption>"
        f"<thead><tr>{top}</tr><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{notes}</div>"
    )
