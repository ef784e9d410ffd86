"""Argument checks: every refusal names the argument, its value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np


def check_integer(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return `value` as an int in [low, high], or raise a ValueError that says what is allowed.

    >>> check_integer("L", 10, 2)
    10
    >>> check_integer("R", 12, 1, 10)
    Traceback (most recent call last):
    ...
    ValueError: R = 12 is not allowed: R must be an integer in [1, 10]
    """
    allowed = f"an integer in [{low}, {high}]" if high is not None else f"an integer ≥ {low}"
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError, ValueError):  # int(inf), int(nan)
            number = int(value)  # type: ignore[call-overload]
            if number == value and number >= low and (high is None or number <= high):
                return number
    raise ValueError(f"{name} = {value!r} is not allowed: {name} must be {allowed}")


def check_real(
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return `value` as a finite float in the interval from `low` to `high`, or raise.

    >>> check_real("pi", 0.5, 0, 1, open_low=True, open_high=True)
    0.5
    >>> check_real("lam", -1, 0)
    Traceback (most recent call last):
    ...
    ValueError: lam = -1 is not allowed: lam must be a finite number in [0, inf)
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            number = float(value)
            above = number > low if open_low else number >= low
            below = number < high if open_high else number <= high
            if above and below and math.isfinite(number):
                return number
    left = "(" if open_low or low == -math.inf else "["
    right = ")" if open_high or high == math.inf else "]"
    interval = f"a finite number in {left}{low:g}, {high:g}{right}"
    raise ValueError(f"{name} = {value!r} is not allowed: {name} must be {interval}")


def check_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`, or raise.

    >>> check_choice("loss", "hinge", ["logistic", "square"])
    Traceback (most recent call last):
    ...
    ValueError: loss = 'hinge' is not allowed: loss must be one of 'logistic', 'square'
    """
    options = list(choices)
    if isinstance(value, str) and value in options:
        return value
    allowed = ", ".join(map(repr, options))
    raise ValueError(f"{name} = {value!r} is not allowed: {name} must be one of {allowed}")


def check_is(name: str, value: Any, kind: Any, allowed: str = "") -> Any:
    """Return `value` if it is an instance of `kind` (a class or a union), or raise.

    >>> check_is("intercept", "no", bool, "True or False")
    Traceback (most recent call last):
    ...
    ValueError: intercept = 'no' is not allowed: intercept must be True or False
    """
    if isinstance(value, kind):
        return value
    raise ValueError(
        f"{name} = {value!r} is not allowed: {name} must be {allowed or 'a ' + kind.__name__}"
    )


def check_flag(name: str, value: object) -> bool:
    """Return `value` as a bool if it is one (of Python or numpy), or raise."""
    plain = bool(value) if isinstance(value, np.bool_) else value
    return check_is(name, plain, bool, "True or False")


def refuse_mask(name: str, value: object) -> None:
    """Raise if `value` hides numbers behind a mask, which NumPy's functions would uncover."""
    if np.ma.is_masked(value):
        raise ValueError(
            f"{name} with masked numbers is not allowed: {name} must be without a mask, for "
            "example .compressed()"
        )


def check_array(name: str, value: object, *shape: int | str) -> np.ndarray:
    """Return `value` as finite floats of that shape, in which a letter stands for any length ≥ 1.

    >>> check_array("w", [1, 2], "p")
    array([1., 2.])
    >>> check_array("F", np.zeros((0, 3)), "n", 3)
    Traceback (most recent call last):
    ...
    ValueError: F of shape (0, 3) is not allowed: F must be finite numbers of shape (n, 3)
    """
    refuse_mask(name, value)
    shown: tuple[int, ...] = ()
    with suppress(TypeError, ValueError):  # ragged
        array = np.asarray(value)
        shown = array.shape
        fits = array.ndim == len(shape) and all(
            length == wanted or (isinstance(wanted, str) and length > 0)
            for length, wanted in zip(array.shape, shape, strict=True)
        )
        if fits and array.dtype.kind in "iuf" and np.isfinite([array.min(), array.max()]).all():
            return np.asarray(array, dtype=float)
    wanted = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
    given = f" of shape {shown}" if shown else f" = {value!r}"  # printing a large array is slow
    raise ValueError(
        f"{name}{given} is not allowed: {name} must be finite numbers of shape {wanted}"
    )


def check_labels(name: str, value: object, *shape: int | str) -> np.ndarray:
    """Return `value` as labels −1 or +1 (floats) of that shape, or raise."""
    with suppress(ValueError):
        labels = check_array(name, value, *shape)
        if (np.abs(labels) == 1).all():
            return labels
    size = f"{shape[0]} " if shape and isinstance(shape[0], int) else ""
    given = f" of shape {np.shape(value)}" if isinstance(value, np.ndarray) else f" = {value!r}"
    raise ValueError(f"{name}{given} is not allowed: {name} must be {size}labels -1 or +1")


def check_rng(rng: object) -> np.random.Generator:
    """Return `rng` if it is a numpy Generator, or raise: randomness is always explicit."""
    allowed = "a numpy.random.Generator, for example numpy.random.default_rng(0)"
    return check_is("rng", rng, np.random.Generator, allowed)
