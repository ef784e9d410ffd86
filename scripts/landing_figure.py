"""Draw the figure of the landing page: who sees one needle among ten thousand tokens?

    python -m scripts.landing_figure        writes _static/needle.png

Lines are the test error with the best threshold at each signal strength: a formula for averaging,
2000 bags of noise for the others. Dots are the errors of the same rule on fresh samples of the
model. Attention uses the query √(2 log L) ξ.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.special import softmax

from utils.figures import finish, mark, panels, simulation, theory
from utils.model import SparseTokens
from utils.separation import OracleError, oracle_error, sample_noise

TARGET = Path(__file__).resolve().parent.parent / "_static" / "needle.png"
L = 10_000
TAU = np.sqrt(2 * np.log(L))


def needle(theta: float) -> SparseTokens:
    return SparseTokens(L=L, R=1, theta=theta, pi=0.5)


def measured(
    kind: str, theta: float, rule: OracleError, rng: np.random.Generator
) -> tuple[float, float]:
    """Share of errors among 4000 fresh samples, and its standard error."""
    wrong = []
    for _ in range(4):
        X, y, _ = needle(theta).sample(1000, 1, rng)
        g = X[:, :, 0]
        score, cut = g.mean(axis=1), theta / L / 2
        if kind == "attention":
            score, cut = (softmax(TAU * g, axis=1) * g).sum(axis=1), rule.threshold
        wrong.append((score > cut) != (y > 0))
    share = np.mean(wrong)
    return share, np.sqrt(max(share * (1 - share), 1e-3) / np.size(wrong))


def draw(target: Path) -> None:
    """Compute everything and write the picture."""
    rng = np.random.default_rng(0)
    noise = sample_noise(L, 1, 2000, rng)
    wide, steep = np.geomspace(1, 500, 41), np.append(np.geomspace(1, 10, 65), 500.0)
    curves = {"pooled": (wide, 1, 6), "attention": (steep, 4, 8), "bayes": (steep, 0, 0)}
    labels = {"pooled": "averaging", "attention": "attention", "bayes": "best possible"}
    fig, ax = panels()
    for kind, (grid, first, step) in curves.items():
        τ = TAU if kind == "attention" else None
        rules = [oracle_error(kind, needle(θ), tau=τ, noise=noise) for θ in grid]
        style = {"ls": (0, (1, 1.2)), "zorder": 4} if kind == "bayes" else {}
        theory(ax, grid, [rule.error for rule in rules], model=kind, label=labels[kind], **style)
        if step:
            picks = list(range(first, len(grid), step))
            dots = [measured(kind, grid[i], rules[i], rng) for i in picks]
            values, errors = np.transpose(dots)
            simulation(ax, grid[picks], values, error=errors, model=kind)
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
    fig.savefig(target)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
