"""The look of the book: lines are theory, dots are simulation, bands are ±1 standard error.

A figure is a sentence in a small grammar::

    fig, ax = panels()
    theory(ax, alphas, errors, model="attention", label="attention")
    simulation(ax, sizes, trials, model="attention")
    finish(ax, x="samples per dimension α", y="test error", log="x")

Every model keeps one color and one line style throughout. Panels are at most 6.8 inches wide with
12-point type, so that a figure shrunk to the width of a telephone can still be read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from needle.kit.checks import check_choice, check_integer

COLORS = {  # of learners, in every figure and explorer; the page knows them as variables
    "vectorized": "#0068a3",
    "pooled": "#007a58",
    "attention": "#c24f00",
    "message": "#4a35d4",
    "bayes": "#1f2430",
    "elementwise": "#6a1f70",
    "noise": "#66727d",
    "signal": "#c24f00",
    "one step": "#c24f00",
    "query given": "#c24f00",
}
LINES = {"one step": "--", "query given": ":"}  # of those that share a color; all others: solid
MANY = 300  # marks, above which a drawing holds them as a picture
STYLE: Any = {
    "figure.dpi": 144,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.labelspacing": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#57606a",
    "text.color": "#1f2430",
    "axes.labelcolor": "#1f2430",
    "xtick.color": "#57606a",
    "ytick.color": "#57606a",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.0,
    "image.cmap": "GnBu",
    "svg.hashsalt": "needle",
    "svg.fonttype": "none",
}
WIDTHS = {1: 5.2, 2: 6.8, 3: 6.8}
DRAWN = os.environ.get("NEEDLE_FIGURES") == "svg"  # where the page gives letters their halo


def halo(color: str = "white") -> Any:
    """A rim around letters, so that they can be read on anything."""
    return [] if DRAWN else [patheffects.withStroke(linewidth=2.5, foreground=color)]


class Drawing(Figure):
    """A figure whose clouds of points stay a picture where all else is drawn as lines and text."""

    def draw(self, renderer: Any) -> None:
        for artist in self.findobj(Line2D):
            if artist.get_marker() not in (None, "None", "") and np.size(artist.get_xdata()) > MANY:
                artist.set_rasterized(True)
        for cloud in self.findobj(PathCollection):
            cloud.set_rasterized(np.size(cloud.get_offsets()) > 2 * MANY)
        super().draw(renderer)


def use_style() -> None:
    """Set the style of the book, as `panels` does. A notebook then shows figures uncropped.

    They are pictures of pixels, except where the book's site is built (NEEDLE_FIGURES=svg).
    """
    mpl.rcParams.update(STYLE)
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        from matplotlib_inline.config import InlineBackend

        inline: Any = InlineBackend.instance()
        inline.print_figure_kwargs = {"bbox_inches": None}
        if DRAWN:
            inline.figure_formats = {"svg"}


def color_of(model: str | None) -> str:
    """The color of a model; None is the neutral ink of things that belong to no model."""
    return COLORS["bayes"] if model is None else COLORS[check_choice("model", model, COLORS)]


def shades(model: str | None, count: int) -> list[tuple[float, float, float]]:
    """`count` tones of a model's color from light to full, for a family of curves."""
    full = np.array(to_rgb(color_of(model)))
    strength = np.linspace(1 if check_integer("count", count, 1) == 1 else 0.4, 1, count)
    return [tuple(1 - share * (1 - full)) for share in strength]


def panels(
    rows: int = 1, cols: int = 1, *, height: float | None = None, share: str = "", **kwargs: Any
) -> tuple[Figure, Any]:
    """A figure and its axes (one Axes, or an array of them); `height` in inches is one row's.

    `share` may hold "x" and "y"; panels beside each other should be few, since they shrink.
    """
    rows, cols = check_integer("rows", rows, 1), check_integer("cols", cols, 1, 3)
    use_style()
    height = height or (3.2 if rows * cols == 1 else 2.7)
    size = (WIDTHS[cols], height * rows)
    shared: Any = {"sharex": "x" in share, "sharey": "y" in share}
    return plt.subplots(rows, cols, figsize=size, FigureClass=Drawing, **shared, **kwargs)


def theory(
    ax: Axes, x: Any, y: Any, *, model: str | None = None, label: str | None = None, **kwargs: Any
) -> None:
    """A prediction: a line, in the color and style of its model."""
    style = {} if {"ls", "linestyle"} & set(kwargs) else {"ls": LINES.get(model or "", "-")}
    ax.plot(x, y, **{"color": color_of(model), "label": label, **style, **kwargs})


def simulation(
    ax: Axes,
    x: Any,
    values: Any,
    *,
    error: Any = None,
    model: str | None = None,
    label: str | None = None,
    **kwargs: Any,
) -> None:
    """Measurements: dots at the means with bars of ±1 standard error.

    `values` holds one sequence of trials for each x or, as `utils.results` stores them, one
    estimate with its standard error; or the means themselves with their `error`.
    """
    if error is None:
        values, error = mean_and_error(values)
    style = {"fmt": "o", "ms": 5, "mew": 0.8, "mec": "white", "elinewidth": 1.4, "zorder": 3}
    ax.errorbar(x, values, error, **{"color": color_of(model), "label": label, **style, **kwargs})


def mean_and_error(trials: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of each sequence of trials, or of each stored estimate.

    >>> mean_and_error([[1.0, 3.0], [2.0, 2.0, 2.0]])
    (array([2., 2.]), array([1., 0.]))
    """
    if all(hasattr(group, "standard_error") for group in trials):
        error = [group.standard_error for group in trials]
        return np.array([float(group) for group in trials]), np.array(error)
    samples = [np.asarray(group, dtype=float) for group in trials]
    if any(group.ndim != 1 or len(group) < 2 for group in samples):
        raise ValueError(
            f"values of shapes {[group.shape for group in samples]} are not allowed: "
            "values must be at least 2 trials for each x, or means with their `error`"
        )
    error = [group.std(ddof=1) / np.sqrt(len(group)) for group in samples]
    return np.array([group.mean() for group in samples]), np.array(error)


def mark(
    ax: Axes,
    text: str = "",
    *,
    x: float | None = None,
    y: float | None = None,
    at: float = 0.96,
    model: str | None = None,
    **kwargs: Any,
) -> None:
    """A thin dashed line at x or at y, named `text` at the share `at` of its length."""
    color = kwargs.pop("color", color_of(model))
    style = {"color": color, "lw": 1.2, "ls": (0, (4, 3)), "zorder": 1.5, **kwargs}
    words: dict[str, Any] = {"color": color, "fontsize": 11, "path_effects": halo()}
    if x is not None:
        ax.axvline(x, **style)
        place, words["va"] = ((x, at), ax.get_xaxis_transform()), "top" if at > 0.5 else "bottom"
        ax.annotate(text, place[0], (4, 0), xycoords=place[1], textcoords="offset points", **words)
    if y is not None:
        ax.axhline(y, **style)
        words["ha"] = "right" if at > 0.5 else "left"
        place = ((at, y), ax.get_yaxis_transform())
        ax.annotate(text, place[0], (0, 3), xycoords=place[1], textcoords="offset points", **words)


def finish(
    ax: Axes,
    *,
    x: str = "",
    y: str = "",
    title: str = "",
    log: str = "",
    xlim: Any = None,
    ylim: Any = None,
    legend: Any = None,
) -> None:
    """Names, scales and limits of the axes, and the labels of the curves.

    `log` may hold "x" and "y". `legend` is a place ("upper right"), "direct" to write each label
    at the right end of its line, False for none; by default the best place if anything is labeled.
    """
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")
    ax.set(xlabel=x, ylabel=y, title=title)
    if xlim is not None:
        ax.set_xlim(xlim)
    if ylim is not None:
        ax.set_ylim(ylim)
    place = ax.get_subplotspec()
    if place and not place.is_last_row() and len(ax.get_shared_x_axes().get_siblings(ax)) > 1:
        ax.set_xlabel("")
    if place and not place.is_first_col() and len(ax.get_shared_y_axes().get_siblings(ax)) > 1:
        ax.set_ylabel("")
    _plain_log_ticks(ax)
    if legend == "direct":
        _label_ends(ax)
    elif legend is not False and ax.get_legend_handles_labels()[0]:
        ax.legend(loc=legend or "best")


def _plain_log_ticks(ax: Axes) -> None:
    """On logarithmic axes write 0.1, 1, 10 and not powers; on short ones also 2 and 5."""
    for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() != "log":
            continue
        low, high = np.log10(np.sort(limits))
        axis.set_minor_formatter(NullFormatter())
        if high - low < 1.7:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        if low >= -4 and high <= 5.5:
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _label_ends(ax: Axes) -> None:
    """Write each line's label beside its right end, kept a line of type apart."""
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    low, high = sorted(ax.get_xlim())
    ends: list[Any] = []
    for line in ax.get_lines():
        points = np.asarray(line.get_xydata(), dtype=float)
        points = points[(points[:, 0] >= low) & (points[:, 0] <= high) & np.isfinite(points[:, 1])]
        if len(points) and not str(line.get_label()).startswith("_"):
            ends.append((ax.transData.transform(points[-1])[1], tuple(points[-1]), line))
    pixels_per_point, height = ax.figure.dpi / 72, -np.inf
    for pixel, point, line in sorted(ends, key=lambda end: end[0]):
        height = max(pixel, height + 14 * pixels_per_point)
        tone: Any = np.array(to_rgb(line.get_color()))
        tone *= min(1, 0.5 / max(tone @ [0.3, 0.59, 0.11], 0.01))  # dark enough to read
        words: Any = {"color": tone, "va": "center", "fontsize": 11}
        place = (5, (height - pixel) / pixels_per_point)
        ax.annotate(line.get_label(), point, place, textcoords="offset points", **words)
