"""The hinge loss: its envelope, its limit, its fits, its two extremes, and a published table."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.svm import SVC

from needle.data.classifiers import attention, gaussian_mixture, pooled
from needle.data.tokens import SparseTokens
from needle.kit.losses import get_loss
from needle.kit.records import ConvergenceError
from needle.readout import newton, saddle
from needle.readout.envelopes import hinge_envelope
from needle.readout.fit import fit_readout, simulate_readout
from needle.readout.limit import predict_readout
from needle.readout.margin import predict_margin
from needle.readout.support import collapse_alpha, full_pulls

LAW = attention(SparseTokens(10, 1, 5.0, 0.5), temperature=2.0, cos=0.8)
RARE = pooled(SparseTokens(10, 3, 1.0, 0.15))
# K2mix of IdePHICS/GaussMixtureProject (Loureiro et al. 2021): hinge, ridge .1 in the convention of
# sums, balanced classes, covariance with eigenvalues .5 (share .8) and .1 (share .2).
PUBLISHED = [  # n/d, m, q, V, test error
    (0.01, 0.023289064193016445, 0.011272298985782005, 4.151922189446034, 0.41318710481600585),
    (
        0.31510204081632653,
        0.4586339405183176,
        0.27331972137174326,
        2.928185356465871,
        0.1901714119728939,
    ),
    (
        0.6202040816326531,
        0.7142442415737248,
        0.48704634136750846,
        2.2843059471739995,
        0.15305036290164808,
    ),
    (
        0.8642857142857143,
        0.8748555938339456,
        0.6342390135958256,
        1.9698789183576302,
        0.13598768033596054,
    ),
    (
        1.230408163265306,
        1.0635741034971082,
        0.8028046550612119,
        1.6623865770834756,
        0.11760729092767608,
    ),
    (
        1.5355102040816326,
        1.1860539646680803,
        0.9055028802337038,
        1.4860036928220612,
        0.10630768948666425,
    ),
    (
        1.8406122448979594,
        1.2866079452937862,
        0.9853802836371708,
        1.3511058833669398,
        0.0974675442626241,
    ),
    (
        2.2677551020408164,
        1.4015508188441292,
        1.0722594721170824,
        1.206340151038317,
        0.08794765480457595,
    ),
    (
        2.6948979591836735,
        1.4953475136327783,
        1.1404295793946941,
        1.0953136430692316,
        0.08071811672311535,
    ),
    (3.0, 1.5529560774820463, 1.1815067814626623, 1.0303171397940885, 0.07654523011100232),
]


def test_the_envelope_is_that_of_the_prox():
    loss, rng = get_loss("hinge"), np.random.default_rng(1)
    G = np.linspace(-9, 9, 200_001)
    density = np.exp(-(G**2) / 2)
    density /= density.sum()
    for mean, sd, s in [(0.3, 0.5, 2.0), (-1.0, 2.0, 0.1), (1.2, 0.1, 0.03), (0.9, 1.0, 40.0)]:
        v = mean + sd * G
        u = loss.prox(v, s, 1)
        value, first, second = (x[..., 0] for x in hinge_envelope(*np.array([[mean], [sd], [s]])))
        assert value == pytest.approx(
            density @ (loss.value(u, 1) + (u - v) ** 2 / (2 * s)), rel=1e-6
        )
        pull = (u - v) / s
        expected = [-(density @ pull), -(density @ (pull * G)), -(density @ pull**2) / 2]
        assert first == pytest.approx(expected, rel=1e-5, abs=1e-9)
        on_margin = density @ ((v > 1 - s) & (v < 1))
        assert second[0, 0] * s == pytest.approx(on_margin, abs=2e-4)
    point = np.abs(rng.normal(size=(3, 100))) + 0.05
    for j, h in enumerate(1e-5 * np.eye(3)):
        up, down = hinge_envelope(*(point + h[:, None])), hinge_envelope(*(point - h[:, None]))
        middle = hinge_envelope(*point)
        assert np.allclose((up[0] - down[0]) / 2e-5, middle[1][j], atol=1e-7)
        assert np.allclose((up[1] - down[1]) / 2e-5, middle[2][j], atol=1e-6)


def test_the_published_table():
    """The covariance has two blocks, which this test adds: the expectations are ours."""
    share, eigen, lam = np.array([0.8, 0.2]), np.array([0.5, 0.1]), 0.1
    for alpha, *published, error in PUBLISHED:
        m, q, V = 0.5, 0.5, 1.0
        for _ in range(3000):
            _, first, second = hinge_envelope(*np.array([[m], [q**0.5], [V]]))
            force, power, bend = (
                alpha * float(x) for x in (-first[0, 0], -2 * first[2, 0], second[0, 0, 0])
            )
            stiff = lam + bend * eigen
            new = share @ (force / stiff), share @ (eigen * (force**2 + power * eigen) / stiff**2)
            change = max(abs(new[0] - m), abs(new[1] - q))
            m, q, V = *new, float(share @ (eigen / stiff))
            if change < 1e-13:
                break
        assert [m, q, V] == pytest.approx(published, rel=2e-8)
        assert ndtr(-m / q**0.5) == pytest.approx(error, abs=2e-9)


@pytest.mark.parametrize(("alpha", "lam", "d"), [(4.0, 1e-2, 60), (0.5, 1e-3, 80), (2.0, 1e-5, 50)])
def test_a_fit_is_the_support_vector_machine(alpha, lam, d):
    F, y = LAW.sample(round(alpha * d), d, np.random.default_rng(2))
    fit = fit_readout(F, y, lam, loss="hinge")
    theirs = SVC(kernel="linear", C=1 / (len(y) * lam), tol=1e-9, max_iter=10**6).fit(F, y)
    assert fit.w == pytest.approx(theirs.coef_[0], rel=1e-4, abs=1e-5 * np.abs(fit.w).max())

    def objective(w, b):
        return np.maximum(1 - y * (F @ w + b), 0).mean() + lam / 2 * w @ w

    assert objective(fit.w, fit.b) <= objective(theirs.coef_[0], theirs.intercept_[0]) + 1e-12


def test_without_an_intercept_the_conditions_of_the_optimum_hold():
    F, y = LAW.sample(150, 40, np.random.default_rng(3))
    fit = fit_readout(F, y, 0.05, loss="hinge", intercept=False)
    margins = y * (F @ fit.w)
    inside, on = margins < 1 - 1e-6, np.abs(margins - 1) < 1e-6
    rest = 150 * 0.05 * fit.w - (y[inside] @ F[inside])
    pulls, *_ = np.linalg.lstsq((F[on] * y[on, None]).T, rest, rcond=None)
    assert fit.b == 0 and np.allclose((F[on] * y[on, None]).T @ pulls, rest, atol=1e-6)
    assert pulls.min() > -1e-6 and pulls.max() < 1 + 1e-6


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
@pytest.mark.parametrize(
    ("law", "alpha", "lam"),
    [(LAW, 8.0, 0.01), (pooled(SparseTokens(10, 3, 3.0, 0.3)), 3.0, 0.05)],
)
def test_fits_approach_the_limit(law, alpha, lam):
    """Two sizes, extrapolated in 1/d; a prediction ten per cent off is refused."""
    rng, limit = np.random.default_rng(4), predict_readout(law, alpha, lam, loss="hinge")
    names = ("test_error", "train_loss", "signal", "norm", "bias")
    groups = []
    for d, trials in (80, 160), (160, 100):
        runs = [simulate_readout(law, d, alpha, lam, rng, loss="hinge") for _ in range(trials)]
        groups.append(np.array([[getattr(run, name) for name in names] for run in runs]))
    found = 2 * groups[1].mean(0) - groups[0].mean(0)
    error = np.hypot(2 * groups[1].std(0) / 10, groups[0].std(0) / 160**0.5)
    expected = np.array([getattr(limit, name) for name in names])
    assert np.all(np.abs(found - expected) < 4.5 * error), (found - expected) / error
    assert np.any(np.abs(found - 1.1 * expected) > 4.5 * error)


def test_as_many_samples_lie_on_the_margin_as_the_fifth_equation_says():
    """Vectors on the margin per sample = 1/α − λχ, in the limit: P(1 − s < yΩ < 1)."""
    from needle.readout.limit import order_parameters
    from needle.readout.saddle import Problem

    o = order_parameters(LAW, 8.0, 0.01, loss="hinge")
    mean, sd, s = Problem(LAW, LAW.nodes, 8.0, 0.01, True).cavity(o.vector)
    share = LAW.nodes.weight @ (ndtr((1 - mean) / sd) - ndtr((1 - s - mean) / sd))
    assert share == pytest.approx(1 / 8 - 0.01 * o.chi, rel=1e-8)


def test_a_vanishing_ridge_leads_to_the_largest_margin():
    for law, alpha in ((LAW, 2.0), (gaussian_mixture(var_pos=0.5, var_neg=1.0, pi=0.3), 1.0)):
        margin, weak = predict_margin(law, alpha), predict_readout(law, alpha, 1e-7, loss="hinge")
        assert weak.norm * margin.margin == pytest.approx(1, rel=1e-9)
        assert weak.test_error == pytest.approx(margin.test_error, rel=1e-9)


def test_rare_positives_make_the_readout_collapse():
    unequal = gaussian_mixture(mean=0.3, var_pos=1.0, var_neg=2.0, pi=0.2)
    mirrored = pooled(SparseTokens(10, 3, 1.0, 0.85))
    for law in (RARE, unequal, mirrored):
        alpha = collapse_alpha(law)
        for lam in (0.01, 1.0):
            before = predict_readout(law, 0.98 * alpha, lam, loss="hinge")
            after = predict_readout(law, 1.01 * alpha, lam, loss="hinge")
            assert before.norm > 0 and after.norm == 0
            assert abs(after.bias) == 1 and after.test_error == pytest.approx(
                min(law.pi, 1 - law.pi)
            )
            assert after.train_loss == pytest.approx(2 * after.test_error)
    assert collapse_alpha(pooled(SparseTokens(10, 1, 5.0, 0.15))) == math.inf
    assert collapse_alpha(pooled(SparseTokens(10, 3, 1.0, 0.5))) == math.inf


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
def test_data_collapse_where_they_should():
    """At d = 80: seldom at 0.6 α_c, almost always at 1.8 α_c."""
    rng, shares = np.random.default_rng(5), []
    for factor in (0.6, 1.8):
        n = round(factor * collapse_alpha(RARE) * 80)
        fits = [fit_readout(*RARE.sample(n, 80, rng), 0.01, loss="hinge") for _ in range(15)]
        shares.append(np.mean([np.linalg.norm(fit.w) < 1e-6 for fit in fits]))
    assert shares[0] <= 0.2 and shares[1] >= 0.8, shares


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("lam", lambda: predict_readout(LAW, 1.0, 0.0, loss="hinge")),
        ("lam", lambda: fit_readout(np.eye(2), np.array([1, -1]), 0.0, loss="hinge")),
        ("loss", lambda: predict_readout(LAW, 1.0, 0.1, loss="exponential")),
        ("loss", lambda: fit_readout(np.eye(2), np.array([1, -1]), 0.1, loss="exponential")),
        ("law", lambda: collapse_alpha(LAW)),
    ],
)
def test_bad_input_is_named(name, call):
    with pytest.raises(ValueError, match=f"^{name} = "):
        call()


def test_fits_settle_on_data_of_any_kind():
    """Whatever the law, size and ridge: objective and dual meet (a start without rows on the margin
    once left the intercept to run away)."""
    rng = np.random.default_rng(6)
    for _ in range(60):
        model = SparseTokens(10, int(rng.integers(1, 11)), rng.uniform(0, 6), rng.uniform(0.1, 0.9))
        spread = {name: float(10 ** rng.uniform(-2, 2)) for name in ("var_pos", "var_neg")}
        law = pooled(model) if rng.integers(2) else gaussian_mixture(mean=1.0, **spread)
        F, y = law.sample(int(rng.integers(6, 300)), int(rng.integers(2, 60)), rng)
        fit = fit_readout(F, y, float(10 ** rng.uniform(-6, 2)), loss="hinge")
        assert fit.converged and np.isfinite(fit.w).all()


class TestFullPulls:
    """A large ridge and equal classes: all samples pull alike, and only the rarest hold b."""

    @pytest.mark.false_alarm(2e-4)
    def test_the_readout_is_the_mean_of_the_samples_and_b_the_middle(self):
        """The hinge's readout is then the mean of y·f over λ, drawn here; z below 4."""
        law, alpha, lam, d = pooled(SparseTokens(10, 1, 3.0, 0.5)), 3.0, 1.0, 300
        found = predict_readout(law, alpha, lam, loss="hinge")
        assert found.bias == pytest.approx(-3.0 * 0.1 * found.signal / 2, rel=1e-9)
        drawn = []
        for seed in range(30):
            F, y = law.sample(round(alpha * d), d, np.random.default_rng(seed))
            w = y @ F / len(y) / lam
            drawn.append((w[0], w @ w, np.mean(1 - y * (F @ w + found.bias))))
        told = np.array([found.signal, found.norm**2, found.train_loss])
        mean, error = np.mean(drawn, axis=0), np.std(drawn, axis=0) / np.sqrt(len(drawn))
        assert (np.abs(mean - told) < 4 * error + 2 / d * told).all()
        assert (np.abs(mean - 0.9 * told) > 4 * error).all()

    @pytest.mark.parametrize("var", [1.0, 1.5])
    def test_the_two_roads_meet(self, var, monkeypatch):
        """Newton's steps, where the share that spares its pull is still within rounding."""
        law = gaussian_mixture(mean=0.5, var_pos=var, var_neg=1.0)
        shares = []
        for lam in np.geomspace(1, 20, 30):
            problem = saddle.Problem(law, law.nodes, 2.0, lam, True)
            known = (problem.y, problem.A, problem.r, problem.weight, 2.0, lam)
            if not (pulls := full_pulls(*known)) or pulls[1] < 1e-10:
                continue
            with monkeypatch.context() as patch:
                patch.setattr(newton, "full_pulls", lambda *_: None)
                x, _, residual, _ = newton.solve(problem, "hinge")
            if residual < 1e-9:
                shares.append(pulls[1])
                np.testing.assert_allclose(pulls[0], x, rtol=1e-5, atol=1e-7)
        assert shares

    def test_what_nodes_cannot_hold_is_refused_in_so_many_words(self):
        law = attention(SparseTokens(10, 1, 3.0, 0.5), temperature=2.0, cos=0.8, resolution=96)
        with pytest.raises(ConvergenceError, match="leave every intercept as good; take a smaller"):
            predict_readout(law, 3.0, 100.0, loss="hinge")
        assert predict_readout(law, 3.0, 100.0, loss="hinge", intercept=False).bias == 0


@pytest.mark.parametrize("pi", [0.5 - 5e-17, 0.4999, 0.3, 1e-6, 1e-12])
def test_the_collapse_keeps_its_digits_at_every_share(pi):
    """The same for π and 1 − π, and later for a stronger needle."""
    at = [collapse_alpha(pooled(SparseTokens(10, 3, theta, pi))) for theta in (0.0, 1e-3, 0.1)]
    assert at == sorted(at)
    assert at[0] < math.inf
    mirrored = collapse_alpha(pooled(SparseTokens(10, 3, 0.1, 1 - pi)))
    back = collapse_alpha(pooled(SparseTokens(10, 3, 0.1, 1 - (1 - pi))))
    assert mirrored == back or mirrored == pytest.approx(back, rel=1e-9)
