"""Compute the curves of the landing page's last moment: what labels buy each learner.

    python -m scripts.book.landing_curves        writes site/static/landing.json

Ten tokens, one needle of strength 5, balanced bags, as in Figure 5.1. Averaging: at its best ridge.
Attention: a quarter of the bags for the two steps of the query, sharpness 2, ridge 0.3. Message
passing: its limit, here the best that any learner can do.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy import stats

from needle import SparseTokens, attention, predict_alignment, predict_learning, predict_readout

TARGET = Path(__file__).resolve().parents[2] / "site" / "static" / "landing.json"
MODEL = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
ALPHAS = [float(f"{alpha:.2g}") for alpha in np.geomspace(0.1, 50, 22)]
SHARE, SHARPNESS, RIDGE = 0.25, 2.0, 0.3


def errors(alpha: float) -> dict[str, float]:
    """The test error of each learner at alpha labeled bags per dimension."""
    half = MODEL.snr / 2
    cosine = predict_alignment(MODEL, SHARE * alpha).query_cos
    law = attention(MODEL, temperature=SHARPNESS, cos=cosine, resolution=240)
    return {
        "pooled": float(stats.norm.cdf(-half / np.sqrt(1 + 1 / (alpha * half**2)))),
        "attention": predict_readout(law, (1 - SHARE) * alpha, RIDGE).test_error,
        "message": predict_learning(MODEL, alpha).test_error,
    }


def curves() -> dict[str, list[float]]:
    rows = [errors(alpha) for alpha in ALPHAS]
    return {"alpha": ALPHAS} | {name: [round(row[name], 5) for row in rows] for name in rows[0]}


if __name__ == "__main__":
    TARGET.write_text(json.dumps(curves()) + "\n", encoding="utf-8")
    print(TARGET.read_text(encoding="utf-8"))
