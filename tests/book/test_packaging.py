"""The wheel: the package under its public name, and what a notebook on Colab does with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from scripts.run_notebooks import ROOT, chapters

DATA = ("explorers", "results")
PREDICT = """
from {name}.model import SparseTokens
from {name}.laws import pooled
from {name}.asymptotics import predict_readout
law = pooled(SparseTokens(L=10, R=1, theta=5.0, pi=0.5))
print(round(predict_readout(law, 2.0, 0.1).test_error, 6))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel installs, and nothing else of ours."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def run(code: str, site: Path) -> str:
    """What isolated Python prints: it sees the wheel and the dependencies, not the checkout."""
    blind = f"import sys; sys.path = [p for p in sys.path if p != {str(ROOT)!r}]\n"
    command = [sys.executable, "-c", blind + code]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    result = subprocess.run(
        command, cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_wheel_holds_one_typed_package(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"needle"}
    folders = {ROOT / "utils": installed / "needle"}
    folders |= {ours / name: theirs / name for ours, theirs in folders.items() for name in DATA}
    for ours, theirs in folders.items():
        here = {path.name for path in ours.iterdir()} - {"__pycache__"}
        assert {path.name for path in theirs.iterdir()} == here


def test_both_names_compute_the_same(installed: Path) -> None:
    checkout = subprocess.run(
        [sys.executable, "-c", PREDICT.format(name="utils")],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run(PREDICT.format(name="needle"), installed) == checkout.stdout.strip()


def test_the_first_cell_on_colab_gives_the_chapters_their_name(installed: Path) -> None:
    cell = re.search(r"^import needle.*$", (ROOT / "intro.md").read_text(), re.M)
    assert cell, "the landing page says what to run on Colab"
    code = f"{cell[0]}\n{PREDICT.format(name='utils')}\nimport utils.laws as m; print(m.__file__)"
    *_, place = run(code, installed).splitlines()
    assert Path(place) == installed / "needle" / "laws.py"


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
    others = {name for name in imports if name not in sys.stdlib_module_names} - {"utils"}
    assert {"sklearn": "scikit-learn"}.keys() <= others
    assert {name.replace("sklearn", "scikit-learn") for name in others} <= names


def test_importing_the_package_changes_no_setting_of_matplotlib(installed: Path) -> None:
    code = (
        "import matplotlib as m; before = dict(m.rcParams); import needle.figures;"
        " print(before == dict(m.rcParams))"
    )
    assert run(code, installed) == "True"
