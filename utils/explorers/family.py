"""A figure that moves without a kernel: curves at every stop of one or two sliders.

The cell computes them all, they stand in its output, and the page draws them in the frame of the
explorers. Without scripts, and in Jupyter, the curves of the start stand there as a picture.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from needle.kit.checks import check_choice

from ..figures import COLORS, LINES
from .still import picture

MOST = 16_000  # numbers, of which a page carries some five letters each
SAME = dict.fromkeys(("signal", "one step", "query given"), "attention")  # names of one color
DASHES = {"--": "5 4", ":": "1 4"}


class Movable:
    """What `movable` returns: the last line of a cell shows it."""

    def __init__(self, name: str, held: dict[str, Any]) -> None:
        self.name, self.held = name, held

    def __repr__(self) -> str:
        return f"movable({self.name!r})"

    def _repr_html_(self) -> str:
        held = json.dumps(self.held, ensure_ascii=False, separators=(",", ":"))
        kept = html.escape(held, quote=False).replace("'", "&#39;")
        place = f'data-explorer="family-{self.name}" id="explorer-family-{self.name}"'
        return f"<div class=\"explorer\" {place} data-family='{kept}'>{picture(self.held)}</div>"


def movable(
    name: str,
    curves: Callable[..., Mapping[str, Any]],
    *,
    title: str,
    sliders: Sequence[tuple[str, str, Sequence[float]]],
    x: tuple[str, Sequence[float]],
    y: str,
    log: str = "",
    start: Sequence[float] | None = None,
    models: Mapping[str, str] | None = None,
    dots: Sequence[str] = (),
    say: Callable[..., str] | None = None,
    ylim: tuple[float, float] | None = None,
) -> Movable:
    """A figure whose curves follow one or two sliders; alive on the page, without a kernel.

    Parameters
    ----------
    name : one word, for addresses
    curves : function of the sliders' values: for each name of a curve its heights over x; or a
        pair (xs, ys); or one number, an upright line there
    title : what the figure asks
    sliders : for each its letter ("α_0" has an index), what it is, and its stops
    x, y : what the axes show, and the places on the first
    log : may hold "x" and "y"
    start : stops at which the sliders begin; by default those in the middle
    models : the learner of a curve, where that is not its name, for color and line style
    dots : names of curves that are drawn as dots
    say : function of the sliders' values: a sentence that says what there is to see
    ylim : ends of the upright axis

    Examples
    --------
    >>> rise = lambda δ: {"pooled": [δ, 2 * δ]}
    >>> movable("rise", rise, title="?", sliders=[("δ", "slope", (1, 2))], x=("α", (1, 2)), y="h")
    movable('rise')
    """
    if not name.isalnum() or len(sliders) not in (1, 2):
        raise ValueError(
            f"name = {name!r} with {len(sliders)} sliders is not allowed: "
            "name must be one word, and sliders one or two"
        )
    stops = [[plain(value) for value in values] for *_, values in sliders]
    begin = [s[len(s) // 2] for s in stops] if start is None else [plain(v) for v in start]
    if any(value not in allowed for value, allowed in zip(begin, stops, strict=True)):
        raise ValueError(f"start = {begin} is not allowed: start must be stops of {stops}")
    points = list(product(*stops))
    rows = [{n: shape(n, c, len(x[1])) for n, c in curves(*point).items()} for point in points]
    names, learner = list(rows[0]), {name: name for name in COLORS} | dict(models or {})
    kinds = [check_choice("models", learner.get(n, "bayes"), tuple(COLORS)) for n in names]
    heights = [v for row in rows for curve in row.values() for v in curve.get("y", ())]
    if any(list(row) != names for row in rows) or len(heights) > MOST:
        raise ValueError(
            f"curves {names} of {len(heights)} numbers are not allowed: "
            f"curves must have the same names at every stop, and at most {MOST} numbers in all"
        )
    ends = {"x": (min(x[1]), max(x[1])), "y": ylim or reach(heights, "y" in log)}
    spec: dict[str, Any] = {
        "name": f"family-{name}",
        "title": title,
        "sliders": [
            {"name": f"s{k}", "symbol": symbol, "label": label, "stops": stops[k]}
            for k, (symbol, label, _) in enumerate(sliders)
        ],
        "start": {f"s{k}": value for k, value in enumerate(begin)},
        "axes": {
            side: {"label": label, "domain": [plain(end) for end in ends[side]], "log": side in log}
            for side, label in (("x", x[0]), ("y", y))
        },
        "curves": [
            {"name": n, "color": SAME.get(k, k), "dash": DASHES.get(LINES.get(k, "")), "dots": d}
            for n, k, d in zip(names, kinds, (n in dots for n in names), strict=True)
        ],
    }
    data = {
        "x": [plain(v) for v in x[1]],
        "rows": [list(row.values()) for row in rows],
        "said": [say(*point) for point in points] if say else None,
        "sliders": spec["sliders"],
    }
    return Movable(name, {"spec": spec, "data": data})


def plain(value: Any) -> float | None:
    """A number to four figures, whole where it is; None for what is not finite.

    >>> plain(0.123456), plain(3.0), plain(float("nan"))
    (0.1235, 3, None)
    """
    number = float(f"{float(value):.4g}")
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def shape(name: str, curve: Any, length: int) -> dict[str, Any]:
    """A curve as a page reads it: heights, with places if they are its own; or one place."""
    if not hasattr(curve, "__len__"):
        return {"at": plain(curve)}
    xs, ys = curve if isinstance(curve, tuple) else (None, curve)
    if len(ys) != (length if xs is None else len(xs)):
        raise ValueError(
            f"curve {name!r} with {len(ys)} heights is not allowed: it must have one for each x"
        )
    found = {"y": [plain(v) for v in ys]}
    return found if xs is None else {"x": [plain(v) for v in xs], **found}


def reach(heights: Sequence[float | None], log: bool) -> tuple[float, float]:
    """The ends of an axis on which all heights have room; zero is on it.

    >>> reach([0.0, 2.0, None], False), reach([0.003, 0.5], True)
    ((0.0, 2.1), (0.001, 1.0))
    """
    known = [v for v in heights if v is not None and (v > 0 or not log)]
    low, high = min(known), max(known)
    if log:
        return 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
    return min(0.0, round(1.05 * low, 6)), max(0.0, round(1.05 * high, 6))
