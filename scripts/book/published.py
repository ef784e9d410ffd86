"""The pages 'Published numbers' and 'Neighbors': what others computed, beside what we compute.

    python -m scripts.book.published      print the computed parts of both pages

The numbers stand in site/published.toml. The maximum-likelihood equations are solved once more,
by Gauss-Hermite quadrature and a general root finder, to say who is right where two differ.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize, root
from scipy.special import expit, ndtr, softmax

import needle
from needle import (
    gaussian_mixture,
    order_parameters,
    predict_capacity,
    predict_margin,
    predict_readout,
)
from needle.learning import race
from scripts.book.run_notebooks import ROOT

Values = dict[str, float]


@dataclass(frozen=True)
class Number:
    """A published value beside ours."""

    source: str
    setting: str
    quantity: str
    published: float
    ours: float

    @property
    def difference(self) -> float:
        """(ours − published)/published."""
        return self.ours / self.published - 1


def mixture(alpha: float) -> Values:
    """Two Gaussians of variance ½ at ±1, penalty 0.01 in the units of a sum of losses."""
    law, ridge = gaussian_mixture(var_pos=0.5, var_neg=0.5), 0.01 / alpha
    o = order_parameters(law, alpha, ridge, intercept=False)
    r = predict_readout(law, alpha, ridge, intercept=False)
    found = {"test error": r.test_error, "training loss": r.train_loss, "m": r.signal}
    return found | {"q": r.norm**2 / 2, "V": o.chi / 2}


def _fit(kappa: float, gamma: float, offset: float, ridge: float, intercept: bool) -> Values:
    law = needle.teacher(gamma=gamma, offset=offset)
    o = order_parameters(law, 1 / kappa, ridge, intercept=intercept)
    mu, sigma = o.nu / gamma, o.rest / np.sqrt(kappa)
    names = {"μ": mu, "α⋆": mu, "σ": sigma, "σ⋆": sigma, "σ_s": o.rest}
    return names | {"b": o.chi, "λ⋆": o.chi, "ι": o.bias}


MODELS: dict[str, Callable[..., Values]] = {
    "mixture": mixture,
    "likelihood": lambda kappa, square: _fit(kappa, square**0.5, 0.0, 0.0, False),
    "likelihood_intercept": lambda kappa, square, offset: _fit(
        kappa, square**0.5, offset, 0.0, True
    ),
    "ridge": lambda kappa, gamma, ridge: _fit(kappa, gamma, 0.0, ridge, False),
    "transition": lambda gamma: {
        "κ⋆": 1 / predict_capacity(needle.teacher(gamma=gamma), intercept=False)
    },
}


@cache
def entries() -> dict[str, Any]:
    """What stands in site/published.toml."""
    return tomllib.loads((ROOT / "site" / "published.toml").read_text(encoding="utf-8"))


def sources() -> list[dict[str, Any]]:
    """Its sources."""
    found: list[dict[str, Any]] = entries()["source"]
    return found


@cache
def _ours(model: str, *setting: float) -> Values:
    return MODELS[model](*setting)


def numbers(source: dict[str, Any], rows: list[list[float]] | None = None) -> Iterator[Number]:
    """Every published value of a source (or of some of its rows), with ours."""
    columns, given = source["columns"], source["given"]
    for row in source["rows"] if rows is None else rows:
        ours = _ours(source["model"], *row[:given])
        setting = ", ".join(f"{n} = {v:.6g}" for n, v in zip(columns, row[:given], strict=False))
        for quantity, value in zip(columns[given:], row[given:], strict=True):
            yield Number(source["title"], setting, quantity, value, ours[quantity])


@cache
def by_quadrature(kappa: float, gamma: float, offset: float) -> Values:
    """The equations of maximum likelihood {cite}`sur2019,zhao2022`, independently of the library.

    With score Ω = μγZ₁ + √κσZ₂ + ι and u + λℓ'(u; y) = Ω:  E[ℓ'Z₁] = 0, E[ℓ'] = 0,
    λ²E[ℓ'²] = κ²σ² and E[1/(1 + λℓ'')] = 1 − κ.
    """
    z, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()
    z1, z2 = z[:, None], z[None, :]
    yes = expit(gamma * z1 + offset)
    weight = w[:, None] * w[None, :]

    def moments(x: np.ndarray) -> np.ndarray:
        mu, sigma, lam, iota = x
        omega = mu * gamma * z1 + np.sqrt(kappa) * sigma * z2 + iota
        total = np.zeros(4)
        for y, share in ((1, weight * yes), (-1, weight * (1 - yes))):
            u = omega + lam * y * 0.5
            for _ in range(12):  # Newton in a bracket of length λ
                f = u - omega - lam * y * expit(-y * u)
                u = np.clip(u - f / (1 + lam * expit(u) * expit(-u)), omega - lam, omega + lam)
            slope, bend = -y * expit(-y * u), expit(u) * expit(-u)
            parts = (slope * z1, slope, slope**2, 1 / (1 + lam * bend))
            total += [float((share * part).sum()) for part in parts]
        spread = lam**2 * total[2] - (kappa * sigma) ** 2
        return np.array([total[0], total[1], spread, total[3] - 1 + kappa])

    found = root(moments, [1.2, 3.0, 1.5, offset], tol=1e-12)
    if not np.abs(found.fun).max() < 1e-9:
        raise ArithmeticError(f"no root at κ = {kappa}, γ = {gamma}, offset = {offset}")
    mu, sigma, lam, iota = map(float, found.x)
    names = {"μ": mu, "α⋆": mu, "σ": sigma, "σ⋆": sigma, "σ_s": sigma * kappa**0.5}
    return names | {"λ⋆": lam, "b": lam, "ι": iota}


def transition_by_minimum(gamma: float) -> float:
    """κ⋆ = min over t of E(Z − tV)₊², V = ±the score of a logistic model {cite}`candes2020`."""
    z = np.linspace(-10, 10, 4001)  # a trapezoidal rule: the label is steep in z for large γ
    w = np.exp(-(z**2) / 2)
    w, yes = w / w.sum(), expit(gamma * z)

    def repair(t: float) -> float:  # E(Z + a)₊² = (1 + a²)Φ(a) + aφ(a)
        total = 0.0
        for sign, share in ((1, yes), (-1, 1 - yes)):
            a = -t * sign * z
            density = np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi)
            total += float((w * share) @ ((1 + a**2) * ndtr(a) + a * density))
        return total

    return float(minimize(lambda t: repair(t[0]), [1.0], tol=1e-12).fun)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _digits(value: float, like: float) -> str:
    return f"{value:.{max(4, min(10, len(repr(float(like)).split('.')[-1])))}f}"


def published_page() -> str:
    """The tables of the page 'Published numbers', computed."""
    lines: list[str] = []
    shown = 0
    for source in sources():
        rows = source["rows"][:: source.get("every", 1)]
        worst = max(abs(n.difference) for n in numbers(source))
        lines += ["", f"## {source['title']}", ""]
        cites = "{cite}" + f"`{source['cite']}`"
        lines += [f"{cites}; {source['where']}. {source['words']}", ""]
        lines += [_row("setting", "quantity", "published", "ours", "relative difference")]
        lines += [_row("---", "---", "---:", "---:", "---:")]
        for n in numbers(source, rows):
            shown += 1
            values = repr(n.published), _digits(n.ours, n.published)
            lines.append(_row(n.setting, n.quantity, *values, f"{n.difference:+.0e}"))
        count = len(list(numbers(source)))
        lines += ["", f"Largest relative difference of all {count} here: {worst:.0e}."]
    return (
        "\n".join([f"The tables below hold {shown} numbers.", *lines, "", *who_is_right()]) + "\n"
    )


def who_is_right() -> Iterator[str]:
    """Where two differ: a third computation, which shares nothing with either."""
    yield f"(who-is-right)=\n## Who is right?\n\n{entries()['right']}\n"
    yield _row("setting", "quantity", "published", "ours", "independent")
    yield _row("---", "---", "---:", "---:", "---:")
    for source in sources():
        for n, row in zip(numbers(source), _repeated(source), strict=True):
            if source["model"] == "transition":
                independent = transition_by_minimum(*row[:1])
            elif source.get("off"):
                offset = row[2] if source["given"] == 3 else 0.0
                independent = by_quadrature(row[0], row[1] ** 0.5, offset)[n.quantity]
            else:
                continue
            values = repr(n.published), f"{n.ours:.6f}", f"{independent:.6f}"
            yield _row(n.setting, n.quantity, *values)
    yield f"\n{entries()['missing']}"


def _repeated(source: dict[str, Any]) -> Iterator[list[float]]:
    for row in source["rows"]:
        yield from [row] * (len(row) - source["given"])


def regression_risk(L: int, nu: float, n: int = 200_000) -> tuple[float, float]:
    """Bayes risk of single-location regression on drawn tokens, with its standard error."""
    rng = np.random.default_rng([27, L, round(100 * nu)])
    along, across = rng.standard_normal((2, n, L))
    along[:, 0] += np.sqrt(nu)
    p = softmax(np.sqrt(nu) * along, axis=1)
    loss = (across[:, 0] - (p * across).sum(axis=1)) ** 2
    return float(loss.mean()), float(loss.std() / np.sqrt(n))


def section_weight(L: int, x: float, n: int = 20_000) -> tuple[float, float]:
    """Mean weight on the sent place of a section of L, by drawing, with its standard error."""
    rng = np.random.default_rng([28, L, round(100 * x)])
    fields = np.sqrt(x) * rng.standard_normal((n, L))
    fields[:, 0] += x
    weight = softmax(fields, axis=1)[:, 0]
    return float(weight.mean()), float(weight.std() / np.sqrt(n))


def gardner(margin: float) -> float:
    """1/α = ∫ (t + m)² Φ'(t) dt over t > −m, by quadrature."""
    f = lambda t: (t + margin) ** 2 * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)  # noqa: E731
    return float(1 / quad(f, -margin, 12)[0])


def bridges() -> list[tuple[str, float, float, float]]:
    """Bridge and setting, theirs with its standard error (0 for an integral), ours."""
    found = []
    for L, nu in ((2, 5.0), (3, 1.0), (3, 2.0), (10, 6.0)):
        setting = f"L = {L}, ν = {nu:g}"
        found.append((f"regression, {setting}", *regression_risk(L, nu), 1 - race(L, nu)))
    for L, c in ((64, 0.5), (64, 1.0), (512, 0.7), (512, 1.3)):
        x = 2 * c * np.log(L)
        setting = f"L = {L}, x = {c:g}·2 log L"
        found.append((f"code, {setting}", *section_weight(L, x), race(L, x)))
    coin = gaussian_mixture(mean=0.0, var_pos=1.0, var_neg=1.0)
    for alpha in (0.5, 1.0, 1.5):
        margin = predict_margin(coin, alpha, intercept=False).margin
        found.append((f"capacity at the margin {margin:.4f}", gardner(margin), 0.0, alpha))
    return found


def neighbors_page() -> str:
    """The tables of the bridges, computed."""
    lines = [_row("bridge", "theirs, by their definition", "ours", "z or relative difference")]
    lines += [_row("---", "---:", "---:", "---:")]
    for name, theirs, error, ours in bridges():
        miss = f"z = {(theirs - ours) / error:+.1f}" if error else f"{ours / theirs - 1:+.0e}"
        spread = f" ± {error:.4f}" if error else ""
        lines.append(_row(name, f"{theirs:.4f}{spread}", f"{ours:.4f}", miss))
    lines += ["", "The step of a long section, by the same integral:", ""]
    lines += [_row("$x/(2\\log L)$", *(f"$L=10^{{{k}}}$" for k in (2, 6, 12)))]
    lines += [_row("---:", "---:", "---:", "---:")]
    for c in (0.6, 0.8, 1.0, 1.25, 1.6):
        weights = (race(10**k, 2 * c * np.log(10.0**k)) for k in (2, 6, 12))
        lines.append(_row(f"{c:g}", *(f"{weight:.3f}" for weight in weights)))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(published_page(), neighbors_page(), sep="\n")
