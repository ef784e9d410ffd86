"""Readouts trained on features, and the theory of the larger maps of Chapter 5 and Appendix C."""

from functools import lru_cache

import numpy as np
from scipy import optimize, special, stats

from needle.data.classifiers import attention, learned_attention, pooled
from needle.data.law import FeatureLaw
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.kit.losses import get_loss
from needle.oracle.detection import one_needle_bayes_error
from needle.readout.fit import error_rate, fit_readout, simulate_readout
from needle.readout.limit import learning_curve, predict_readout
from needle.readout.literal import simulate_reuse
from needle.readout.reuse import predict_reuse
from needle.steps.alignment import predict_alignment, simulate_alignment
from needle.steps.rule import two_steps

SHORT, LONG = SparseTokens(10, 1, 5.0, 0.5), SparseTokens(1000, 3, 6.0, 0.3)
CALIBRATED = float(special.logit(0.3) / (0.3 - 0.5))
LOSSES = ("logistic", "square")
Numbers = dict[str, float]


@lru_cache
def frozen(model: SparseTokens, alpha0: float, temperature: float) -> FeatureLaw:
    """Attention with the limiting query of two steps on alpha0 samples per dimension."""
    cosine = predict_alignment(model, alpha0).query_cos
    return attention(model, temperature=temperature, cos=cosine)


def with_query(
    model: SparseTokens,
    alpha: float,
    d: int,
    rng: np.random.Generator,
    *,
    temperature: float,
    lr_b: float = 0.5,
) -> FeatureLaw:
    """Attention with a query drawn at d, its rate such that the limiting sharpness is given."""
    scale = temperature / predict_alignment(model, alpha, lr_b=lr_b).query_norm
    query = simulate_alignment(model, d, alpha, rng, lr_b=lr_b)
    return learned_attention(model, query, scale=scale, resolution=None)


def trained(law: FeatureLaw, d: int, alpha: float, lam: float, rng: np.random.Generator) -> Numbers:
    """Test error and training loss of both losses, on the same samples."""
    F, y = law.sample(round(alpha * d), d, rng)
    found = {}
    for loss in LOSSES:
        fit = fit_readout(F, y, lam, loss=loss)
        found[f"{loss} test_error"] = error_rate(law, fit.w, fit.b, rng)
        found[f"{loss} train_loss"] = fit.train_loss
    return found


def divided(alpha: float, d: int, rng: np.random.Generator) -> float:
    """Test error with a quarter of alpha samples per dimension for the query; T = 2, λ = 0.3."""
    law = with_query(SHORT, alpha / 4, d, rng, temperature=2.0)
    return simulate_readout(law, d, 0.75 * alpha, 0.3, rng).test_error


def pipeline(classifier: str, alpha: float, d: int, rng: np.random.Generator) -> Numbers:
    """The paper's main figure: two steps on 4d samples, a readout on alpha·d; λ = 1e-5."""
    if classifier == "attention":
        law = with_query(SHORT, 4.0, d, rng, temperature=2.0)
    else:
        law = {"pooled": pooled, "vectorized": vectorized}[classifier](SHORT)
    return trained(law, d, alpha, 1e-5, rng)


def frozen_query(alpha: float, d: int, lam: float, rng: np.random.Generator) -> Numbers:
    """The readout alone, on features of the limiting query of the pipeline."""
    return trained(frozen(SHORT, 4.0, 2.0), d, alpha, lam, rng)


def unknowns(alpha: float, d: int, rng: np.random.Generator) -> Numbers:
    """The five order parameters of a readout: cosine 0.8, T = 2, λ = 1e-3."""
    lam, law = 1e-3, attention(SHORT, temperature=2.0, cos=0.8)
    F, y = law.sample(round(alpha * d), d, rng)
    fit = fit_readout(F, y, lam)
    curvature = get_loss("logistic").second(F @ fit.w + fit.b, y)
    H = lam * np.eye(d) + (F.T * curvature) @ F / len(y)
    return {
        "nu": 0.8 * fit.w[0] + 0.6 * fit.w[1],
        "kappa": 0.6 * fit.w[0] - 0.8 * fit.w[1],
        "rest": float(np.linalg.norm(fit.w[2:])),
        "bias": fit.b,
        "chi": np.trace(np.linalg.inv(H)) / len(y),
    }


def no_ridge(classifier: str, alpha: float, d: int, rng: np.random.Generator) -> Numbers:
    """The square loss at λ = 0: approach to the population minimizer, and the peak at α = 1."""
    law = pooled(SHORT) if classifier == "pooled" else frozen(SHORT, 4.0, 2.0)
    point = simulate_readout(law, d, alpha, 0.0, rng, loss="square")
    return {"test_error": point.test_error, "norm": point.norm}


def misaligned(cosine: float, temperature: float, d: int, rng: np.random.Generator) -> Numbers:
    """A query of given cosine and sharpness (pooling at sharpness 0); α = 8, λ = 0.1."""
    return trained(attention(SHORT, temperature=temperature, cos=cosine), d, 8.0, 0.1, rng)


def reuse(theta: float, alpha: float, d: int, rng: np.random.Generator) -> Numbers:
    """Readouts on the tokens that turned the query, and on fresh ones with the same query."""
    seed, model = rng.integers(2**32, size=2), SparseTokens(10, 1, theta, 0.5)
    found = {}
    for name, fresh in (("reused", False), ("fresh", True)):
        stream = np.random.default_rng(seed)
        run = simulate_reuse(model, d, alpha, 0.01, stream, temperature=2.0, fresh=fresh)
        for field in ("test_error", "train_loss", "signal", "norm"):
            found[f"{name} {field}"] = getattr(run, field)
    for field in ("test_error", "train_loss"):  # for the error of a ratio
        found[f"gap {field}"] = found[f"reused {field}"] - found[f"fresh {field}"]
    return found


def two_needles(loss: str, d: int, rng: np.random.Generator) -> Numbers:
    """Literal tokens: a readout on the samples of its query, two needles in twenty tokens."""
    model = SparseTokens(20, 2, 2.5, 0.6)
    run = simulate_reuse(model, d, 1.0, 0.02, rng, temperature=2.0, loss=loss)
    names = ("train_loss", "test_error", "signal", "norm")
    return {name: getattr(run, name) for name in names}


def label_shown(d: int, rng: np.random.Generator) -> float:
    """Mean label times score along w⁽¹⁾, on the samples that turned the query less on new ones."""
    model = SparseTokens(20, 2, 2.5, 0.6)
    (X, y, _), (new, labels, _) = (model.sample(size * d, d, rng) for size in (1, 3))
    steps, scale = two_steps(X, y), 2.0 / predict_alignment(model, 1.0).query_norm

    def shown(X: np.ndarray, y: np.ndarray) -> float:
        weights = special.softmax(scale * X @ steps.q, axis=1)
        return float(np.mean(y * np.sum(weights * (X @ steps.w), axis=1)))

    return (shown(X, y) - shown(new, labels)) / float(np.linalg.norm(steps.w))


def split(
    L: int, share: float, temperature: float, lam: float, d: int, rng: np.random.Generator
) -> float:
    """Test error of a fixed total, a share of it for the query."""
    model, alpha, rates = _budget(L)
    law = with_query(model, share * alpha, d, rng, temperature=temperature, **rates)
    return simulate_readout(law, d, (1 - share) * alpha, lam, rng).test_error


def twice(temperature: float, lam: float, d: int, rng: np.random.Generator) -> float:
    """Test error of short bags with all 4d samples used for query and readout."""
    return simulate_reuse(SHORT, d, 4.0, lam, rng, temperature=temperature).test_error


def rare(classifier: str, pi: float, d: int, rng: np.random.Generator) -> float:
    """Test error over the share of positives: α = 4, λ = 0.01, a given query of cosine 0.95."""
    model = SparseTokens(10, 1, 5.0, pi)
    law = attention(model, temperature=2.0, cos=0.95)
    law = pooled(model) if classifier == "pooled" else law
    return simulate_readout(law, d, 4.0, 0.01, rng).test_error / pi


def _budget(L: int) -> tuple[SparseTokens, float, Numbers]:
    """Model, samples per dimension in all, and the rate of the bias."""
    return (SHORT, 4.0, {}) if L == 10 else (LONG, 4000 / 512, {"lr_b": CALIBRATED})


# theory of the larger maps: no chance in it, one trial


def limiting(
    theta: float, temperature: float, cosine: float, loss: str, rng: np.random.Generator | None
) -> float:
    """Test error at α = ∞, λ = 0."""
    resolution = 240 if loss == "logistic" else None
    model = SparseTokens(10, 1, theta, 0.5)
    law = attention(model, temperature=temperature, cos=cosine, resolution=resolution)
    return predict_readout(law, np.inf, 0.0, loss=loss).test_error


def crossing(theta: float, temperature: float, loss: str, rng: np.random.Generator | None) -> float:
    """The cosine at which attention beats pooling, with unlimited data."""
    plain = stats.norm.cdf(-theta / np.sqrt(10) / 2)

    def gain(s: float) -> float:
        return float(np.log(limiting(theta, temperature, s, loss, None) / plain))

    return float(optimize.brentq(gain, 0.02, 0.7, xtol=1e-4))


def best_ridge(
    cosine: float, temperature: float, alpha: float, loss: str, rng: np.random.Generator | None
) -> Numbers:
    """The smallest error over λ = 10⁻³ … 10³, the λ that has it, and the error at λ = ∞."""
    law = attention(SHORT, temperature=temperature, cos=cosine, resolution=240)
    lams = np.geomspace(1e3, 1e-3, 13)
    errors = [point.test_error for point in learning_curve(law, alpha, lams, loss=loss)]
    error, lam = min(zip(errors, lams, strict=True))
    infinite = predict_readout(law, alpha, np.inf, loss=loss).test_error
    return {"error": error, "lam": lam, "infinite": infinite}


def reuse_map(
    theta: float,
    alpha: float,
    rng: np.random.Generator | None,
    L: int = 10,
    pi: float = 0.5,
    lr_b: float = 0.5,
) -> Numbers:
    """Training loss and test error, reused over fresh."""
    model = SparseTokens(L, 1, theta, pi)
    cosine = predict_alignment(model, alpha, lr_b=lr_b).query_cos
    first = predict_readout(attention(model, temperature=2.0, cos=cosine), alpha, 0.01)
    second = predict_reuse(model, alpha, 0.01, temperature=2.0, lr_b=lr_b)
    names = ("train_loss", "test_error")
    return {name: getattr(second, name) / getattr(first, name) for name in names}


def tuned(
    model: SparseTokens,
    alpha_query: float,
    alpha_readout: float,
    rates: Numbers,
    temperatures: tuple[float, ...],
    lams: tuple[float, ...],
) -> tuple[float, float, float]:
    """The best test error over sharpness and ridge, and the pair that has it."""
    cosine = predict_alignment(model, alpha_query, **rates).query_cos
    found = []
    for T in temperatures:
        law = attention(model, temperature=T, cos=cosine, resolution=240)
        errors = [point.test_error for point in learning_curve(law, alpha_readout, lams)]
        found += [(error, T, lam) for error, lam in zip(errors, lams, strict=True)]
    return min(found)


def shares(L: int, share: float, rng: np.random.Generator | None) -> Numbers:
    """The best error of a split (share 0: of all data used twice) and its sharpness and ridge."""
    model, alpha, rates = _budget(L)
    grid = ((2.0, 3.5), (0.1, 0.3, 1.0)) if L == 10 else ((2.0, 3.0), (1e-3, 1e-2))
    parts = (share * alpha, (1 - share) * alpha) if share else (alpha, alpha)
    error, T, lam = tuned(model, *parts, rates, *grid)
    if not share:
        error = predict_reuse(model, alpha, lam, temperature=T, **rates).test_error
    return {"error": error, "temperature": T, "lam": lam}


def ladder(alpha_query: float, alpha_readout: float, rng: np.random.Generator | None) -> Numbers:
    """Errors of Bayes, of the best softmax, then with a finite query, then a finite readout."""
    temperatures = (1.0, 2.0, 4.0)
    cosine = predict_alignment(SHORT, alpha_query).query_cos
    ideal, query = (
        min(limiting(5.0, T, s, "logistic", None) for T in temperatures) for s in (1.0, cosine)
    )
    readout = tuned(SHORT, alpha_query, alpha_readout, {}, temperatures, (0.1, 0.3, 1.0))[0]
    bayes = one_needle_bayes_error(SHORT.L, SHORT.theta)
    return {"Bayes": bayes, "softmax": ideal, "query": query, "readout": readout}
