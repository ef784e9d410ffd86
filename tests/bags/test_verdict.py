"""What a report says, word by word, of numbers made by hand; and small pieces behind it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from needle.bags.arrays import Bags, as_bags
from needle.bags.chance import Needles, Signal
from needle.bags.counting import Count
from needle.bags.nesting import Model
from needle.bags.planting import planted_error
from needle.bags.reporting import _advice
from needle.bags.resampling import Estimate, corrected
from needle.bags.tables import read
from needle.bags.units import Whitening, whitening
from needle.bags.verdict import Measured, Report

MEASURED = {
    "pooled": Measured(0.75, 0.3, (0.2, 0.4), 1.25),
    "needle": Measured(0.975, 0.05, (0.02, 0.08), 1.0),
    "size": Measured(0.5, 0.45, (0.4, 0.5), 0.0),
}
TEXT = """\
Attention pays.
! it is late
! it is <steep>

120 bags of 10.5 tokens on average, 64 entries each, 40% positive.

learner                   error %  95 % interval    AUC  promised  seconds
two-step attention            5.0     2.0 to 8.0  0.975       6.0      1.0
averaging (mean pooling)     30.0   20.0 to 40.0  0.750         –      1.2
bag size alone               45.0   40.0 to 50.0  0.500         –      0.0

Attention less averaging: -25.0 points of error, 95 % interval -35.0 to -15.0.
Other differences in points beyond doubt: two-step attention -20.0 to gated
  attention.
Labels permuted: p = 0.005 for all statistics together (mean 0.010, attention
  0.005).
Needles: 1 in a positive bag; log likelihood 12.5 over none or all, more than
  chance finds (1.2).
Independence: the mean of a bag scatters 1.1 times as much as it would if
  tokens were independent.
Bags 2 times as long: averaging 35.0 %, attention 7.0 %.
Promises withheld: tokens of a bag belong together."""


def by_hand(needles: Needles | None = None, L: float = 10.5, warned: bool = True) -> Report:
    differences = {
        ("needle", "pooled"): (-0.25, (-0.35, -0.15)),
        ("needle", "gated"): (-0.2, (-0.3, -0.1)),
        ("needle", "size"): (-0.4, (-0.5, -0.3)),
        ("max", "gated"): (-0.1, (-0.3, 0.1)),
    }
    return Report(
        120, L, 64, 0.4, MEASURED, differences["needle", "pooled"], differences,
        Signal(0.005, {"mean": 0.7, "attention": 0.9}, {"mean": 0.01, "attention": 0.005}),
        needles or Needles(Count(1, None, 12.5), 1.25, True), 1.1,
        {"needle": 0.06, "pooled": None}, "tokens of a bag belong together",
        {2: (0.35, 0.07)}, "Attention pays.", ["it is late", "it is <steep>"] * warned,
        SimpleNamespace(scorer_=SimpleNamespace(code=lambda: "a < b")),
    )  # fmt: skip


def test_the_text_is_this() -> None:
    assert str(by_hand()) == repr(by_hand()) == TEXT
    shares = str(by_hand(Needles(Count(None, 0.25, 0.5), 1.25, False), 5632.4))
    assert "120 bags of 5,632 tokens on average" in shares
    assert "Needles: 25% of a positive bag; log likelihood 0.5 over none or all, no more" in shares
    assert "120 bags of 1 token on average" in str(by_hand(L=1.0))


def test_the_page_holds_the_same() -> None:
    shown = by_hand()._repr_html_()
    assert "<p><b>Attention pays.</b></p><ul><li>it is late</li><li>it is &lt;steep&gt;" in shown
    row = [">two-step attention<", ">5.0<", ">2.0 to 8.0<", ">0.975<", ">6.0<", ">1.0<"]
    places = [shown.index(cell) for cell in row]
    assert places == sorted(places) and shown.count("<ul>") == 2
    assert by_hand(warned=False)._repr_html_().count("<ul>") == 1
    page = by_hand().page()
    assert shown in page and "<pre>a &lt; b</pre>" in page and "<svg" in page


def test_the_advice_says_what_speaks_against_it() -> None:
    """Nothing found, in one draw of so many, beside a learner that is far from guessing."""
    bags, y = as_bags(np.zeros((10, 2, 1))), np.resize([1, -1], 10)

    def said(pvalue: float, high: float) -> str:
        known = MEASURED | {
            "pooled": Measured(0.5, 0.5, (0.3, 0.7), 0.0),
            "needle": Measured(0.5, 0.4, (0.2, 0.6), 0.0),
            "max": Measured(1.0, 0.01, (0.0, high), 0.0),
        }
        signal = Signal(pvalue, {}, {})
        return _advice(bags, y, known, (-0.1, (-0.3, 0.1)), signal, 0.0)

    start = "Nothing found beyond doubt: permuted labels do as well as these once in 50 draws "
    assert said(0.02, 0.1) == (
        start + "(p = 0.02); get more bags, or better tokens, before any classifier; yet largest "
        "entries (max pooling) errs on 1.0 % of bags that it never saw."
    )
    assert said(0.02, 0.5).endswith("before any classifier.")
    assert said(0.4, 0.5).startswith("Nothing found: permuted labels do as well as these (p = 0.4)")
    assert said(0.01, 0.5).startswith("Cannot tell: averaging has an error of 50.0 %, attention")


def test_planting_looks_at_held_out_bags_alone() -> None:
    """A model that errs on every bag outside its own block, and on none inside, promises 0."""
    block, y = np.repeat([0, 1], 20), np.resize([1, -1], 40)
    tokens = np.zeros((40, 2, 2))
    tokens[:, :, 0] = np.where(block == 0, 1.0, -1.0)[:, None] * y[:, None]
    models = [Model(np.zeros(2), np.array([side, 0.0]), 0.0, (0, 0, 0)) for side in (1.0, -1.0)]
    bags, weights = as_bags(tokens), np.repeat((y > 0) * 1.0, 2)
    rng = np.random.default_rng(0)
    assert planted_error(bags, y, block, models, weights, Count(2, None, 1.0), rng) == 0
    assert planted_error(bags, y, 1 - block, models, weights, Count(2, None, 1.0), rng) == 1


def test_parquet_is_read_by_pyarrow_and_row_names_left_out(tmp_path, monkeypatch) -> None:
    table = {"bag": ["a", "a", "b"], "label": [1, 1, 0], "f": [1.0, 2.0, 3.0]}
    table["__index_level_0__"] = [7, 8, 9]

    class File:
        schema_arrow = SimpleNamespace(names=list(table))

        def __init__(self, path: object) -> None:
            pass

        def iter_batches(self, batch_size: int, columns: list[str]):
            for rows in (slice(0, 1), slice(1, 3)):
                part = {name: table[name][rows] for name in columns}
                yield SimpleNamespace(to_pydict=lambda part=part: part)

    module = ModuleType("pyarrow.parquet")
    module.ParquetFile = File  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyarrow", ModuleType("pyarrow"))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", module)
    path = tmp_path / "x.parquet"
    path.write_bytes(b"")
    found = read(path)
    assert found.bags.tokens.tolist() == [[1.0], [2.0], [3.0]] and found.names == ["a", "b"]
    assert found.y is not None and found.y.tolist() == [1, 0]


def test_small_promises() -> None:
    """Sparse tokens are doubles; nothing to whiten is the identity; two repetitions are enough."""
    sparse = as_bags([csr_array(np.eye(2, dtype=np.float32)), csr_array(np.eye(2))])
    assert sparse.tokens.dtype == float
    plain = Whitening.identity(3)
    assert plain.shrinkage == 0 and plain.trace == 3 and np.array_equal(plain.root, np.eye(3))
    flat = whitening(Bags(np.ones((6, 3)), np.arange(0, 7, 2)), -np.ones(3))
    assert flat.root.shape == (3, 3) and flat.basis.shape == (3, 0)
    two = corrected(Estimate(0.8, 0.01, 2), Estimate(0.0144, 0.0, 2))
    assert two.low < 0.8 < two.high
    with pytest.raises(ValueError, match="trials"):
        corrected(Estimate(0.8, 0.01, 1), Estimate(0.0144, 0.0, 1))
