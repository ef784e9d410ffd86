"""A plan's curve: errors against the strength of the needle, as a drawing and in letters."""

from __future__ import annotations

import math
from html import escape
from typing import Any

FLOOR, TOP = 1e-4, 0.5  # errors are drawn between these, on a logarithmic axis
TICKS = ((0.5, "50 %"), (0.1, "10 %"), (0.01, "1 %"), (0.001, "0.1 %"), (FLOOR, "0.01 %"))
LEARNERS = (
    ("averaging", "a", "var(--c-pooled, #007a58)"),
    ("attention", "t", "var(--c-attention, #c24f00)"),
    ("best known", "b", "currentColor"),
)
WIDTH, HEIGHT, LEFT, RIGHT, ABOVE, BOTTOM = (
    580,
    240,
    56,
    500,
    24,
    40,
)  # of the drawing, in its own units
COLUMNS, LINES = 60, 12  # of the drawing in letters
FEWEST = 3  # strengths, below which there is no curve to draw


def down(error: float) -> float:
    """How far below the top an error stands: 0 at 50 %, 1 at 0.01 % and less.

    >>> down(0.5), down(1e-9)
    (0.0, 1.0)
    """
    return math.log(TOP / min(max(error, FLOOR), TOP)) / math.log(TOP / FLOOR)


def errors(plan: Any) -> dict[str, list[float]]:
    """The errors of the three learners in each row, attention by the better of its two ways."""
    rows = plan.rows
    steps = [min(e for e in (row.attention, row.twice) if e is not None) for row in rows]
    best = [row.best_possible for row in rows]
    return {"averaging": [row.pooled for row in rows], "attention": steps, "best known": best}


def drawing(plan: Any) -> str:
    """The curves as SVG; empty where a plan has less than three strengths."""
    if len(plan.rows) < FEWEST:
        return ""
    low, high = plan.rows[0].theta, plan.rows[-1].theta
    right = lambda theta: LEFT + (RIGHT - LEFT) * (theta - low) / (high - low)  # noqa: E731
    below = lambda error: ABOVE + (HEIGHT - BOTTOM - ABOVE) * down(error)  # noqa: E731
    parts = [_rule(below(e), word, "stroke-opacity='.15'") for e, word in TICKS]
    asked = f"{100 * plan.error:.3g} % asked for"
    parts.append(_rule(below(plan.error), "", "stroke-dasharray='4 4'"))
    parts.append(_word(RIGHT - 4, below(plan.error) - 4, asked, anchor="end"))
    parts.append(_word(0, 12, "test error"))
    ends: list[float] = []
    for (name, _, color), found in zip(LEARNERS, errors(plan).values(), strict=True):
        points = [(right(r.theta), below(e)) for r, e in zip(plan.rows, found, strict=True)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2.2"/>')
        ends.append(_free(points[-1][1], ends))
        parts.append(_word(RIGHT + 6, ends[-1] + 4, name, color))
    for row in plan.rows:
        parts.append(
            _word(right(row.theta), HEIGHT - BOTTOM + 18, f"{row.theta:g}", anchor="middle")
        )
    parts.append(_word((LEFT + RIGHT) / 2, HEIGHT - 4, "strength θ", anchor="middle"))
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {HEIGHT}" style="max-width:{WIDTH}px;width:100%" '
        f'aria-label="Test error against the strength of the needle, with {asked}.">'
        f"{''.join(parts)}</svg>"
    )


def _free(y: float, taken: list[float]) -> float:
    """The height for a word, moved up or down where another one stands."""
    for other in taken:
        if abs(y - other) < 14:
            y = other + math.copysign(14, y - other or 1)
    return y


def _rule(y: float, word: str, look: str) -> str:
    line = (
        f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" {look}/>'
    )
    return line + (_word(LEFT - 6, y + 4, word, anchor="end") if word else "")


def _word(x: float, y: float, word: str, color: str = "currentColor", anchor: str = "start") -> str:
    style = f'fill="{color}" text-anchor="{anchor}" font-size="13" font-family="sans-serif"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(word)}</text>'


def letters(plan: Any) -> list[str]:
    """The curves for a terminal; no lines where a plan has less than three strengths."""
    if len(plan.rows) < FEWEST:
        return []
    thetas = [row.theta for row in plan.rows]
    place = lambda error: round((LINES - 1) * down(error))  # noqa: E731
    field = [[" "] * COLUMNS for _ in range(LINES)]
    field[place(plan.error)] = ["-"] * COLUMNS
    for column in range(COLUMNS):
        theta = thetas[0] + (thetas[-1] - thetas[0]) * column / (COLUMNS - 1)
        for (_, letter, _), found in zip(LEARNERS, errors(plan).values(), strict=True):
            if (error := _between(theta, thetas, found)) >= FLOOR:
                field[place(error)][column] = letter
    marks = {place(error): word for error, word in TICKS}
    told = [f"{marks.get(k, ''):>7} |{''.join(line).rstrip()}" for k, line in enumerate(field)]
    ends = f"{thetas[0]:g}", f"{thetas[-1]:g}"
    middle = "strength θ".center(COLUMNS - len(ends[0]) - len(ends[1]))
    key = ", ".join(f"{letter} {name}" for name, letter, _ in LEARNERS)
    asked = f"- {100 * plan.error:.3g} %"
    return [f"test error ({key}, {asked})", *told, " " * 9 + ends[0] + middle + ends[1]]


def _between(theta: float, thetas: list[float], found: list[float]) -> float:
    """The error at a strength, straight in its logarithm between two rows."""
    k = max(i for i in range(len(thetas) - 1) if thetas[i] <= theta)
    share = (theta - thetas[k]) / (thetas[k + 1] - thetas[k])
    ends = [math.log(max(error, 1e-300)) for error in found[k : k + 2]]
    return math.exp((1 - share) * ends[0] + share * ends[1])
