"""Draw the figure of the landing page: who sees one needle among ten thousand tokens?

    python -m scripts.book.landing_figure        writes site/static/needle.png

Lines are the test error with the best threshold at each signal strength: a formula for averaging,
2000 bags of noise for the others. Dots are the errors of the same rule on fresh samples of the
model. Attention uses the query √(2 log L) ξ.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.special import softmax

from needle.data.noise import Noise, sample_noise
from needle.data.tokens import SparseTokens
from needle.oracle.rules import OracleError
from needle.oracle.separation import oracle_error
from utils.figures import finish, mark, panels, simulation, theory

TARGET = Path(__file__).resolve().parents[2] / "site" / "static" / "needle.png"
L = 10_000
TAU = np.sqrt(2 * np.log(L))
STEEP = np.append(np.geomspace(1, 10, 65), 500.0)
GRIDS = {"pooled": np.geomspace(1, 500, 41), "attention": STEEP, "bayes": STEEP}
DOTS: dict[str, list[int]] = {
    "pooled": list(range(1, 41, 6)),
    "attention": list(range(4, 66, 8)),
    "bayes": [],
}


def needle(theta: float) -> SparseTokens:
    return SparseTokens(L=L, R=1, theta=theta, pi=0.5)


def rules(kind: str, noise: Noise) -> list[OracleError]:
    """The best rule of a kind at each strength of its grid."""
    τ = TAU if kind == "attention" else None
    return [oracle_error(kind, needle(θ), tau=τ, noise=noise) for θ in GRIDS[kind]]


def measured(kind: str, place: int, rule: OracleError) -> tuple[float, float]:
    """Share of errors among 4000 fresh samples, and its standard error; seeded by its place."""
    theta, wrong = GRIDS[kind][place], []
    rng = np.random.default_rng([list(GRIDS).index(kind), place])
    for _ in range(4):
        X, y, _ = needle(theta).sample(1000, 1, rng)
        g = X[:, :, 0]
        score, cut = g.mean(axis=1), theta / L / 2
        if kind == "attention":
            score, cut = (softmax(TAU * g, axis=1) * g).sum(axis=1), rule.threshold
        wrong.append((score > cut) != (y > 0))
    share = np.mean(wrong)
    return share, np.sqrt(max(share * (1 - share), 1e-3) / np.size(wrong))


def compute() -> dict[str, Any]:
    """All numbers of the picture: heights of the lines, and of the dots with standard errors."""
    noise = sample_noise(L, 1, 2000, np.random.default_rng(0))
    numbers: dict[str, Any] = {"lines": {}, "dots": {}}
    for kind in GRIDS:
        found = rules(kind, noise)
        numbers["lines"][kind] = [round(rule.error, 6) for rule in found]
        dots = [measured(kind, i, found[i]) for i in DOTS[kind]]
        numbers["dots"][kind] = [[round(float(x), 6) for x in dot] for dot in dots]
    return numbers


def render(numbers: dict[str, Any], target: Path) -> None:
    """Draw the picture; the numbers travel inside it."""
    labels = {"pooled": "averaging", "attention": "attention", "bayes": "best possible"}
    fig, ax = panels()
    for kind, grid in GRIDS.items():
        style = {"ls": (0, (1, 1.2)), "zorder": 4} if kind == "bayes" else {}
        theory(ax, grid, numbers["lines"][kind], model=kind, label=labels[kind], **style)
        if numbers["dots"][kind]:
            values, errors = np.transpose(numbers["dots"][kind])
            simulation(ax, grid[DOTS[kind]], values, error=errors, model=kind)
    mark(ax, "√(2 log L)", x=TAU, at=0.82)
    mark(ax, "√L", x=np.sqrt(L), at=0.95)
    finish(
        ax,
        x="strength θ of one needle among 10 000 tokens",
        y="test error",
        log="x",
        ylim=(0, 0.53),
        legend=(0.36, 0.3),
    )
    fig.savefig(target, metadata={"Numbers": json.dumps(numbers)})


def stored(picture: Path = TARGET) -> dict[str, Any]:
    """The numbers inside a picture."""
    with Image.open(picture) as image:
        return json.loads(image.text["Numbers"])


if __name__ == "__main__":
    render(compute(), Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
