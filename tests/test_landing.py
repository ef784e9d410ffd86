"""The picture of the landing page is what its script computes today."""

from pathlib import Path

import matplotlib.image as mpimg
import numpy as np

from scripts import landing_figure


def test_the_committed_picture_is_the_computed_one(tmp_path: Path):
    landing_figure.draw(tmp_path / "needle.png")
    drawn, committed = (
        mpimg.imread(path) for path in (tmp_path / "needle.png", landing_figure.TARGET)
    )
    assert drawn.shape == committed.shape
    assert np.mean(np.abs(drawn - committed)) < 1e-3
