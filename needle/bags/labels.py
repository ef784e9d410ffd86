"""Labels of any kind as signs, and none of them missing."""

from __future__ import annotations

import numpy as np

from .arrays import Array


def as_signs(labels: object, n: int, name: str = "y", least: int = 1) -> tuple[Array, Array]:
    """Labels of any kind as −1 and +1, and the two labels; the later in order is the positive one.

    >>> as_signs(["sick", "healthy", "sick"], 3)
    (array([ 1, -1,  1]), array(['healthy', 'sick'], dtype='<U7'))
    >>> as_signs([0, 0, 0], 3)
    Traceback (most recent call last):
    ...
    ValueError: y = 0 throughout is not allowed: y must hold two labels
    """
    y = np.asarray(labels)
    if y.shape != (n,):
        raise ValueError(f"{name} of shape {y.shape} is not allowed: {name} must hold {n} labels")
    check_known(y, name)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 1:
        raise ValueError(
            f"{name} = {classes[0]} throughout is not allowed: {name} must hold two labels"
        )
    if len(classes) > 2:
        raise ValueError(
            f"{name} with the labels {', '.join(map(str, classes[:4]))}"
            f"{', …' * (len(classes) > 4)} is not allowed: {name} must hold two labels"
        )
    few = int(np.bincount(codes).min())
    if few < least:
        raise ValueError(
            f"{name} with {few} of the rarer label is not allowed: {name} must hold at least "
            f"{least} of each"
        )
    return np.where(codes > 0, 1, -1), classes


def check_known(labels: Array, name: str = "y") -> None:
    """Refuse labels of which one is missing: None, or a nan among words."""
    lost = [i for i, label in enumerate(labels.tolist()) if label is None or label != label]
    if lost:
        raise ValueError(
            f"{name}[{lost[0]}] = {labels[lost[0]]} is not allowed: a label is missing"
        )
