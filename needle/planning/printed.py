"""How a plan speaks: advice in sentences, a table in per cent, then the curve."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from html import escape
from typing import Any

from . import curve

NAMES = {
    "pooled": "averaging",
    "attention": "attention, data split",
    "twice": "attention, all data twice",
    "best_possible": "best learner",
}


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


Group = tuple[str, tuple[str, ...]]
GROUPS: tuple[Group, ...] = (
    ("", ("θ", "always", "averaging")),
    ("data split", ("error", "query", "sharp", "ridge")),
    ("all data twice", ("error", "sharp", "ridge", "AUC", "recall")),
    ("best", ("known",)),
)


def _cells(row: Any) -> tuple[tuple[str, ...], ...]:
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


def _setting(plan: Any) -> str:
    return (
        f"{plan.n} bags of {plan.L} tokens in {plan.d} dimensions (α = {plan.n / plan.d:.3g}), "
        f"{100 * plan.pi:.3g} % positive with {plan.R} needle{'s' * (plan.R > 1)} each; "
        f"{plan.loss} loss, calibrated bias rate {plan.rate:.3f}."
    )


def _needed(plan: Any) -> str:
    parts = [
        f"{NAMES[name]} {theta:.3g}" if theta < math.inf else f"{NAMES[name]} out of reach"
        for name, theta in plan.needed.items()
        if theta == theta
    ]
    return f"Strength needed for an error of {100 * plan.error:.3g} %: " + ", ".join(parts) + "."


def _notes(plan: Any) -> list[str]:
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


def text(plan: Any) -> str:
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
    if drawn := curve.letters(plan):
        lines += ["", *drawn]
    for note in ["", _needed(plan), *_notes(plan)]:
        lines += textwrap.wrap(note, 79, subsequent_indent="  ") or [""]
    return "\n".join(lines)


def _table(plan: Any, short: Mapping[str, str]) -> list[str]:
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


def html(plan: Any) -> str:
    """The plan for a notebook: advice, the table with the chosen learner in bold, the curve."""
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
        f"<thead><tr>{top}</tr><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        f"{curve.drawing(plan)}{notes}</div>"
    )
