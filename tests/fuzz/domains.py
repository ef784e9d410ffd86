"""What an argument may be, from one end of its range to the other, and what it may not be."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from hypothesis import strategies as st

from needle import SparseTokens, attention, gaussian_mixture, pooled

NOT_NUMBERS = (math.nan, "3", None, 1j, [1.0])


class Domain(NamedTuple):
    """A strategy for what is allowed, and some of what is not."""

    good: st.SearchStrategy[Any]
    bad: tuple[Any, ...] = ()


def decades(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers of every size between two ends, and the ends."""
    inside = st.floats(math.log10(low), math.log10(high)).map(lambda x: 10.0**x)
    return st.one_of(st.sampled_from([low, 1.0 if low <= 1 <= high else low, high]), inside)


def positive(low: float = 1e-8, high: float = 1e8) -> Domain:
    return Domain(decades(low, high), (0.0, -1.0, math.inf, 10**400, *NOT_NUMBERS))


def whole(low: int, high: int) -> Domain:
    found = decades(max(low, 1), high).map(lambda x: min(max(round(x), low), high))
    return Domain(found, (low - 1, low + 0.5, -math.inf, math.inf, *NOT_NUMBERS))


def chosen(*names: Any) -> Domain:
    return Domain(st.sampled_from(names), ("no such", None, 7))


THETA = Domain(
    st.one_of(st.just(0.0), decades(1e-12, 1e6)), (-1e-300, -1.0, math.inf, 10**400, *NOT_NUMBERS)
)
SHARES = st.one_of(
    st.sampled_from([0.5, 1e-12, 1 - 1e-12, 0.3]), decades(1e-12, 0.5), st.floats(0.01, 0.99)
)
PI = Domain(SHARES, (0.0, 1.0, -0.1, 1.1, math.inf, *NOT_NUMBERS))
COS = Domain(
    st.one_of(st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-1, 1)), (-1.1, 1.1, *NOT_NUMBERS)
)
LOSS = chosen("logistic", "square")
ANY = Domain(
    st.one_of(decades(1e-6, 1e3), decades(1e-6, 1e3).map(lambda x: -x)),
    (math.inf, -math.inf, *NOT_NUMBERS),
)
ALPHA = positive()
FLAG = Domain(st.booleans(), (1, 0.0, "yes", None))


@st.composite
def models(
    draw: st.DrawFn, longest: int = 10**9, needles: int = 10**9, weakest: float = 0.0
) -> SparseTokens:
    """A token model: any length, needles from one to all, any strength and balance."""
    L = draw(whole(2, longest).good)
    R = draw(st.one_of(st.just(1), whole(1, min(L, needles)).good))
    theta = draw(THETA.good if weakest == 0 else decades(weakest, 1e6))
    return SparseTokens(L, R, theta, draw(SHARES))


def model(longest: int = 10**9, needles: int = 10**9, weakest: float = 0.0) -> Domain:
    return Domain(models(longest, needles, weakest), (None, "model", 3.0, (10, 1, 3.0, 0.5)))


KINDS = "pooled", "mixture", "attention"


@st.composite
def laws(
    draw: st.DrawFn, longest: int = 10**6, cos: float | None = None, kinds: tuple[str, ...] = KINDS
) -> Any:
    """A law of features: averages, a mixture, or attention on few points (of this cosine)."""
    kind = draw(st.sampled_from(kinds))
    if kind == "mixture":
        var = st.floats(1e-3, 1e3)
        return gaussian_mixture(
            mean=draw(st.floats(0, 100)), var_pos=draw(var), var_neg=draw(var), pi=draw(SHARES)
        )
    task = draw(models(longest=longest, needles=50))
    if kind == "pooled":
        return pooled(task)
    T = draw(decades(1e-3, 30.0))
    cos = draw(COS.good) if cos is None else cos
    return attention(task, temperature=T, cos=cos, resolution=96, bits=9)


LAW = Domain(laws(), (None, 3.0, "pooled"))
ALIKE = Domain(laws(cos=0.7, kinds=(*KINDS, *4 * KINDS[2:])), LAW.bad)  # mostly of one query
SHORT_LAW = Domain(laws(100), LAW.bad)  # whose tokens can be drawn
HOPS = {  # what two hops are made of
    "L": whole(3, 10**6),
    "m": whole(2, 10**4),
    "theta": Domain(
        st.tuples(*(decades(1e-3, 1e3) for _ in range(3))), ((1.0, 2.0), "x", (1.0, -1.0, 1.0))
    ),
    "kappa": Domain(decades(1e-3, 1e3), (-1.0, math.nan, "3")),
}
