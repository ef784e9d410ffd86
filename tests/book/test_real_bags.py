"""The benchmark bags: read from their file as they stand there, or refused."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from scripts.run import real_bags


def test_an_unknown_file_is_refused() -> None:
    with pytest.raises(SystemExit, match="sha256"):
        real_bags.compact("musk1", b"1,2,0.5\n")


def test_lines_become_bags_with_the_label_of_their_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bags in the order of their numbers, tokens in the order of the file, 0 is negative."""
    csv = b"1,7,0.5,1\n0,3,2.5,3\n1,7,4.5,5\n0,3,6.5,7\n0,3,8.5,9\n"
    monkeypatch.setitem(real_bags.SHA256, "musk1", hashlib.sha256(csv).hexdigest())
    data = real_bags.compact("musk1", csv)
    assert data["starts"].tolist() == [0, 3, 5]
    assert data["y"].tolist() == [-1, 1]
    assert data["tokens"][:, 0].tolist() == [2.5, 6.5, 8.5, 0.5, 4.5]
    assert data["tokens"].dtype == np.float32
