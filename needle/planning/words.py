"""How a plan speaks: a table for the terminal, one for a notebook, a sentence of advice a row."""

from __future__ import annotations

import math
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from .tuner import Recipe

if TYPE_CHECKING:
    from .planner import Plan

CLEAR = 0.9  # an error counts as better than another from this ratio on
NAMES = {
    "pooled": "pooled",
    "attention": "attention, data split",
    "twice": "attention, all data twice",
    "best_possible": "best learner",
}
HEADER = (
    ("θ", "always", "pooled", "attention", "share", "T", "λ", "cosine", "twice", "T", "λ", "best")
)  # fmt: skip


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


def _cells(plan: Plan) -> list[tuple[str, ...]]:
    def setting(value: float | None, pattern: str) -> str:
        return "–" if value is None else format(value, pattern)

    return [
        (
            f"{row.theta:g}", number(row.silent), number(row.pooled), number(row.attention),
            f"{row.share:.2f}", f"{row.temperature:.1f}", f"{row.ridge:.2g}", f"{row.cosine:.2f}",
            number(row.twice), setting(row.twice_temperature, ".1f"),
            setting(row.twice_ridge, ".2g"), number(row.best_possible),
        )
        for row in plan.rows
    ]  # fmt: skip


def _setting(plan: Plan) -> str:
    return (
        f"L = {plan.L}, R = {plan.R}, d = {plan.d}, n = {plan.n}, π = {plan.pi:g}, "
        f"{plan.loss} loss: α = n/d = {plan.n / plan.d:.3g}, calibrated η_b = {plan.rate:.3f}"
    )


def _needed(plan: Plan) -> str:
    parts = [
        f"{NAMES[name]} {theta:.3g}" if theta < math.inf else f"{NAMES[name]} out of reach"
        for name, theta in plan.needed.items()
        if theta == theta
    ]
    return f"θ needed for an error of {plan.error:.3g}: " + ", ".join(parts)


def _ranking(plan: Plan) -> list[str]:
    lines = []
    for row in plan.rows:
        parts = [f"{NAMES[name]} {row.auc[name]:.3f}/{row.recall[name]:.2f}" for name in row.auc]
        lines.append(f"θ = {row.theta:g}: " + ", ".join(parts))
    return lines


def _notes(plan: Plan) -> list[str]:
    lines = [f"warning: {text}" for text in plan.warnings]
    spoken: dict[str, list[str]] = {}
    for row in plan.rows:
        for text in row.warnings:
            spoken.setdefault(text, []).append(f"{row.theta:g}")
    return lines + [f"warning at θ = {', '.join(at)}: {text}" for text, at in spoken.items()]


def text_table(plan: Plan) -> str:
    """The plan for a terminal."""
    table = [HEADER, *_cells(plan)]
    widths = [max(len(line[k]) for line in table) for k in range(len(HEADER))]
    lines = [_setting(plan), "", "test errors, and the settings behind them"]
    lines += ["  ".join(x.rjust(w) for x, w in zip(line, widths, strict=True)) for line in table]
    lines += ["", _needed(plan), "", f"AUC/recall at {plan.false_alarms:.0%} false alarms"]
    lines += [*_ranking(plan), "", "advice"]
    lines += [f"θ = {row.theta:g}: {row.advice}" for row in plan.rows]
    notes = _notes(plan)
    return "\n".join(lines + ([""] if notes else []) + notes)


def html_table(plan: Plan) -> str:
    """The plan for a notebook: the same, the advice in the last column."""
    head = "".join(f"<th>{escape(name)}</th>" for name in (*HEADER, "advice"))
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(x)}</td>" for x in (*cells, row.advice)) + "</tr>"
        for cells, row in zip(_cells(plan), plan.rows, strict=True)
    )
    notes = "".join(f"<p>{escape(text)}</p>" for text in (_needed(plan), *_notes(plan)))
    return (
        f"<p>{escape(_setting(plan))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"
    )


def as_dict(plan: Plan) -> dict[str, Any]:
    """Plain numbers and text; None where a needed θ is out of reach or not known."""
    names = ("L", "R", "d", "n", "pi", "loss", "rate", "error", "false_alarms", "warnings")
    found = {name: getattr(plan, name) for name in names}
    needed = {name: x if math.isfinite(x) else None for name, x in plan.needed.items()}
    return {**found, "needed": needed, "rows": [asdict(row) for row in plan.rows]}
