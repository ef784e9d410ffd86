"""Who finds the needle in bags of L tokens of width 100: every learner on literal tokens."""

from __future__ import annotations

import numpy as np

from needle.data.tokens import SparseTokens
from needle.learning import bayes_error, simulate_learning
from needle.oracle.longest import longest_token_error
from needle.steps.rule import two_steps

D = 100  # width of a token, and bags to learn from
PART = 2**22  # entries of tokens drawn at once


def error_of(learner: str, L: int, theta: float, rng: np.random.Generator) -> dict[str, float]:
    """Test error of one run on 100 literal bags, and whether it is below 5 %.

    "longest": the rule on the largest norm, on 200 bags; "two steps" (η_b = 4): Bayes' rule along
    their query; "message passing", also with "norms" and from the "truth" (with norms).
    """
    model = SparseTokens(L, 1, theta, 0.5)
    if learner == "longest":
        error = _longest(model, rng)
    elif learner == "two steps":
        X, y, _ = model.sample(D, D, rng)
        q = two_steps(X, y, lr_b=4.0).q
        error = float(bayes_error(model, theta * max(q[0] / np.linalg.norm(q), 0.0)))
    else:
        norms, informed = learner != "message passing", learner == "truth"
        found = simulate_learning(
            model, D, 1.0, rng, norms=norms, informed=informed, fresh=max(400_000, 1000 * L)
        )
        error = found.test_error
    return {"error": error, "found": float(error < 0.05)}


def _longest(model: SparseTokens, rng: np.random.Generator, bags: int = 200) -> float:
    level, wrong = longest_token_error(model, D).threshold, 0
    step = max(1, PART // (model.L * D))
    for start in range(0, bags, step):
        X, y, _ = model.sample(min(step, bags - start), D, rng)
        yes = (X**2).sum(axis=2).max(axis=1) > level
        wrong += int((yes != (y > 0)).sum())
    return wrong / bags
