"""Keys and values, several queries: closed forms against literal tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.oracle.keys import queries_error, span_cosine2, value_cosine
from needle.oracle.rules import largest_token
from utils.results import stored


def gap(found: dict, key: str = "value") -> tuple[float, float]:
    """Mean and standard error extrapolated from d = 50 and 100, of order 1/d."""
    one, two = (found[d][key] for d in (50, 100))
    return 2 * float(two) - float(one), math.hypot(2 * two.standard_error, one.standard_error)


def test_one_query_and_one_direction_is_the_largest_token():
    for L, theta in ((10, 3.0), (1000, 5.0)):
        one = largest_token(SparseTokens(L, 1, theta, 0.3))
        assert float(queries_error(L, theta, 1, 1, 0.3)) == pytest.approx(float(one), rel=1e-6)
    assert float(queries_error(50, 0.0, 4, 2, 0.2)) == pytest.approx(0.2, abs=1e-6)


@pytest.mark.false_alarm(6e-5)
@pytest.mark.parametrize(("K", "H"), [(4, 1), (5, 2), (8, 8)])
def test_queries_on_tokens(K, H):
    """Projections drawn, threshold as computed; not that of a query a tenth weaker."""
    L, theta, n, rng = 60, 6.0, 20_000, np.random.default_rng(1)
    rule = queries_error(L, theta, K, H)
    sizes = [len(part) for part in np.array_split(np.arange(K), H)]
    best = rng.standard_normal((2, n, H * L)).max(axis=2)
    height = np.repeat(theta / np.sqrt(sizes), sizes)[rng.integers(K, size=n)]
    best[0] = np.maximum(best[0], height + rng.standard_normal(n))
    seen = 0.5 * np.mean(best[0] <= rule.threshold) + 0.5 * np.mean(best[1] > rule.threshold)
    se = math.sqrt(float(rule) / (2 * n))
    assert abs(seen - float(rule)) < 4 * se + 0.01 * float(rule)
    assert abs(seen - float(queries_error(L, 0.95 * theta, K, H))) > 4 * se


def test_no_query_sees_more_than_its_share():
    """Σ_k |Pξ_k|² ≤ H for any H queries; equality for sums over shares."""
    rng = np.random.default_rng(2)
    for H in (1, 3, 6):
        q = np.linalg.qr(rng.standard_normal((12, H)))[0].T
        assert ((q[:, :8]) ** 2).sum() <= H + 1e-9
    q = np.kron(np.eye(4), np.ones((1, 2)) / math.sqrt(2))
    assert (q**2).sum() == pytest.approx(4)


def test_span_has_the_threshold():
    model = SparseTokens(30, 1, 5.0, 0.5)
    edge = 2 * 30 * 9 / 5.0**4
    assert span_cosine2(model, 3, 0.99 * edge) == 0.0
    assert 0 < span_cosine2(model, 3, 1.02 * edge) < 0.05
    with pytest.raises(ValueError, match=r"^R = 2 is not allowed"):
        span_cosine2(SparseTokens(30, 2, 5.0, 0.5), 3, 1.0)


def scores(weaker: float) -> dict[tuple, float]:
    """z-scores of stored literal tokens against the formulas at a strength θ·weaker."""
    table, found = stored("keys_values"), {}
    for point in table.points:
        if point["d"] == 100:
            rest = {k: point[k] for k in ("L", "theta", "alpha")}
            seen, se = gap({d: table.only(**rest, d=d) for d in (50, 100)})
            theta = weaker * rest["theta"]
            found["values", *rest.values()] = (
                seen - value_cosine(rest["L"], theta, theta, rest["alpha"])
            ) / se
    table = stored("keys_span")
    for point in table.points:
        if point["d"] == 100:
            rest = {k: point[k] for k in ("K", "L", "theta")}
            model = SparseTokens(rest["L"], 1, weaker * rest["theta"], 0.5)
            if span_cosine2(SparseTokens(rest["L"], 1, rest["theta"], 0.5), rest["K"], 4.0) > 0.3:
                seen, se = gap({d: table.only(**rest, d=d) for d in (50, 100)})
                found["span", *rest.values()] = (seen - span_cosine2(model, rest["K"], 4.0)) / se
    return found


@pytest.mark.false_alarm(6.2e-4)
def test_stored_runs_follow_the_formulas() -> None:
    """At 12 settings of keys and values and where the span is found; not 5 % of θ away."""
    found = scores(1.0)
    assert len(found) >= 18
    assert max(map(abs, found.values())) < 4.2, found
    assert max(map(abs, scores(0.95).values())) > 6.5


@pytest.mark.false_alarm(2.7e-4)
def test_stored_queries_err_as_computed() -> None:
    """Literal projections at 24 settings, and not those of needles 5 % weaker."""
    table, worst = stored("keys_queries"), 0.0
    for point, found in zip(table.points, table.estimates, strict=True):
        K, H, L, theta = (point[k] for k in ("K", "H", "L", "theta"))
        claimed, seen = float(queries_error(L, theta, K, H)), found["value"]
        se = math.sqrt(claimed * (1 - claimed) / 16_000)
        assert abs(float(seen) - claimed) < 4.4 * se + 1e-4, point
        worst = max(worst, abs(float(seen) - float(queries_error(L, 0.95 * theta, K, H))) / se)
    assert worst > 8
