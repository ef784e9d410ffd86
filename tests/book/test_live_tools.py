"""What stands behind the pages that run: the files that are fetched, and what runs the cells."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot

from needle.trials.grid import sweep
from scripts.book import live_assets, live_licences, live_pages
from scripts.book.run_notebooks import ROOT, chapters

sys.path.insert(0, str(ROOT / "site"))  # beside which the page has `_live`
import _live.kernel
from _live import screen


def wheel(path: Path, name: str, **files: str) -> Path:
    """A wheel with a test in it."""
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(f"{name}/__init__.py", "x = 1\n")
        packed.writestr(f"{name}/tests/test_it.py", "assert False\n")
        packed.writestr(
            f"{name}-1.dist-info/METADATA", "Name: n\nVersion: 1\nLicense-Expression: MIT\n"
        )
    return path


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A complete set of files in a folder of its own."""
    for name, folder in {
        "FOLDER": "",
        "WHEELS": "wheels",
        "SITE": "site",
        "STAMP": "stamp",
    }.items():
        monkeypatch.setattr(live_assets, name, tmp_path / folder)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.whl").write_bytes(b"a")
    lines = [live_assets.stamp_text(), f"{live_assets.sha256(b'a')} a.whl"]
    (tmp_path / "stamp").write_text("\n".join(lines))
    return tmp_path


def test_a_complete_set_is_left_alone(shelf: Path) -> None:
    assert live_assets.complete()


@pytest.mark.parametrize("content", [None, b"b"])
def test_a_missing_or_altered_file_is_named(
    shelf: Path, content: bytes | None, capsys: pytest.CaptureFixture
) -> None:
    path = shelf / "site" / "a.whl"
    path.unlink() if content is None else path.write_bytes(content)
    assert not live_assets.complete()
    assert "a.whl is missing or altered" in capsys.readouterr().out


def test_a_build_without_the_files_says_what_to_do(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shelf / "stamp").unlink()
    monkeypatch.setattr(live_pages, "WANTED", True)
    with pytest.raises(SystemExit, match="run scripts/book/live_assets"):
        live_pages.stage(tmp_path / "source", [], {})
    live_pages.stage(tmp_path / "source", [], {}, preview=True)
    monkeypatch.setattr(live_pages, "WANTED", False)
    live_pages.stage(tmp_path / "source", [], {})
    assert not (tmp_path / "source").exists()


def test_a_wheel_that_is_not_the_lock_s_is_refused_by_name(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    official = {"packages": {"n": {"file_name": "n-1.whl", "sha256": "0" * 64, "depends": []}}}
    lock = {"from_carrier": ["n"], "from_index": [], "carrier": {"folder": "inside"}}
    carried = io.BytesIO()
    with zipfile.ZipFile(carried, "w") as packed:
        packed.write(wheel(tmp_path / "n-1.whl", "n"), "inside/n-1.whl")
    monkeypatch.setattr(live_assets, "carrier", lambda package: zipfile.ZipFile(carried))
    with pytest.raises(SystemExit, match=r"n-1\.whl is not what the lock names"):
        live_assets.fetch_wheels(lock, official)
    assert not (shelf / "wheels" / "n-1.whl").exists()
    official["packages"]["n"]["sha256"] = live_assets.sha256((tmp_path / "n-1.whl").read_bytes())
    assert live_assets.fetch_wheels(lock, official)["n"]["file_name"] == "n-1.whl"
    monkeypatch.setattr(live_assets, "carrier", None)  # what has been fetched is kept
    live_assets.fetch_wheels(lock, official)


def test_wheels_lose_their_tests_and_pack_to_the_same_bytes(tmp_path: Path) -> None:
    path = wheel(tmp_path / "n-1.whl", "n")
    content = live_assets.stripped(path)
    assert content == live_assets.stripped(path)
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert names == ["n/__init__.py", "n-1.dist-info/METADATA"]
    assert live_licences.terms(path) == ("n", "1", "MIT")


def test_every_chapter_finds_what_it_imports() -> None:
    lock = json.loads(live_assets.LOCK.read_text())
    names = [*lock["from_carrier"], *lock["from_index"]]
    modules = {"scikit-learn": ["sklearn"], "python-dateutil": ["dateutil"], "pillow": ["PIL"]}
    entries = {name: {"imports": modules.get(name, [name]), "depends": []} for name in names}
    for path in chapters():
        packages, missing = live_pages.needs(path, entries)
        assert missing == [], path.stem
        assert {"numpy", "scipy", "matplotlib"} <= set(packages)


@pytest.fixture
def kernel() -> Iterator[ModuleType]:
    """The module that runs in the browser, here; no figure of another test is open."""
    pyplot.close("all")
    main = sys.modules["__main__"]
    yield _live.kernel
    sys.modules["__main__"] = main


def ran(kernel: Any, source: str) -> list[tuple[str, str]]:
    left: list[tuple[str, str]] = []
    kernel.run(source, "<cell 1>", lambda kind, text: left.append((kind, text)))
    return left


def test_a_cell_leaves_what_a_notebook_would(kernel: ModuleType) -> None:
    page = kernel.Kernel()
    assert ran(page, "x = 2\nprint(x)\nx + 1") == [("stdout", "2"), ("stdout", "\n"), ("text", "3")]
    assert ran(page, "x + 1;") == []
    assert ran(page, "class A:\n    def _repr_html_(self): return '<b>'\nA()") == [("html", "<b>")]
    [(kind, text)] = ran(page, "def f():\n    return 1 / 0\nf()")
    assert kind == "error" and "ZeroDivisionError" in text
    assert 'File "<cell 1>", line 3' in text and "kernel.py" not in text
    [(kind, text)] = ran(page, "1 +")
    assert kind == "error" and text.count("File") == 1


def test_values_are_displayed_before_a_cell_ends(kernel: ModuleType) -> None:
    page = kernel.Kernel()
    left = ran(page, "display(1, 'a')\nprint('b')\n2")
    assert left == [
        ("text", "1"),
        ("text", "'a'"),
        ("stdout", "b"),
        ("stdout", "\n"),
        ("text", "2"),
    ]
    [(kind, text)] = ran(page, "input('name? ')")
    assert kind == "error" and "write the answer into the cell" in text
    assert page.snapshot()[1] == []


def test_a_flood_of_output_is_gathered_and_cut(kernel: ModuleType) -> None:
    """A page gets few messages, in their order, and no more text than can be read."""
    page = kernel.Kernel()
    left = ran(page, "for k in range(3000):\n    print(k)")
    assert len(left) < 100
    assert "".join(text for _, text in left).split() == [str(k) for k in range(3000)]
    left = ran(page, f"for k in range({screen.LONGEST}):\n    print('0123456789')\n'end'")
    shown = "".join(text for kind, text in left if kind == "stdout")
    assert shown == ("0123456789\n" * screen.LONGEST)[: screen.LONGEST]
    assert [kind for kind, _ in left if kind != "stdout"] == ["stderr", "text"]
    left = ran(page, "print('before')\nimport sys\nprint('apart', file=sys.stderr)\n1 / 0")
    assert [kind for kind, _ in left if _.strip()] == ["stdout", "stderr", "error"]
    [(kind, text)] = ran(page, "'x' * 1_000_000")
    assert kind == "text" and len(text) < screen.LONGEST + 100 and "more" in text
    [(kind, text)] = ran(page, "raise ValueError('x' * 1_000_000 + 'last')")
    assert kind == "error" and len(text) < screen.LONGEST + 100 and "last" in text


def test_a_figure_is_shown_once(kernel: ModuleType) -> None:
    page = kernel.Kernel()
    source = "import matplotlib.pyplot as plt\nplt.switch_backend('agg')\n_ = plt.plot([1])"
    [(kind, text)] = ran(page, source)
    assert kind == "image" and text.startswith("iVBORw0KGgo")
    assert ran(page, "1;") == []


def test_a_progress_bar_is_no_output(kernel: ModuleType) -> None:
    source = "from tqdm import tqdm\nfor k in tqdm(range(3), mininterval=0, disable=None): pass"
    left = ran(kernel.Kernel(), source)
    assert {kind for kind, _ in left} == {"progress"}
    assert "3/3" in left[-1][1]


def test_pools_do_their_work_at_once(kernel: ModuleType) -> None:
    def double(x: float, rng: np.random.Generator) -> float:
        return 2 * x + rng.normal()

    plan: dict[str, Any] = {"grid": {"x": [1.0, 2.0]}, "trials": 3, "seed": 0}
    with kernel.AtOnce(2) as pool:
        assert list(pool.map(abs, [-1, 2])) == [1, 2]
        abroad = sweep(double, **plan, executor=pool).values()
    assert np.array_equal(abroad, sweep(double, **plan, n_jobs=1).values())


def test_python_answers_with_the_value_or_what_was_printed(kernel: ModuleType) -> None:
    page = kernel.Kernel()
    assert page.python("1 + 1") == "2"
    assert page.python("print('a')\nprint('b')") == "a\nb"
    with pytest.raises(ZeroDivisionError):
        page.python("1 / 0")


def test_variables_outlive_the_thread(kernel: ModuleType) -> None:
    """Functions, classes, caches and generators come back, and functions see the new variables."""
    page = kernel.Kernel()
    source = """
import numpy as np
from numpy import ndarray
from functools import cache
rng, factor = np.random.default_rng(3), 2
same = rng
def double(x): return factor * x
@cache
def slow(x): return double(x)
class Point:
    def __init__(self, x): self.x = x
    def far(self): return factor * self.x
kinds = {"twice": lambda x: factor * x}
def sum_of_large(): return large.sum()
p, thread, large = Point(double(3)), (k for k in range(3)), np.zeros(5_000_000)
rng.normal()
"""
    assert page.run(source, "<cell 1>", lambda kind, text: None)
    content, lost = page.snapshot()
    assert lost == ["large", "thread"]
    expected = page.python("float(rng.normal())")
    other = kernel.Kernel()
    other.restore(content)
    assert other.python("factor = 10\ndouble(1), slow(2), p.x, same is rng") == "(10, 20, 6, True)"
    assert other.python("p.far(), kinds['twice'](1), 'large' in globals()") == "(60, 10, False)"
    assert len(content) < 10_000  # what a function reads is not written once more
    assert other.python("float(rng.normal())") == expected
    assert np.isfinite(float(expected))
