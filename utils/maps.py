"""Maps of a function of two variables, and numbers on them that can be read."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Normalize, TwoSlopeNorm, to_rgb

from .figures import COLORS, halo


def heat(
    ax: Axes,
    x: Any,
    y: Any,
    z: Any,
    *,
    label: str = "",
    levels: Any = None,
    center: float | None = None,
    pattern: str = "%.3g",
    **kwargs: Any,
) -> None:
    """A map of z (len(y), len(x)) with a color bar and labeled contour lines at `levels`.

    With `center` the colors diverge from that value: orange above, violet below.
    """
    z = np.asarray(z, dtype=float)
    norm: Normalize | None = None
    if center is not None:
        reach = np.nanmax(np.abs(z - center)) or 1.0
        norm = TwoSlopeNorm(center, center - reach, center + reach)
        kwargs.setdefault("cmap", "PuOr_r")
    image = ax.pcolormesh(
        x, y, z, **{"shading": "nearest", "norm": norm, "rasterized": True, **kwargs}
    )
    ax.figure.colorbar(image, ax=ax, label=label, pad=0.02)
    ax.grid(False)
    if levels is not None:
        lines = ax.contour(x, y, z, levels=levels, colors="#1f2430", linewidths=1.2)
        for text in ax.clabel(lines, fmt=pattern, fontsize=11):
            text.set_path_effects(halo())


def number(
    ax: Axes, text: str, x: float, y: float, *, offset: tuple[float, float] = (6, 5), **kwargs: Any
) -> None:
    """Write a number beside a point of a map, in dark or white letters: which can be read there."""
    ground = below(ax, x, y)
    letters, rim = sorted((COLORS["bayes"], "white"), key=lambda color: -contrast(ground, color))
    style: Any = {"color": letters, "path_effects": halo(rim), "fontsize": 11, **kwargs}
    ax.annotate(text, (x, y), offset, textcoords="offset points", **style)


def below(ax: Axes, x: float, y: float) -> Any:
    """The color of the map of these axes at a point; white where there is none."""
    for mesh in ax.collections:
        if isinstance(mesh, QuadMesh):
            corners: Any = mesh.get_coordinates()
            colors: Any = mesh.cmap(mesh.norm(np.asarray(mesh.get_array())))
            column = np.clip(np.searchsorted(corners[0, :, 0], x) - 1, 0, colors.shape[1] - 1)
            row = np.clip(np.searchsorted(corners[:, 0, 1], y) - 1, 0, colors.shape[0] - 1)
            return tuple(colors[row, column, :3])
    return "white"


def contrast(one: Any, other: Any) -> float:
    """How much lighter one color is than another, as the guidelines for web content count.

    >>> round(contrast("white", "black"), 1)
    21.0
    """
    light = []
    for color in (one, other):
        parts = np.array(to_rgb(color))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        light.append(float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05)
    return max(light) / min(light)
