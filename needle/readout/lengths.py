"""Trained at one length, used at another: what to do with the sharpness.

A token at height h above the noise weighs σ(T′h − Λ) in a bag of L′ tokens, Λ = log L′ + T′²/2
below freezing: a head is a rule on the largest token, with a height from which it attends. Rules
of thumb for T′ differ in which height they keep; `dials` asks the exact law.
Chapter 11, prop-11-capture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from ..data.classifiers import attention
from ..data.law import FeatureLaw
from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_choice, check_integer, check_real
from .limit import OrderParameters
from .transfer import Transfer, _applied, _trained

Array = np.ndarray
RULES = ("none", "root", "log", "yarn", "llama4", "capture")


def rescaled(temperature: float, L: float, new: float, *, rule: str = "root") -> float:
    """The sharpness T′ for bags of `new` tokens, of a head trained at length L with sharpness T.

    Parameters
    ----------
    rule : with s = new/L, one of "none" (T), "root" (T√(log L′/log L): the same distance from
        freezing), "log" (T log L′/log L: scalable softmax; also LongRoPE, which scales queries
        *and* keys by √(1 + log s/log L), so that logits get the square), "yarn" (T(1 + 0.1 log
        s)², from s = 1 on), "llama4" (T(1 + 0.1 log(⌊s⌋ + 1))) and "capture" (the height h = log
        L/T + T/2 that captures half of the attention stays what it was, T′ = h − √(h² − 2 log L′),
        at most √(2 log L′); above freezing at least √(2 log L′))

    Examples
    --------
    >>> [round(rescaled(2.0, 20, 400, rule=rule), 2) for rule in RULES]
    [2.0, 2.83, 4.0, 3.38, 2.61, 3.46]
    """
    T, L = check_real("temperature", temperature, 0), check_real("L", L, 2)
    new = check_real("new", new, 2)
    check_choice("rule", rule, RULES)
    growth = math.log(new) / math.log(L)
    if rule in ("none", "root", "log"):
        return T * growth ** {"none": 0.0, "root": 0.5, "log": 1.0}[rule]
    if rule == "yarn":
        return T * (1 + 0.1 * math.log(max(new / L, 1))) ** 2
    if rule == "llama4":
        return T * (1 + 0.1 * math.log(math.floor(new / L) + 1))
    frozen = math.sqrt(2 * math.log(new))
    if 2 * math.log(L) <= T * T:
        return max(T, frozen)
    if T == 0:
        return 0.0
    height = math.log(L) / T + T / 2
    if height <= frozen:
        return frozen
    return 2 * math.log(new) / (height + math.sqrt(height**2 - frozen**2))


def sharpened(
    model: SparseTokens,
    new: int,
    temperature: float,
    cos: float,
    alpha: float,
    lam: float,
    *,
    intercept: str = "keep",
    resolution: int | None = 384,
    bits: int = 12,
) -> dict[str, Transfer]:
    """Errors at length `new` of one head under every rule, and under "best", the best T′.

    The head is trained at length `model.L` (arguments as in `predict_transfer`).

    Examples
    --------
    >>> found = sharpened(SparseTokens(100, 1, 6.0, 0.5), 1600, 1.37, 0.9, 4.0, 0.01)
    >>> {name: round(found[name].test_error, 2) for name in ("none", "root", "capture", "best")}
    {'none': 0.24, 'root': 0.1, 'capture': 0.07, 'best': 0.04}
    """
    found = dials(
        model, new, temperature, cos, alpha, lam, intercept, resolution=resolution, bits=bits
    )
    return {rule: done for rule, (_, done) in found.items()}


def dials(
    model: SparseTokens,
    new: int,
    temperature: float,
    cos: float,
    alpha: float,
    lam: float,
    intercept: str,
    *,
    also: Sequence[float] = (),
    resolution: int | None = 384,
    bits: int = 12,
) -> dict[str, tuple[float, Transfer]]:
    """T′ and what the head does there, under every rule and at the best T′.

    The best of a search, of the rules and of the T′ in `also`.

    With 384 nodes of a cloud of 2¹² points errors are right to a third of a per cent.

    Examples
    --------
    >>> found = dials(SparseTokens(100, 1, 6.0, 0.5), 1600, 1.37, 0.9, 4.0, 0.01, "keep")
    >>> 2.2 < found["best"][0] < 2.4
    True
    """
    at = head_at(
        model, new, temperature, cos, alpha, lam, intercept, resolution=resolution, bits=bits
    )
    sharp = {rule: rescaled(temperature, model.L, new, rule=rule) for rule in RULES}
    found = {rule: (T, at(T)) for rule, T in sharp.items()}
    tried = [_best_of(at, temperature, new), *(check_real("also", T, 0) for T in also)]
    others = [(T, at(T)) for T in tried]
    best = min([*others, *found.values()], key=lambda one: one[1].test_error)
    return found | {"best": best}


def head_at(
    model: SparseTokens,
    new: int,
    temperature: float,
    cos: float,
    alpha: float,
    lam: float,
    intercept: str,
    *,
    resolution: int | None = 384,
    bits: int = 12,
) -> Callable[[float], Transfer]:
    """T′ → what the head trained at (model.L, T) does at (new, T′); arguments of `sharpened`.

    Examples
    --------
    >>> at = head_at(SparseTokens(100, 1, 6.0, 0.5), 1600, 1.37, 0.9, 4.0, 0.01, "keep")
    >>> [round(at(T).test_error, 2) for T in (1.37, 2.3)]
    [0.24, 0.04]
    """
    m = check_model(model)
    longer = SparseTokens(check_integer("new", new, max(m.R, 2)), m.R, m.theta, m.pi)
    T = check_real("temperature", temperature, 0, open_low=True)
    cos, bits = check_real("cos", cos, -1, 1), check_integer("bits", bits, 1)
    resolution = None if resolution is None else check_integer("resolution", resolution, 1)
    law = _law(m, T, cos, resolution, bits)
    order, fine = _order(law, *_checked(alpha, lam)), alpha == math.inf

    def at(sharpness: float) -> Transfer:
        test = _law(longer, float(sharpness), cos, resolution, bits)
        return _applied(order, law, test, fine, intercept)

    return at


def trained_head(
    model: SparseTokens, temperature: float, cos: float, alpha: float, lam: float
) -> OrderParameters:
    """The readout behind attention at (model.L, temperature): its order parameters, kept.

    Examples
    --------
    >>> round(trained_head(SparseTokens(100, 1, 6.0, 0.5), 1.37, 0.9, 4.0, 0.01).nu, 1)
    1.9
    """
    T = check_real("temperature", temperature, 0, open_low=True)
    law = _law(check_model(model), T, check_real("cos", cos, -1, 1), 384, 12)
    return _order(law, *_checked(alpha, lam))


def _checked(alpha: float, lam: float) -> tuple[float, float]:
    """Before they are keys of what is kept."""
    size = alpha if alpha == math.inf else check_real("alpha", alpha, 0, open_low=True)
    return size, check_real("lam", lam, 0)


@lru_cache(maxsize=16)
def _order(law: FeatureLaw, alpha: float, lam: float) -> OrderParameters:
    return _trained(law, alpha, lam, "logistic")


@lru_cache(maxsize=128)  # the same laws are asked about with every intercept
def _law(
    model: SparseTokens, temperature: float, cos: float, resolution: int | None, bits: int
) -> FeatureLaw:
    return attention(model, temperature=temperature, cos=cos, resolution=resolution, bits=bits)


def _best_of(at: Callable[[float], Transfer], temperature: float, new: int) -> float:
    """The T′ of least error, to about a per cent of T′."""
    error = lambda T: math.log(at(float(T)).test_error + 1e-300)  # noqa: E731
    high = max(1.2 * temperature, 1.3 * math.sqrt(2 * math.log(new)))
    grid = np.linspace(0.5 * temperature, high, 24)
    errors = [error(T) for T in grid]
    k = int(np.argmin(errors))
    ends = grid[max(k - 1, 0)], grid[min(k + 1, 23)]
    aimed = float(minimize_scalar(error, bounds=ends, method="bounded", options={"maxiter": 8}).x)
    return min((aimed, float(grid[k])), key=error)


def recipes(
    model: SparseTokens,
    new: int,
    temperature: float,
    cos: float,
    alpha: float,
    lam: float,
    *,
    resolution: int = 384,
) -> dict[str, float]:
    """Test error at length `new` of a head trained at length `model.L`, by what is adjusted.

    Keys: "nothing", "intercept" (the best), "sharpness" (T√(log L′/log L)), "both", "sharpness and
    rate" (intercept set so that P(yes) = π, without labels), "retrained" (the readout, on as many
    bags of the new length).

    Examples
    --------
    >>> found = recipes(SparseTokens(20, 1, 5.0, 0.5), 20, 2.0, 0.9, 2.0, 0.01)
    >>> found["nothing"] == found["sharpness"] == found["retrained"]
    True
    """
    m = check_model(model)
    longer = SparseTokens(check_integer("new", new, m.R), m.R, m.theta, m.pi)
    law = attention(m, temperature=temperature, cos=cos, resolution=resolution)
    same = attention(longer, temperature=temperature, cos=cos, resolution=resolution)
    T = rescaled(temperature, m.L, new)
    sharp = attention(longer, temperature=T, cos=cos, resolution=resolution)
    old = _trained(law, alpha, lam, "logistic")
    new_one = old if new == m.L else _trained(sharp, alpha, lam, "logistic")
    plan = {
        "nothing": (old, same, "keep"),
        "intercept": (old, same, "best"),
        "sharpness": (old, sharp, "keep"),
        "both": (old, sharp, "best"),
        "sharpness and rate": (old, sharp, "rate"),
        "retrained": (new_one, sharp, "keep"),
    }
    fine = alpha == math.inf
    return {
        name: _applied(o, law, test, fine, intercept).test_error
        for name, (o, test, intercept) in plan.items()
    }
