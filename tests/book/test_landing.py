"""The landing page shows what the code computes today."""

import json
import re
from pathlib import Path

import matplotlib.image as mpimg
import numpy as np
import pytest

from scripts import landing_figure


def test_the_committed_picture_is_the_computed_one(tmp_path: Path):
    landing_figure.draw(tmp_path / "needle.png")
    drawn, committed = (
        mpimg.imread(path) for path in (tmp_path / "needle.png", landing_figure.TARGET)
    )
    assert drawn.shape == committed.shape
    assert np.mean(np.abs(drawn - committed)) < 1e-3


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
        ("length 9", "03_separation.ipynb", r"10\^12 .* (8\.[5-9]|9\.[0-4]) "),
        ("$L^{1/3}$", "04_alignment.ipynb", r"0\.333"),
        ("0.215", "05_test_error.ipynb", r"pooled +limit 0\.21(4[5-9]|5[0-4])"),
        ("0.022", "05_test_error.ipynb", r"attention +limit 0\.02(1[5-9]|2[0-4])"),
        ("2.95", "06_capacity.ipynb", r"pooled +α\* = +2\.95"),
        ("29.5", "06_capacity.ipynb", r"vectorized +α\* = +29\.5"),
        ("16.6", "06_capacity.ipynb", r"attention +α\* = +16\.6"),
    ],
)
def test_numbers_of_the_landing_page_are_printed_by_the_chapters(page, chapter, printed):
    assert page in (ROOT / "intro.md").read_text(encoding="utf-8")
    assert re.search(printed, outputs(chapter))
