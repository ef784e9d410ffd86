"""Attention's tails on typical bags, the rare token integrated: another road than the contour.

Σ softmax(τh) h exceeds t where Y = Σ y(h_ℓ) > 0, y(h) = (h − t)e^{τh}. Of a false alarm one token
is the tallest, and which one is a matter of chance (Asmussen and Kroese 2006); of a miss one needle
is the last that is looked at:

    P₋(Y > 0) = L E P(y(h₁) > −Y₂ − … − Y_L, h₁ > all others | the others),
    P₊(Y ≤ 0) = E P(y(θ + g) ≤ −the others | the others).

The others are typical straws, and R − 1 needles that are drawn where misses have them: there the
e^{τh} of needles follow Gamma laws around a common height u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, lambertw, log_ndtr, wrightomega

from needle.oracle.straws import LOG_ROOT_2PI, Straws, log_between, sample_straws

Array = np.ndarray
SHARE = 0.5  # of needles, drawn where misses have them


@dataclass(frozen=True)
class Haystacks:
    """Straws (bags); R − 1 tokens of a negative and the noise of R − 1 needles (R − 1, bags).

    Uniforms choose which of two laws needles and straws follow, in `uniform`, and how far along
    the wave of the bulk is moved, in `shift`.
    """

    L: float
    R: int
    theta: float
    pi: float
    straws: Straws
    extra: Array
    noise: Array
    uniform: Array
    wave: Array
    shift: Array
    seed: int


def sample_bags(
    L: float, R: int, theta: float, pi: float, bags: int, rng: np.random.Generator, copies: int = 1
) -> Haystacks:
    """Typical bags; `copies` in a row share their straws."""
    straws = sample_straws(L - R, bags, rng).repeat(copies)
    bags *= copies
    extra, noise = rng.standard_normal((2, R - 1, bags))
    wave, uniform, shift = rng.standard_normal((2, bags)), rng.random((R, bags)), rng.random(bags)
    seed = int(rng.integers(2**63))
    return Haystacks(L, R, theta, pi, straws, extra, noise, uniform, wave, shift, seed)


class Sharp:
    """Bags at one sharpness τ: the error as a function of the threshold t = τ + ε.

    Sums are in units of e^{τ·peak}, peak the tallest straw: D = Σ(g − τ)e^{τg} and S = Σe^{τg}, so
    that Y = D − εS keeps its digits where ε is tiny.
    """

    def __init__(self, bags: Haystacks, tau: float) -> None:
        self.bags, self.tau = bags, tau
        top, others = bags.straws.top, bags.straws.others
        self.peak = top[:, 0]
        weight = np.exp(tau * (top - self.peak[:, None]))
        self.S, self.D = weight.sum(axis=1), (weight * (top - tau)).sum(axis=1)
        self.noise = np.sqrt((weight * weight * (top - tau) ** 2).sum(axis=1)) + 1e-300
        self.wave = np.zeros_like(self.D), np.zeros_like(self.D)
        if others:
            self._add_bulk(top[:, -1], others)
        self.middle = tuple(map(float, np.median([self.D, self.S, self.peak, self.noise], axis=1)))
        self.M = np.maximum(self.peak, np.max(bags.extra, axis=0, initial=-np.inf))

    def _add_bulk(self, cut: Array, n: float) -> None:
        tau, below = self.tau, self.bags.straws.log_below
        mean, mixed, square = [], [], []
        for k in (1, 2):
            x = cut - k * tau
            log_mass = (
                k * k * tau * tau / 2 + log_ndtr(x) - below - k * tau * self.peak + math.log(n)
            )
            hazard = np.exp(-x * x / 2 - log_ndtr(x) - LOG_ROOT_2PI)
            mass, first, second = np.exp(log_mass), -hazard, 1 - x * hazard
            off = (k - 1) * tau  # moments of g − τ from those of g − kτ
            mean.append(mass)
            mixed.append(mass * (first + off))
            square.append(mass * (second + 2 * off * first + off * off))
        DD = np.maximum(square[1] - mixed[0] * (mixed[0] / n), 1e-300)
        DS = mixed[1] - mixed[0] * (mean[0] / n)
        root = np.sqrt(DD)
        SS = np.maximum(mean[1] - mean[0] * (mean[0] / n) - (DS / root) ** 2, 0.0)
        self.wave = root, DS / root  # of D and S, for one standard normal z
        self.D = self.D + mixed[0]
        self.S = self.S + np.maximum(mean[0] + np.sqrt(SS) * self.bags.wave[1], 0.0)
        self.noise = np.hypot(self.noise, self.wave[0])

    def _needles(self, Y: Array, eps: float) -> tuple[Array, Array]:
        """R − 1 needles of a positive bag that is missed, and their log weights.

        Half by the model, half by the Gamma law around the height u at which R needles
        together just balance the straws of the bag.
        """
        bags, theta, tau = self.bags, self.bags.theta, self.tau
        h = bags.noise + theta
        low = Y <= 0
        u = np.full(len(Y), theta)
        with np.errstate(divide="ignore"):
            log_Y = np.log(-Y[low] / bags.R)
        log_z = log_Y + math.log(tau) + tau * (self._ref(eps)[low] - tau - eps)
        u[low] = np.minimum(tau + eps + wrightomega(log_z).real / tau, theta)
        kappa = (theta - u) / tau + 1 / tau**2
        rng = np.random.default_rng(bags.seed)
        log_gamma = np.log(rng.standard_gamma(kappa + 1, h.shape))
        log_gamma += np.log(bags.uniform[1:]) / kappa  # Gamma(κ) = Gamma(κ + 1) U^{1/κ}
        chosen = bags.uniform[0] < SHARE
        with np.errstate(over="ignore"):
            h = np.where(chosen, u + (log_gamma - np.log(kappa)) / tau, h)
            x = tau * (h - u) + np.log(kappa)
            there = (math.log(tau) + kappa * x - np.exp(x) - gammaln(kappa)).sum(axis=0)
            plain = (-((h - theta) ** 2) / 2 - LOG_ROOT_2PI).sum(axis=0)
        return h, plain - np.logaddexp(there + math.log(SHARE), plain + math.log(1 - SHARE))

    def _sum(self, tokens: Array, eps: float) -> Array:
        """Y of the straws and of the tokens (k, bags), without the wave of the bulk."""
        with np.errstate(over="ignore"):
            more = (tokens - self.tau - eps) * np.exp(self.tau * (tokens - self._ref(eps)))
            return (self.D - eps * self.S) * self._scale(eps) + more.sum(axis=0)

    def _ref(self, eps: float) -> Array:
        """The height in whose e^{τ·height} sums of Y are counted: nothing decisive overflows."""
        return np.maximum(self.peak, self.tau + eps)

    def _scale(self, eps: float) -> Array:
        return np.asarray(np.exp(self.tau * (self.peak - self._ref(eps))))

    def _rolled(self, Y: Array, eps: float, side: float) -> tuple[Array, Array]:
        """The wave of the bulk, which a share of bags has large on one side; log weights.

        The normal z is N(0, 1), or shifted by a uniform part of b, where Y + bσ reaches 0.
        """
        sigma = np.maximum(self.wave[0] - eps * self.wave[1], 0.0) * self._scale(eps)
        z = self.bags.wave[0]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            b = np.where(sigma > 0, -side * Y / sigma, 0.0)
        b = np.where((b > 0.5) & (b < 40), b + 1, 0.0)
        far = (self.bags.uniform[0] * 8 % 1 < 0.4) & (b > 0)  # two fifths
        z = np.where(far, z + b * self.bags.shift, z)
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = log_between(z - b, z) - np.log(b) + z * z / 2 + LOG_ROOT_2PI
            weight = np.where(b > 0, -np.logaddexp(math.log(0.6), math.log(0.4) + wide), 0.0)
        return side * sigma * z, weight

    def _edges(self, Y: Array, eps: float) -> tuple[Array, Array]:
        """Between h_a < h_b, one token more leaves Y + y(h) ≤ 0; h_a = h_b = −∞ if nowhere."""
        t = self.tau + eps
        with np.errstate(divide="ignore", invalid="ignore"):
            log_z = np.log(np.abs(Y)) + math.log(self.tau) + self.tau * (self._ref(eps) - t)
            a, b = np.full(len(Y), -np.inf), np.full(len(Y), -np.inf)
            yes = Y <= 0
            b[yes] = t + wrightomega(log_z[yes]).real / self.tau
            both = (Y > 0) & (log_z < -1)
            if both.any():
                z = -np.exp(log_z[both])
                a[both], b[both] = (t + lambertw(z, k).real / self.tau for k in (-1, 0))
        return a, b

    def log_miss(self, eps: float) -> Array:
        """log of estimates of P₊(Y ≤ 0), bag by bag."""
        straws, theta = (self.D - eps * self.S) * self._scale(eps), self.bags.theta
        with np.errstate(over="ignore"):
            needle = (theta - self.tau - eps) * np.exp(self.tau * (theta - self._ref(eps)))
        wave, log_weight = self._rolled(straws + self.bags.R * needle, eps, -1.0)
        Y, h = straws + wave, self.bags.extra
        if self.bags.R > 1:
            h, more = self._needles(Y, eps)
            log_weight = log_weight + more
        a, b = self._edges(wave + self._sum(h, eps), eps)
        with np.errstate(invalid="ignore"):
            inside = log_between(a - theta, b - theta)
            return np.asarray(log_weight + np.where(a == b, -np.inf, inside))

    def log_alarm(self, eps: float) -> Array:
        """log of estimates of P₋(Y > 0), bag by bag."""
        Y = self._sum(self.bags.extra, eps)
        wave, log_weight = self._rolled(Y, eps, 1.0)
        a, b = self._edges(Y + wave, eps)
        value = log_ndtr(-np.maximum(b, self.M))
        low = a > self.M
        if low.any():
            value[low] = np.logaddexp(value[low], log_between(self.M[low], a[low]))
        return np.asarray(log_weight + math.log(self.bags.L) + value)
