"""The deployed model, bags in files, and the command."""

from __future__ import annotations

import csv
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from needle import __main__ as command
from needle.bags import arrays, tables
from needle.bags.arrays import Bags, as_bags
from needle.bags.classifier import NeedleClassifier
from needle.bags.datasets import digit_bags
from needle.bags.scorer import Scorer
from needle.bags.tables import Columns, pieces, read
from needle.bags.threshold import best_threshold, platt
from needle.bags.units import _thinned, moments


@pytest.fixture(scope="module")
def fitted():
    bags, y, hidden = digit_bags(160, 8, 1, np.random.default_rng(0))
    model = NeedleClassifier(sharpness=2.0, ridge=0.01, units="own").fit(bags, y)
    return model, bags, y, hidden


def test_a_saved_model_scores_as_before(fitted, tmp_path: Path) -> None:
    model, bags, _, _ = fitted
    model.save(tmp_path / "model.npz")
    assert (tmp_path / "model.npz").stat().st_size < 6000
    again = NeedleClassifier.load(tmp_path / "model.npz")
    assert np.array_equal(again.decision_function(bags), model.decision_function(bags))
    assert np.array_equal(again.predict(list(bags)), model.predict(bags))
    assert np.array_equal(again.predict_proba(bags), model.predict_proba(bags))
    with pytest.raises(ValueError, match="63 entries"):
        again.predict([np.zeros((2, 63))])


def test_the_scorer_equals_the_classifier_in_whitened_coordinates(fitted) -> None:
    model, bags, _, _ = fitted
    z = model.whitening_(bags)
    weights = z.weights(model.sharpness_ * (z.tokens @ model.query_))
    expected = z.sums(weights * (z.tokens @ model.coef_)) + model.intercept_
    assert model.decision_function(bags) == pytest.approx(expected, abs=1e-9)


def test_the_printed_lines_are_the_scorer(fitted) -> None:
    model, bags, _, _ = fitted
    one = model.scorer_
    names = {"query": one.query[0], "coef": one.coef[0], "offset": one.offset[0]}
    exec(one.code(), names)
    found = [float(names["score"](x)) for x in list(bags)[:9]]
    assert found == pytest.approx(model.decision_function(bags)[:9])
    assert len(one.code().splitlines()) <= 5
    with pytest.raises(ValueError, match="language"):
        one.code("fortran")


def test_a_damaged_file_is_refused(fitted, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    fitted[0].save(path)
    whole = path.read_bytes()
    for spoiled in (whole[:-300], whole[:200], b"", b"hello", whole.replace(b"query", b"quark")):
        path.write_bytes(spoiled)
        with pytest.raises(ValueError, match="damaged"):
            Scorer.load(path)
    rng = np.random.default_rng(0)
    for place in rng.integers(len(whole), size=40):  # any byte, or the same scores
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            again = Scorer.load(path)
        except ValueError:
            continue
        assert np.array_equal(again.query, fitted[0].scorer_.query)
    np.savez(path, tokens=np.zeros(3))
    with pytest.raises(ValueError, match="damaged"):
        Scorer.load(path)
    with pytest.raises(FileNotFoundError):
        Scorer.load(tmp_path / "nothing")


def test_tokens_are_scored_also_without_a_sharpness(fitted) -> None:
    _, bags, y, hidden = fitted
    model = NeedleClassifier(sharpness=0.0, ridge=0.01, units="own").fit(bags, y)
    scores = model.instance_scores(bags)
    assert [len(s) for s in scores] == bags.sizes.tolist()
    assert np.mean([s.mean() for s in scores]) == pytest.approx(
        np.mean(model.decision_function(bags))
    )
    top = np.array([s.argmax() for s in scores])[y > 0]
    assert np.mean(top == hidden.reshape(160, 8).argmax(axis=1)[y > 0]) > 0.6


def test_three_labels_are_one_against_the_rest(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    y = np.arange(120) % 3
    tokens = rng.normal(size=(120, 5, 4))
    tokens[:, 0] += 5 * np.eye(4)[y]
    model = NeedleClassifier(sharpness=2.0, ridge=0.01).fit(tokens, y)
    assert np.mean(model.predict(tokens) == y) > 0.9
    assert model.predict_proba(tokens).sum(axis=1) == pytest.approx(1)
    assert model.decision_function(tokens).shape == (120, 3)
    model.save(tmp_path / "three")
    again = NeedleClassifier.load(tmp_path / "three")
    assert np.array_equal(again.predict(tokens), model.predict(tokens))


def test_weights_groups_and_thresholds() -> None:
    rng = np.random.default_rng(2)
    y = np.where(rng.random(150) < 0.15, 1, -1)
    tokens = rng.normal(size=(150, 4, 3))
    tokens[y > 0, 0, 0] += 3
    options = {"sharpness": 1.0, "ridge": 0.1, "units": "own"}
    plain = NeedleClassifier(**options).fit(tokens, y)
    even = NeedleClassifier(class_weight="balanced", **options).fit(tokens, y)
    both = np.where(y > 0, np.sum(y < 0) / np.sum(y > 0), 1.0)
    same = NeedleClassifier(**options).fit(tokens, y, sample_weight=both)
    assert even.decision_function(tokens) == pytest.approx(same.decision_function(tokens))
    recall = lambda model: np.mean(model.predict(tokens)[y > 0] > 0)  # noqa: E731
    assert recall(even) > recall(plain) + 0.1
    f1 = NeedleClassifier(threshold="f1", **options).fit(tokens, y)
    assert f1.scorer_.threshold[0] < 0 and recall(f1) > recall(plain)
    sure = NeedleClassifier(threshold=0.2, calibrate=True, **options).fit(tokens, y)
    assert np.array_equal(sure.predict(tokens) > 0, sure.predict_proba(tokens)[:, 1] > 0.2)
    groups = np.arange(150) // 5
    grouped = NeedleClassifier(random_state=None, n_jobs=2, units="own", ridge=(0.1, 1.0), cv=3)
    assert grouped.fit(tokens, y, groups=groups).scores_.shape == (1, 8, 2)
    with pytest.raises(ValueError, match="sample_weight"):
        plain.fit(tokens, y, sample_weight=np.where(y > 0, 0.0, 1.0))


def test_thresholds_by_trying_all() -> None:
    rng = np.random.default_rng(3)
    s = np.round(rng.normal(size=40), 1)
    y = np.where(rng.random(40) < 0.3, 1, -1)
    cuts = np.linspace(-4, 4, 161) + 0.001
    calls = [np.where(s > cut, 1, -1) for cut in cuts]
    f1 = lambda said: 2 * np.sum((said > 0) & (y > 0)) / (np.sum(said > 0) + np.sum(y > 0))  # noqa: E731
    for goal, value in (("error", lambda said: np.mean(said == y)), ("f1", f1)):
        best = value(np.where(s > best_threshold(s, y, goal), 1, -1))
        assert best == pytest.approx(max(map(value, calls)))
    slope, _ = platt(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1, -1, 1, 1]))
    assert 0 < slope < 3  # separable, and yet not infinitely sure


def test_single_precision_stays_and_a_single_bag_is_refused(fitted) -> None:
    model, bags, y, _ = fitted
    single = bags.mapped(bags.tokens.astype(np.float32))
    assert as_bags(list(single)).tokens.dtype == np.float32
    again = NeedleClassifier(sharpness=2.0, ridge=0.01, units="own").fit(single, y)
    assert again.decision_function(single) == pytest.approx(model.decision_function(bags), abs=1e-4)
    with pytest.raises(ValueError, match=r"given as \[X\]"):
        model.predict(bags[0])
    assert len(bags[2:5]) == 3 and np.array_equal(bags[-1], list(bags)[-1])


def test_a_tuned_fit_holds_little_besides_the_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three folds and two units on single precision, small blocks: no copies, no casts."""
    monkeypatch.setattr(arrays, "_BLOCK", 2**16)
    tokens = np.random.default_rng(6).standard_normal((60_000, 64), dtype=np.float32)
    bags, y = Bags(tokens, np.arange(0, 60_001, 200)), np.resize([1, -1], 300)
    tracemalloc.start()
    NeedleClassifier(cv=3, ridge=0.1, sharpness=(0.0, 2.0)).fit(bags, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * tokens.nbytes


@pytest.mark.parametrize("length", [3, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_pieces_are_those_of_the_whole(
    length: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short bags by a sparse product, long ones each by its own; single precision to 10⁻⁵."""
    monkeypatch.setattr(arrays, "_BLOCK", 2**9)
    rng, close = np.random.default_rng(31), {"rel": 1e-5, "abs": 1e-4}
    tokens = (rng.normal(size=(20 * length, 8)) + 3).astype(dtype)
    starts = np.arange(0, len(tokens) + 1, length)
    starts[3:5] += 1  # not all of one length
    bags, x = Bags(tokens, starts), tokens.astype(float)
    q, scale, shift = rng.normal(size=8), rng.normal(size=len(x)), rng.normal(size=len(x))
    assert bags.along(q) == pytest.approx(x @ q, **close)
    assert bags.gathered(scale) == pytest.approx(x.T @ scale, **close)
    assert bags.returned(q, scale, shift) == pytest.approx(x.T @ (scale * (x @ q - shift)), **close)
    sums = [part.T @ w for part, w in zip(bags, np.split(scale, starts[1:-1]), strict=True)]
    assert bags.weighted(scale) == pytest.approx(np.array(sums), **close)


def test_a_covariance_of_many_tokens_is_one_of_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token of each four, of all negative bags and no other; the ratio of the variances of a
    direction is that of as many tokens."""
    rng, y = np.random.default_rng(32), np.resize([1, -1], 200)
    tokens = rng.normal(size=(200, 50, 4)) * [1.0, 2.0, 3.0, 4.0]
    tokens[y > 0] += 50.0
    bags = as_bags(tokens)
    whole = moments(bags, y)
    monkeypatch.setattr("needle.bags.units.ENOUGH", 1000)
    thin = moments(bags, y)
    ratio = np.diag(thin.gram) / np.diag(whole.gram)
    assert 0 < np.abs(ratio - 1).max() < 3.9 * np.sqrt(2 / 1250)
    assert np.abs(thin.mean).max() < 3.9 * 4 / np.sqrt(1250)
    kept, count = _thinned(bags, np.repeat((y < 0) * 2.0, 50))
    assert kept.tokens.shape == (1250, 4) and (count == 2).all()
    monkeypatch.setattr("needle.bags.units.ENOUGH", 2501)  # one of each two would be too few
    assert np.array_equal(moments(bags, y).gram, whole.gram)


def test_wide_sparse_text_needs_no_square_of_its_width() -> None:
    rng = np.random.default_rng(4)
    dense = rng.normal(size=(60, 300)) * (rng.random((60, 300)) < 0.1)
    y, starts = np.where(np.arange(20) % 2, 1, -1), np.arange(0, 61, 3)
    wide = as_bags([csr_array(part) for part in np.split(dense, starts[1:-1])])
    for units in ("common", "own"):
        found = moments(wide, y, units)
        assert found.gram.shape == (30, 30)
        silent = dense[np.repeat(y < 0, 3)] / found.spread
        covariance = np.cov(silent.T, bias=True)
        white = found.whitening(0.3)
        shrunk = 0.7 * covariance + 0.3 * np.trace(covariance) / 300 * np.eye(300)
        value, vector = np.linalg.eigh(shrunk)
        root = (vector / np.sqrt(value)) @ vector.T / found.spread[:, None]
        assert white.root == pytest.approx(root, abs=1e-8)
        assert white.trace == pytest.approx(
            np.trace(root.T @ np.cov(dense[np.repeat(y < 0, 3)].T, bias=True) @ root)
        )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    bags, y, _ = digit_bags(60, 5, 1, np.random.default_rng(5))
    path = tmp_path / "bags.csv"
    with path.open("w", newline="") as out:
        write = csv.writer(out).writerow
        write(["bag", "label", *(f"x{k}" for k in range(64))])
        for k, tokens in enumerate(bags):
            for token in tokens:
                write([f"b{k}", "zero" if y[k] > 0 else "none", *token])
    np.savez(tmp_path / "bags.npz", tokens=bags.tokens, starts=bags.starts, y=y)
    return path


def test_files_give_back_their_bags(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(file)
    assert len(whole.bags) == 60 and whole.names[7] == "b7" and set(whole.y) == {"zero", "none"}
    monkeypatch.setattr(tables, "PIECE", 13)  # bags cut by every piece
    parts = list(pieces(file))
    assert len(parts) > 10 and sum(len(part.bags) for part in parts) == 60
    assert np.array_equal(read(file).bags.tokens, whole.bags.tokens)
    npz = read(file.with_suffix(".npz"))
    assert np.array_equal(npz.bags.tokens, whole.bags.tokens)
    assert read(file, Columns(features=["x3", "x9"])).bags.tokens.shape == (300, 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[5].__setitem__(9, "x"), r"bags.csv: row 6, column 'x7': 'x'"),
        (lambda rows: rows[5].__setitem__(9, "nan"), r"row 6, column 'x7': 'nan'"),
        (
            lambda rows: rows[7].__setitem__(0, "b0"),
            r"row 8: bag 'b0' was complete",
        ),
        (lambda rows: rows[5].pop(), r"row 6 has 65 fields, the first row 66"),
        (lambda rows: rows[0].__setitem__(0, "id"), r"no column 'bag' among id, label"),
        (lambda rows: rows[2].__setitem__(1, "odd"), r"row 3, column 'label': 'odd', but"),
        (lambda rows: rows.__delitem__(slice(1, None)), r"no rows below"),
        (lambda rows: rows.clear(), r"row 1 must name"),
    ],
)
def test_errors_name_file_row_and_column(file: Path, change, words: str, capsys) -> None:
    with file.open(newline="") as lines:
        rows = list(csv.reader(lines))
    change(rows)
    with file.open("w", newline="") as out:
        csv.writer(out).writerows(rows)
    with pytest.raises(ValueError, match=words):
        read(file)
    assert command.main(["fit", str(file), "--model", str(file.with_name("m"))]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_the_command_fits_and_scores(file: Path, capsys) -> None:
    model, out = file.with_name("m.npz"), file.with_name("out.csv")
    assert command.main(["fit", str(file), "--model", str(model), "--threshold", "f1"]) == 0
    assert "def score(X)" in capsys.readouterr().out
    given = ["score", str(file), "--ignore", "label", "--model", str(model), "--out", str(out)]
    assert command.main(given) == 0
    rows = list(csv.reader(out.open()))
    table = read(file)
    chances = NeedleClassifier.load(model).predict_proba(table.bags)[:, 1]
    assert rows[0] == ["bag", "label", "P(none)", "P(zero)"] and len(rows) == 61
    assert [float(row[3]) for row in rows[1:]] == pytest.approx(chances, rel=1e-4, abs=1e-5)
    assert command.main(["score", str(file), "--model", str(file)]) == 2
    assert command.main(["report", str(file.with_name("no.csv"))]) == 2
    assert command.main(["plan"]) == 2
    assert "needs a FILE" in capsys.readouterr().err
    file.with_name("x.parquet").write_bytes(b"PAR1")
    assert command.main(["report", str(file.with_name("x.parquet"))]) == 2


def test_the_command_names_the_file_and_the_folder(file: Path, capsys) -> None:
    for content, told in (
        ("bag,label,größe\na,1,2\n".encode("latin-1"), "other.csv: near row 1: not CSV in UTF-8"),
        (b'bag,label,f\na,1,"' + 140_000 * b"1", "other.csv: near row"),
        (b"bag,label,f,who\na,1,2,Ann\n", "'Ann' is not a finite number; a column that"),
    ):
        other = file.with_name("other.csv")
        other.write_bytes(content)
        assert command.main(["report", str(other)]) == 2
        assert told in capsys.readouterr().err
    model = file.parent / "nowhere" / "model.npz"
    assert command.main(["fit", str(file), "--model", str(model)]) == 2
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_reports(file: Path, capsys) -> None:
    page = file.with_name("page.html")
    assert command.main(["report", str(file.with_suffix(".npz")), "--html", str(page)]) == 0
    assert "averaging (mean pooling)" in capsys.readouterr().out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
