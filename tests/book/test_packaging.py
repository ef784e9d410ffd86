"""The wheel and the sdist: the library under its own name, and nothing of the book."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from scripts.book.run_notebooks import ROOT, chapters

PREDICT = """
from needle import SparseTokens, pooled, predict_readout
law = pooled(SparseTokens(L=10, R=1, theta=5.0, pi=0.5))
print(round(predict_readout(law, 2.0, 0.1).test_error, 6))
"""
TYPED = """
from needle import SparseTokens, pooled, predict_readout
from needle.readout import fit_readout

error: float = predict_readout(pooled(SparseTokens(10, 1, 5.0, 0.5)), 2.0, 0.1).test_error
reveal_type(fit_readout)
"""
HATCH = [sys.executable, "-m", "hatchling", "build", "-d"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel, built from the sdist, installs."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([*HATCH, str(folder), "-t", "sdist"], cwd=ROOT, check=True, capture_output=True)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        packed.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    subprocess.run(
        [*HATCH, str(folder), "-t", "wheel"], cwd=source, check=True, capture_output=True
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def run(code: str, site: Path, *command: str) -> str:
    """What Python prints that sees the wheel and its dependencies, not the checkout."""
    blind = f"import sys; sys.path = [p for p in sys.path if p != {str(ROOT)!r}]\n"
    words = list(command) or [sys.executable, "-c", blind + code]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    result = subprocess.run(
        words, cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.strip()


def test_the_wheel_holds_the_library_and_nothing_of_the_book(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"needle"}
    here = {
        p.relative_to(ROOT) for p in (ROOT / "needle").rglob("*") if "__pycache__" not in p.parts
    }
    assert {path.relative_to(installed) for path in (installed / "needle").rglob("*")} == here
    for path in (installed / "needle").rglob("*.py"):
        assert "utils" not in path.read_text(encoding="utf-8").replace("sklearn.utils", "")


def test_the_wheel_computes_what_the_checkout_does(installed: Path) -> None:
    checkout = subprocess.run(
        [sys.executable, "-c", PREDICT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run(PREDICT, installed) == checkout.stdout.strip()
    place, version = run(
        "import needle; print(needle.__file__, needle.__version__)", installed
    ).split()
    assert Path(place) == installed / "needle" / "__init__.py"
    (metadata,) = installed.glob("*.dist-info/METADATA")
    assert f"Version: {version}\n" in metadata.read_text()


def test_the_command_answers(installed: Path) -> None:
    (entry,) = installed.glob("*.dist-info/entry_points.txt")
    assert "needle = needle.__main__:main" in entry.read_text()
    code = (
        "import runpy; sys.argv[1:] = 'plan --L 10 --R 1 --d 100 --n 400 --pi .5 --theta 5'.split()"
    )
    said = run(f"{code}; runpy.run_module('needle', run_name='__main__')", installed)
    assert "best possible" in said


def test_types_are_seen_from_outside(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(TYPED)
    words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    words += ["--ignore-missing-imports", str(tmp_path / "use.py")]
    said = run("", installed, *words)
    assert "Revealed type is" in said and 'Any"' not in said.splitlines()[0]


def test_the_facade_is_light_and_complete() -> None:
    code = "import sys, needle; print([m for m in ('numpy', 'scipy') if m in sys.modules])"
    words = [sys.executable, "-c", code]
    assert subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.strip() == "[]"
    import needle
    import utils

    for package in (needle, utils):
        for name in dir(package):
            assert getattr(package, name) is not None
        with pytest.raises(AttributeError, match="has no nowhere"):
            package.nowhere  # noqa: B018


def test_the_extra_book_brings_what_the_chapters_import() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras, wanted = project["optional-dependencies"], list(project["dependencies"])
    wanted += extras["book"]
    for line in extras["book"]:
        if found := re.fullmatch(r"attention-and-the-needle\[(.*)\]", line):
            wanted += [one for extra in found[1].split(",") for one in extras[extra]]
    names = {re.match(r"[\w-]+", line)[0] for line in wanted}
    cells = [
        "".join(cell["source"])
        for path in chapters()
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    imports = re.findall(r"^(?:from|import) (\w+)", "\n".join(cells), re.M)
    ours = {"needle", "utils"}
    others = {name for name in imports if name not in sys.stdlib_module_names} - ours
    assert {"sklearn": "scikit-learn"}.keys() <= others
    assert {name.replace("sklearn", "scikit-learn") for name in others} <= names


def test_importing_the_figures_changes_no_setting_of_matplotlib() -> None:
    code = (
        "import matplotlib as m; before = dict(m.rcParams); import utils.figures;"
        " print(before == dict(m.rcParams))"
    )
    words = [sys.executable, "-c", code]
    assert subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.strip() == "True"
