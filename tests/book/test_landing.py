"""The landing page shows what the code computes today."""

import json
import re
from pathlib import Path

import matplotlib.image as mpimg
import numpy as np
import pytest

from needle.data.noise import sample_noise
from scripts.book import landing_curves, landing_figure


def gap(one: Path, other: Path) -> float:
    """The largest difference of two pictures, averaged over squares of 16 pixels."""
    a, b = (mpimg.imread(path)[..., :3] for path in (one, other))
    assert a.shape == b.shape
    rows, columns = (size // 16 * 16 for size in a.shape[:2])
    off = np.abs(a - b).mean(axis=2)[:rows, :columns]
    return float(off.reshape(rows // 16, 16, -1, 16).mean(axis=(1, 3)).max())


def test_the_committed_picture_shows_the_numbers_inside_it(tmp_path: Path):
    """And a line or a dot that is missing, or moved by a few percent, would be seen."""
    numbers = landing_figure.stored()
    landing_figure.render(numbers, tmp_path / "needle.png")
    assert gap(tmp_path / "needle.png", landing_figure.TARGET) < 0.02
    lines, dots = numbers["lines"], numbers["dots"]
    for wrong in (
        {"lines": lines, "dots": dots | {"attention": []}},
        {"lines": lines, "dots": dots | {"pooled": [[1.05 * x, e] for x, e in dots["pooled"]]}},
        {"lines": lines | {"bayes": [1.03 * x for x in lines["bayes"]]}, "dots": dots},
    ):
        landing_figure.render(wrong, tmp_path / "wrong.png")
        assert gap(tmp_path / "wrong.png", landing_figure.TARGET) > 0.04


def test_the_numbers_of_the_picture_are_those_of_today():
    """Every line, and one dot of each kind (each dot has a seed of its own)."""
    numbers = landing_figure.stored()
    noise = sample_noise(landing_figure.L, 1, 2000, np.random.default_rng(0))
    for kind in landing_figure.GRIDS:
        rules = landing_figure.rules(kind, noise)
        found = [rule.error for rule in rules]
        np.testing.assert_allclose(numbers["lines"][kind], found, atol=2e-6)
        if places := landing_figure.DOTS[kind]:
            middle = len(places) // 2
            dot = landing_figure.measured(kind, places[middle], rules[places[middle]])
            np.testing.assert_allclose(numbers["dots"][kind][middle], dot, atol=2e-6)


def test_the_curves_of_the_last_moment_are_those_of_today():
    """Three budgets; and the lesson: as good as message passing, with ten times the data."""
    kept = json.loads(landing_curves.TARGET.read_text(encoding="utf-8"))
    assert kept["alpha"] == landing_curves.ALPHAS
    for place in (2, 8, 16):
        for name, error in landing_curves.errors(kept["alpha"][place]).items():
            assert kept[name][place] == pytest.approx(error, rel=1e-3), (name, place)
    level = np.interp(np.log(1.1), np.log(kept["alpha"]), kept["message"])
    ten = np.interp(-level, -np.array(kept["attention"]), np.log(kept["alpha"]))
    assert 8 < np.exp(ten) / 1.1 < 12


ROOT = Path(__file__).resolve().parent.parent.parent


def outputs(chapter: str) -> str:
    """All text that the cells of a chapter have printed."""
    notebook = json.loads((ROOT / "chapters" / chapter).read_text(encoding="utf-8"))
    texts = [
        text
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        for text in (output.get("text", []), output.get("data", {}).get("text/plain", []))
    ]
    return "".join("".join(text) for text in texts)


@pytest.mark.parametrize(
    ("page", "chapter", "printed"),
    [
        ("length 9", "03_separation.ipynb", r"0\.05 +10\^12 .* 8\.9\d"),
        ("$L^{1/3}$", "04_alignment.ipynb", r"0\.333"),
        ("$L^{1/4}$", "07_length.ipynb", r"local exponents of L: \[.*( 0\.25\d){3}\]"),
        ("0.214", "05_test_error.ipynb", r"pooled +limit 0\.214\d"),
        ("0.022", "05_test_error.ipynb", r"attention +limit 0\.02(1[5-9]|2[0-4])"),
        ("2.95", "06_capacity.ipynb", r"pooled +α\* = +2\.95"),
        ("29.5", "06_capacity.ipynb", r"vectorized +α\* = +29\.5"),
        ("16.6", "06_capacity.ipynb", r"attention +α\* = +16\.6"),
        ("2.3 %", "09_learning.ipynb", r"test_error, α = 1\.0 +0\.02(2[5-9]|3[0-4])"),
        ("from 74 on", "09_learning.ipynb", r"L=1e\+06 R=1 θ=10: α_alg 7[34]\.\d"),
        ("from 0.017", "09_learning.ipynb", r"L=1e\+06 R=1 θ=10: .* α_inf 0\.016[5-9]"),
    ],
)
def test_numbers_of_the_page_about_the_book_are_printed_by_the_chapters(page, chapter, printed):
    assert page in (ROOT / "site" / "about.md").read_text(encoding="utf-8")
    assert re.search(printed, outputs(chapter))
