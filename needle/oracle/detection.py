"""Detection beyond one needle and beyond Monte Carlo: many needles, and Bayes' error by quadrature.

* **Many needles.** With R = L^{1−β} needles neither the straws nor the needles can be listed one by
  one, but both enter every statistic through sums Σ f(g_ℓ). So a haystack is two bags of noise, and
  the needles of a positive sample are the second bag, shifted by θ.
* **Bayes' error for one needle is an integral.** The likelihood ratio is a mean of L independent
  terms, so its Laplace transform is a power, and E min(πΛ, 1 − π) is one contour integral of it:
  exact at every L, also at L = 10³⁰⁰.

Appendix A, thm-A-dense and thm-A-correction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from ..data.noise import Noise, sample_noise
from ..kit.checks import check_choice, check_integer, check_is, check_real, check_rng
from ..kit.records import ConvergenceError
from .bayes import bayes_risk
from .limit import critical_theta
from .rules import OracleError, averaged, best_threshold, standard_error

ROAMING = 0.2  # Var V/E[optimism²] of `_chosen_error`


def one_needle_bayes_error(L: float, theta: float, pi: float = 0.5, *, points: int = 600) -> float:
    """The Bayes error for one needle among L tokens, by quadrature: no Monte Carlo, any L ≤ 10³⁰⁰.

    With Λ = (1/L) Σ exp(θ g_ℓ − θ²/2), k = (1−π)/π and M(z) = E e^{−zΛ}, a power of one integral,

        error = π E min(Λ, k) = π {k − E(k − Λ)₊},   E(k − Λ)₊ = (1/2πi) ∫ e^{zk} M(z) z⁻² dz

    over a line Re z > 0, on which `points` nodes lie. With the default number that is right to
    about 10⁻⁵. Where the error is not large beside that, or π is small and k large, it is
    integrated under the positives instead (`bayes_risk`, with a seed of its own), good to half a
    per cent.

    >>> [round(one_needle_bayes_error(*at), 3) for at in ((10**4, 4.29), (1e300, 37.17))]
    [0.262, 0.251]
    >>> f"{one_needle_bayes_error(100, 5.0, 1e-6):.2e}"
    '9.13e-07'
    """
    L = check_real("L", L, 2, 1e300)
    theta = check_real("theta", theta, 0, open_low=True)
    pi = check_real("pi", pi, 0, 1, open_low=True, open_high=True)
    points = check_integer("points", points, 2)
    if 0.02 <= pi <= 0.98 and theta < critical_theta(L) + 7:
        error = _contour(L, theta, pi, points)
        if error * points > 0.6:
            return min(error, pi, 1 - pi)
    return bayes_risk(L, 1, theta, pi, np.random.default_rng(0), 20_000).error


def _contour(L: float, theta: float, pi: float, points: int) -> float:
    """π {k − E(k − Λ)₊}."""
    log_L, k = math.log(L), (1 - pi) / pi
    ends = sorted((theta, math.sqrt(2 * log_L)))
    g = np.linspace(ends[0] - 9, ends[1] + 9, 1500)
    weight = np.exp(log_L - g**2 / 2) / math.sqrt(2 * math.pi) * (g[1] - g[0])
    jump = np.exp(np.minimum(theta * g - theta**2 / 2 - log_L, 200.0))
    z = (1.5 + 0.5j * np.arange(points)) / k
    exponent = np.empty(points, complex)
    low = np.searchsorted(jump, 1e-3 / np.abs(z))  # below it e^{−x} − 1 + x ≃ x²/2 − x³/6
    second, third = (np.append(0.0, np.cumsum(weight * jump**n)) for n in (2, 3))
    decay, turn = np.exp(-1.5 / k * jump).astype(complex), np.exp(-0.5j / k * jump)
    for i, (value, n) in enumerate(zip(z, low, strict=True)):  # decay = e^{−zΛ}, turned each time
        near = value**2 / 2 * second[n] - value**3 / 6 * third[n]
        exponent[i] = near + weight[n:] @ (decay[n:] - 1 + value * jump[n:]) - value
        decay *= turn
    if log_L < 30:  # M = (1 + E/L)^L, which tends to e^E
        exponent = L * np.log1p(np.where(np.abs(1 + exponent / L) > 1e-9, exponent / L, -0.999))
    integrand = (np.exp(z * k + exponent) / z**2).real
    return pi * (k - float(np.trapezoid(integrand, z.imag)) / math.pi)


@dataclass(frozen=True)
class Haystack:
    """Bags of L − R straws and bags of R needles without their θ, for each of many trials."""

    straws: Noise
    needles: Noise
    L: int
    R: int


def sample_haystack(L: int, R: int, trials: int, rng: np.random.Generator) -> Haystack:
    """Straws and needles of `trials` samples; the cost grows neither with L nor with R.

    A negative and a positive sample share all noise and differ by θ on the needles.

    >>> bags = sample_haystack(10**12, 10**6, 100, np.random.default_rng(0))
    >>> bags.straws.trials, bags.needles.trials
    (100, 100)
    """
    L, R = check_integer("L", L, 3), check_integer("R", R, 1, L - 1)
    rng = check_rng(rng)
    straws, needles = (sample_noise(n + 1, 1, trials, rng) for n in (L - R, R))
    return Haystack(straws, needles, L, R)


def _ones_and_heights(g: np.ndarray) -> np.ndarray:
    return np.stack([np.ones_like(g), g])


def _attention(bags: Haystack, shift: float, tau: float) -> np.ndarray:
    """Σ softmax(τh) h of each sample, with its needles shifted."""
    far, (mass, moment) = bags.straws.tilted(tau, _ones_and_heights)
    near, (more, height) = bags.needles.tilted(tau, _ones_and_heights)
    near, height = near + tau * shift, height + shift * more
    top = np.maximum(far, near)
    far, near = np.exp(far - top), np.exp(near - top)
    return (far * moment + near * height) / (far * mass + near * more)


def _likelihood(bags: Haystack, shift: float, theta: float) -> np.ndarray:
    """Σ log(1 + (R/L)(e^{θh − θ²/2} − 1)), the log-likelihood ratio of independent tokens."""

    def term(g: np.ndarray, shift: float) -> np.ndarray:
        ratio = np.expm1(theta * (g + shift) - theta**2 / 2)
        return np.log1p(bags.R / bags.L * ratio)[None]

    _, (straws,) = bags.straws.tilted(0.0, partial(term, shift=0.0))
    _, (needles,) = bags.needles.tilted(0.0, partial(term, shift=shift))
    return straws + needles


def haystack_error(
    kind: str,
    theta: float,
    bags: Haystack,
    *,
    tau: float | None = None,
    pi: float = 0.5,
    threshold: float | None = None,
) -> OracleError:
    """Test error of a statistic, at the best threshold unless one is given, with many needles.

    - "attention": Σ softmax(τh) h, at τ = θ unless τ is given;
    - "likelihood": Σ log(1 + (R/L)(e^{θh − θ²/2} − 1)), optimal if every token were a needle with
      probability R/L independently; with exactly R needles next to Bayes.

    Labels are counted: a threshold to be chosen is chosen on one half of the trials and judged on
    the other. The standard error is √(Var(risk)/trials + optimism²/5), without the optimism where
    the threshold is given: each half judges at a threshold that follows the noise of the other, so
    the two are correlated (`_chosen_error`). It is right to a fifth, and up to twice too large
    where the error is next to that of guessing.

    >>> bags = sample_haystack(10**6, 1000, 2000, np.random.default_rng(0))
    >>> [round(haystack_error(kind, 1.75, bags).error, 2) for kind in ("attention", "likelihood")]
    [0.04, 0.02]
    """
    check_choice("kind", kind, ("attention", "likelihood"))
    theta, bags = check_real("theta", theta, 0), check_is("bags", bags, Haystack)
    pi = check_real("pi", pi, 0, 1, open_low=True, open_high=True)
    tau = theta if tau is None else check_real("tau", tau, 0)
    if kind == "attention":
        silent, signal = (_attention(bags, shift, tau) for shift in (0.0, theta))
    else:
        silent, signal = (_likelihood(bags, shift, theta) for shift in (0.0, theta))
    if threshold is not None:
        check_real("threshold", threshold)
        risk = (1 - pi) * (silent > threshold) + pi * (signal <= threshold)
        return averaged(risk, threshold, tau)
    return _chosen_error(silent, signal, pi, tau)


def _chosen_error(silent: np.ndarray, signal: np.ndarray, pi: float, tau: float) -> OracleError:
    """Choose the threshold on one half of the trials, judge on the other, both ways.

    Near the best threshold the share of errors of half i exceeds that at it by Wᵢ, a parabola plus
    two-sided Brownian motion. So the error gains V = {W₁(argmin W₂) + W₂(argmin W₁)}/2, the
    optimism is V − (min W₁ + min W₂)/2, and both scale alike: Var V = 0.2 E[optimism²] whatever the
    parabola and the noise. The spread of the risks does not show V.
    """

    def best(part: slice) -> tuple[float, float]:
        """The threshold with the least share of errors, and that share."""
        scores = np.concatenate([silent[part], signal[part]])
        n = len(scores) // 2
        gain, t = best_threshold(scores, np.repeat([-(1 - pi) / n, pi / n], n))
        return t, 1 - pi + gain

    halves, risk, lowest = (slice(0, None, 2), slice(1, None, 2)), np.empty(len(silent)), 0.0
    for half, other in (halves, halves[::-1]):
        t, least = best(half)
        risk[other] = (1 - pi) * (silent[other] > t) + pi * (signal[other] <= t)
        lowest += least / 2
    error = float(risk.mean())
    optimism = error - lowest
    spread = math.hypot(standard_error(risk), math.sqrt(ROAMING) * optimism)
    return OracleError(error, spread, best(slice(None))[0], tau, optimism)


def haystack_theta(
    kind: str, bags: Haystack, *, error: float = 0.05, tau: float | None = None
) -> tuple[float, float]:
    """The θ at which `haystack_error` is `error` for balanced classes, and its standard error.

    The latter is that of the error divided by its slope between 0.9 θ and 1.1 θ.
    `ConvergenceError` if no θ has this error.

    >>> bags = sample_haystack(10**6, 1000, 1000, np.random.default_rng(0))
    >>> round(haystack_theta("attention", bags)[0], 1)
    1.7
    """
    check_real("error", error, 0, 0.5, open_low=True, open_high=True)

    def at(theta: float) -> OracleError:
        return haystack_error(kind, theta, bags, tau=tau)

    high = 1.0
    while at(high).error > error:
        if high > 1e100:
            raise ConvergenceError(f"no θ brings the error of {kind!r} down to {error}", high)
        high *= 2
    low = high / 64
    while at(low).error <= error:
        if low < 1e-100:
            raise ConvergenceError(f"the error of {kind!r} is below {error} at every θ", low)
        low /= 2
    theta = float(brentq(lambda x: at(x).error - error, low, high, xtol=min(1e-3, low / 15)))
    slope = (at(1.1 * theta).error - at(0.9 * theta).error) / (0.2 * theta)
    return theta, at(theta).standard_error / abs(slope)


def predict_haystack_error(
    L: float, R: float, theta: float, *, tau: float | None = None, pi: float = 0.5
) -> OracleError:
    """The error of attention at τ (θ unless given) where straws and needles both average out.

    In units of the noise of a negative, e^{τ²/2} √((1 + τ²)/L) around τ, negatives are N(0, 1) and
    positives N(Rm, 1 − R/L + R(v − m²)) with

        m = θ e^{τθ − τ²/2} / √(L(1 + τ²)),   v = (1 + (θ + τ)²) e^{2τθ} / (L(1 + τ²)).

    At τ = 0 this is pooling. The straws average out while τ < √(2 log L)/2, the needles while
    τ < √(2 log R)/2. At R = L, where no straw is left, τ = 0 is exact.

    >>> [round(predict_haystack_error(10**12, 10**6, 1.6, tau=tau).error, 3) for tau in (0, 1.0)]
    [0.212, 0.045]
    """
    L, theta = check_real("L", L, 2, 1e300), check_real("theta", theta, 0, 1e4)
    R = check_real("R", R, 1, L)
    pi = check_real("pi", pi, 0, 1, open_low=True, open_high=True)
    tau = theta if tau is None else check_real("tau", tau, 0)
    if tau * max(2 * theta, tau) > 600:
        raise ValueError(
            f"theta = {theta!r} at tau = {tau!r} is not allowed: 2τθ and τ² must be at most 600, "
            "far beyond where needles average out"
        )
    scale = L * (1 + tau**2)
    m = theta * math.exp(tau * theta - tau**2 / 2) / math.sqrt(scale)
    v = (1 + (theta + tau) ** 2) * math.exp(2 * tau * theta) / scale
    s = np.linspace(-9, 9 + R * m, 40_001)
    risk = pi * ndtr((s - R * m) / math.sqrt(1 - R / L + R * (v - m**2))) + (1 - pi) * ndtr(-s)
    i = int(np.argmin(risk))
    t = tau + float(s[i]) * math.exp(tau**2 / 2) * math.sqrt((1 + tau**2) / L)
    return OracleError(float(risk[i]), threshold=t, tau=tau)
