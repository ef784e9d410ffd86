"""Who wins: pooling, attention behind a query of two gradient steps, or only behind a perfect one.

All three get the same α₀ + α₁ samples per dimension. Pooling spends them on its readout, attention
α₀ on its query and α₁ on its readout; the perfect query is given, its readout has the same α₁.
`predict_contest` is the limit, `simulate_contest` the same record on literal tokens. Attention's
readout is solved on few nodes of its law and judged at all points: a 400-point map takes seconds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from ..data.classifiers import attention, pooled
from ..data.dense import dense_features
from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_flag, check_integer, check_real, check_rng
from ..steps.alignment import predict_alignment, simulate_alignment
from ..steps.rule import step_rule
from .fit import error_rate, fit_readout
from .limit import checked, predict_readout, solve_readout


class Contest(NamedTuple):
    """Test errors of the three, and the cosine of the query that was not given.

    Attributes
    ----------
    pooling, learned, perfect : test errors
    cos : s_q of the learned query
    """

    pooling: float
    learned: float
    perfect: float
    cos: float

    @property
    def winner(self) -> str:
        """Who has the smallest error that can be had.

        "learned" where attention after two steps beats pooling, "perfect" where only attention
        behind a perfect query would, "pooling" where even that loses.
        """
        if self.learned < self.pooling:
            return "learned"
        return "perfect" if self.perfect < self.pooling else "pooling"


def predict_contest(
    model: SparseTokens,
    alpha0: float,
    alpha: float,
    *,
    temperature: float = 2.0,
    lam: float = 0.1,
    loss: str = "logistic",
    lr_w: float = 0.5,
    lr_b: float = 0.5,
    balanced: bool = False,
    cos: float | None = None,
    resolution: int | None = 240,
    bits: int = 12,
) -> Contest:
    """Test errors of pooling, attention after two steps, and attention behind a perfect query.

    The limit of the steps gives the cosine, the five equations the errors. Appendix B, thm-b-query,
    and Appendix C, thm-c-equations.

    Parameters
    ----------
    model : the token model
    alpha0, alpha : samples per dimension for the query (≥ 0) and for attention's readout
    temperature, lam, loss : sharpness T, ridge and loss of the readouts
    lr_w, lr_b, balanced : of the two steps, as in `predict_alignment`
    cos : the cosine of the query where it is not to be learned; needed at alpha0 = 0
    resolution, bits : of the attention law, coarse on purpose: errors above 1 % are right to half a
        per cent of their size, those of 10⁻⁵ to a tenth

    Examples
    --------
    >>> for R in (1, 4, 12):
    ...     task = SparseTokens(L=20, R=R, theta=1.5, pi=0.5)
    ...     found = predict_contest(task, 4.0, 4.0, temperature=1.0)
    ...     print(R, found.winner, *(f"{error:.2f}" for error in found[:3]))
    1 perfect 0.47 0.49 0.44
    4 learned 0.28 0.26 0.24
    12 pooling 0.02 0.07 0.07
    """
    m = check_model(model)
    alpha0, alpha, s = _checked(alpha0, alpha, cos)
    how = _steps(loss, lr_w, lr_b, balanced)
    if s is None:
        s = predict_alignment(m, alpha0, **how).query_cos

    def error(at: float) -> float:
        law = attention(m, temperature=temperature, cos=at, resolution=resolution, bits=bits)
        weights, limit = solve_readout(law, alpha, lam, loss, True, None)
        checked(limit, alpha, lam)
        signal, along, rest = weights.overlaps(law.cos)
        scores = law.limit_scores(signal, along, rest, weights.bias, fine=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            wrong = ndtr(-scores.y * scores.mean / scores.sd)
        return float(scores.weight @ np.nan_to_num(wrong, nan=0.5))

    pooling = predict_readout(pooled(m), alpha0 + alpha, lam, loss=loss).test_error
    return Contest(pooling, error(s), error(1.0), s)


def simulate_contest(
    model: SparseTokens,
    d: int,
    alpha0: float,
    alpha: float,
    rng: np.random.Generator,
    *,
    temperature: float = 2.0,
    lam: float = 0.1,
    loss: str = "logistic",
    lr_w: float = 0.5,
    lr_b: float = 0.5,
    balanced: bool = False,
    cos: float | None = None,
) -> Contest:
    """One trial on literal tokens: both gradient steps, and the softmax of every bag.

    Steps and readouts see different tokens. Test errors are those of the fitted (w, b), by fresh
    coefficients of the law of its features. Appendix B, def-b-steps.

    Examples
    --------
    >>> model, rng = SparseTokens(L=20, R=4, theta=3.0, pi=0.5), np.random.default_rng(0)
    >>> simulate_contest(model, 60, 4.0, 4.0, rng).winner
    'learned'
    """
    m, d, rng = check_model(model), check_integer("d", d, 2), check_rng(rng)
    alpha0, alpha, s = _checked(alpha0, alpha, cos)
    how = _steps(loss, lr_w, lr_b, balanced)
    if s is None:
        s = simulate_alignment(m, d, alpha0, rng, method="dense", **how).query_cos

    def error(samples: float, T: float, at: float) -> float:
        F, y = dense_features(m, max(1, round(samples * d)), d, rng, temperature=T, cos=at)
        fit = fit_readout(F, y, lam, loss=loss)
        law = attention(m, temperature=T, cos=at, resolution=None)
        return error_rate(law, fit.w, fit.b, rng)

    plain = error(alpha0 + alpha, 0.0, 0.0)
    return Contest(plain, error(alpha, temperature, s), error(alpha, temperature, 1.0), s)


def _steps(loss: str, lr_w: float, lr_b: float, balanced: bool) -> dict[str, Any]:
    """The options of the two steps, checked also where no steps are taken."""
    rule = step_rule(loss, lr_w, lr_b)
    check_flag("balanced", balanced)
    return {"loss": loss, "lr_w": rule.lr_w, "lr_b": rule.lr_b, "balanced": balanced}


def _checked(alpha0: float, alpha: float, cos: float | None) -> tuple[float, float, float | None]:
    """Both numbers of samples, and the cosine of a given query, None where it is learned."""
    alpha0, alpha = check_real("alpha0", alpha0, 0), check_real("alpha", alpha, 0, open_low=True)
    if cos is None and alpha0 == 0:
        raise ValueError(
            f"alpha0 = {alpha0} is not allowed: alpha0 must be above 0 where cos is not given"
        )
    return alpha0, alpha, None if cos is None else check_real("cos", cos, -1, 1)
