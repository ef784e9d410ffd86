"""What needs packages that the book does not: ONNX, PyTorch, pandas, Parquet, tried for real.

They are no part of the locks. The weekly job `formats` installs them and sets NEEDLE_FORMATS, with
which a missing package is a failure; elsewhere it skips.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from needle import __main__ as command
from needle.bags.arrays import as_bags
from needle.bags.classifier import NeedleClassifier
from needle.bags.datasets import digit_bags
from needle.bags.portrait import estimate
from needle.bags.tables import read


def needed(name: str) -> Any:
    if os.environ.get("NEEDLE_FORMATS"):
        return importlib.import_module(name)
    return pytest.importorskip(name)


@pytest.fixture(scope="module")
def made() -> Any:
    bags, y, _ = digit_bags(120, 6, 1, np.random.default_rng(0))
    model = NeedleClassifier(sharpness=2.0, ridge=0.01, units="own", threshold=0.3).fit(bags, y)
    return model, bags, y


def test_onnx_scores_as_the_classifier(made: Any, tmp_path: Path) -> None:
    """Bags of several lengths, one label against another and three labels."""
    needed("onnx")
    runtime = needed("onnxruntime")
    model, bags, _ = made
    rng = np.random.default_rng(1)
    y, tokens = np.arange(90) % 3, rng.normal(size=(90, 5, 4))
    tokens[:, 0] += 5 * np.eye(4)[y]
    three = NeedleClassifier(sharpness=2.0, ridge=0.01).fit(tokens, y)
    for one, some in ((model, [*list(bags)[:9], bags.tokens[:17]]), (three, list(tokens[:9]))):
        one.save_onnx(tmp_path / "one.onnx")
        assert (tmp_path / "one.onnx").stat().st_size < 6000
        session = runtime.InferenceSession(str(tmp_path / "one.onnx"))
        found = np.array([session.run(["score"], {"tokens": bag})[0] for bag in some])
        expected = one.decision_function(some).reshape(len(some), -1)
        assert found == pytest.approx(expected, abs=1e-10)


def test_without_onnx_it_says_what_to_install(made: Any, tmp_path: Path) -> None:
    if importlib.util.find_spec("onnx"):
        pytest.skip("onnx is installed")
    with pytest.raises(ValueError, match="pip install onnx"):
        made[0].save_onnx(tmp_path / "one.onnx")


def test_torch_scores_as_the_classifier(made: Any) -> None:
    torch = needed("torch")
    model, bags, _ = made
    one = model.scorer_
    names = {"query": one.query[0], "coef": one.coef[0], "offset": one.offset[0]}
    exec(one.code("torch"), names)
    found = [float(names["score"](torch.as_tensor(bag))) for bag in list(bags)[:9]]
    assert found == pytest.approx(model.decision_function(bags)[:9] + one.threshold[0], abs=1e-10)
    tensors = [torch.as_tensor(bag) for bag in bags]
    assert np.array_equal(model.predict(tensors), model.predict(bags))


def test_pandas_is_one_more_way_to_hold_bags(made: Any) -> None:
    """A Series of DataFrames or arrays with any index, labels as a Series of words."""
    pd = needed("pandas")
    model, bags, y = made
    frames = pd.Series([pd.DataFrame(bag) for bag in bags], index=np.arange(120)[::-1])
    arrays = pd.Series(list(bags), index=[f"bag {k}" for k in range(120)])
    for held in (frames, arrays, list(frames)):
        assert np.array_equal(as_bags(held).tokens, bags.tokens)
        assert np.array_equal(model.predict(held), model.predict(bags))
    words = pd.Series(np.where(y > 0, "zero", "none"), index=frames.index)
    again = NeedleClassifier(sharpness=2.0, ridge=0.01, units="own").fit(frames, words)
    assert again.classes_.tolist() == ["none", "zero"]
    assert again.decision_function(frames) == pytest.approx(
        NeedleClassifier(sharpness=2.0, ridge=0.01, units="own")
        .fit(bags, y)
        .decision_function(bags)
    )
    assert estimate(frames, words).delta == pytest.approx(estimate(bags, y).delta)
    with pytest.raises(ValueError, match=r"\[3\]"):
        as_bags(pd.Series([*list(bags)[:3], pd.DataFrame(bags[3]).replace(bags[3].max(), np.nan)]))
    with pytest.raises(ValueError, match="missing"):
        NeedleClassifier().fit(frames, words.where(words != "zero", None))


@pytest.mark.parametrize("kind", ["float64", "float32", "int16"])
def test_parquet_gives_back_its_bags(made: Any, kind: str, tmp_path: Path, capsys: Any) -> None:
    """Fit and score from a file of several row groups; a hole is named by row and column."""
    arrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    _, bags, y = made
    columns = {"bag": np.repeat([f"b{k}" for k in range(120)], bags.sizes)}
    columns["label"] = np.repeat(np.where(y > 0, "zero", "none"), bags.sizes)
    features = {f"x{k}": (16 * bags.tokens[:, k]).astype(kind) for k in range(64)}
    path = tmp_path / "bags.parquet"
    parquet.write_table(arrow.table({**columns, **features}), path, row_group_size=50)
    table = read(path)
    assert np.array_equal(table.bags.tokens, 16 * bags.tokens) and table.names[5] == "b5"
    assert np.array_equal(table.y == "zero", y > 0)
    if kind != "float64":
        return
    given = ["fit", str(path), "--model", str(tmp_path / "m.npz")]
    assert command.main(given) == 0
    assert command.main(
        ["score", str(path), "--ignore", "label", "--model", str(tmp_path / "m.npz")]
    ) == 0  # fmt: skip
    assert "b119," in capsys.readouterr().out
    features["x7"][13] = np.nan
    parquet.write_table(arrow.table({**columns, **features}), path)
    with pytest.raises(ValueError, match=r"row 15, column 'x7': nan"):
        read(path)
