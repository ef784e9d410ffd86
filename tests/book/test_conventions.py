"""What people type by habit works, or says in a line what it needs.

`jupyter-book build .` and everything that needs packages beyond those of the tests is tried in a
fresh clone by the weekly job `conventions`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts.book import browser_assets, build_book, executed, plain_build
from scripts.book.run_notebooks import ROOT, chapters

BLIND = """
import sys, pytest
class Blind:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "hypothesis":
            raise ImportError(name)
sys.meta_path.insert(0, Blind())
sys.exit(pytest.main(["-p", "no:hypothesispytest"]))
"""
PYTEST = [sys.executable, "-m", "pytest"]


def said(words: list[str], folder: Path = ROOT, **environment: str) -> tuple[int, str]:
    """How a command ends, and what it says."""
    done = subprocess.run(
        words, cwd=folder, env=os.environ | environment, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--nbval", "--nbval-lax"])
def test_pytest_takes_the_chapters_as_they_are(option):
    code, words = said([*PYTEST, "--collect-only", option, "chapters"])
    assert code == 0, words
    assert len(re.findall(r"::Cell \d+", words)) > 500


def test_pytest_with_the_packages_of_the_book_alone_says_what_it_needs():
    code, words = said([sys.executable, "-c", BLIND])
    assert code == 4
    assert "the tests need more than the book: `make test` installs it" in words
    assert "Traceback" not in words


def test_a_kernel_in_the_folder_of_the_chapters_finds_what_they_import():
    first = json.loads(chapters()[0].read_text(encoding="utf-8"))["cells"]
    imports = next("".join(cell["source"]) for cell in first if cell["cell_type"] == "code")
    code, words = said([sys.executable, "-c", imports], ROOT / "chapters", PYTHONPATH=str(ROOT))
    assert code == 0, words


@pytest.mark.slow
def test_on_colab_a_sweep_of_the_readers_own_runs_in_parallel(tmp_path):
    """After the cell that the book gives for it, whose lines are followed on a copy of it."""
    pages = [ROOT / "intro.md", ROOT / "README.md", *sorted((ROOT / "site").glob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    [cell] = set(re.findall(r"```\w+\n(!git clone.*?)```", text, re.S))
    clone, install, change, *rest = [line for line in cell.splitlines() if line.strip()]
    assert clone.startswith("!git clone")
    assert install.startswith(("!pip install", "%pip install"))
    folder = Path(re.search(r"%cd (\S+)", change)[1])
    target = tmp_path / "book"
    subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(target)], check=True)
    program = "\n".join([
        *rest,
        "import numpy as np",
        "from needle import SparseTokens, sweep",
        "def own(theta, rng):",
        "    return SparseTokens(10, 1, theta, 0.5).sample(5, 3, rng).X.mean()",
        "print(sweep(own, {'theta': [1.0, 2.0]}, trials=3, seed=0, n_jobs=2).values().shape)",
    ])  # fmt: skip
    place = target.joinpath(*folder.parts[1:])
    code, words = said([sys.executable, "-c", program], place, PYTHONPATH=str(target))
    assert code == 0, words
    assert "(2, 3)" in words


class Config(SimpleNamespace):
    """What Sphinx keeps of a configuration."""


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """Sphinx at the checkout, and a build that stages nothing."""
    staged: list[bool] = []
    monkeypatch.setattr(build_book, "stage", lambda pages, stored: staged.append(stored))
    monkeypatch.setattr(build_book, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(plain_build.process, "ROOT", tmp_path)
    monkeypatch.setattr(browser_assets, "main", lambda: None)
    monkeypatch.setattr(plain_build.live_assets, "complete", lambda: False)
    monkeypatch.setattr(build_book.live_pages, "WANTED", True)
    connected: dict = {}
    return SimpleNamespace(
        srcdir=Path(ROOT), confdir=Path(ROOT), connect=connected.__setitem__,
        connected=connected, staged=staged,
    )  # fmt: skip


def test_jupyter_book_builds_the_staged_book_and_says_first_what_it_leaves_out(app, capsys):
    config = Config()
    build_book.STAMP.write_text("of make")
    plain_build.send(app, config)
    assert app.staged == [True]
    assert app.srcdir == app.confdir == build_book.SOURCE
    assert config.external_toc_path == str(build_book.SOURCE / "_toc.yml")
    assert not build_book.STAMP.exists(), "make builds again what was built over"
    [line] = capsys.readouterr().err.splitlines()
    assert "chapters show the outputs stored with them" in line
    assert "no Python in the page" in line
    assert "'make book' executes every chapter" in line
    app.connected["build-finished"](app, OSError("so that no tables are computed"))
    assert capsys.readouterr().err.strip() == line


def test_jupyter_book_goes_on_without_what_npm_cannot_bring(app, capsys, monkeypatch, tmp_path):
    def gone() -> None:
        raise SystemExit("the registry does not answer")

    monkeypatch.setattr(browser_assets, "main", gone)
    monkeypatch.setattr(browser_assets, "SITE", tmp_path / "site")
    plain_build.send(app, Config())
    assert "no MathJax, so that formulas show as TeX (the registry" in capsys.readouterr().err
    assert (tmp_path / "site").is_dir()
    app.connected["build-finished"](app, OSError())


def test_a_staged_copy_is_left_as_it_is(app):
    app.srcdir = build_book.SOURCE
    plain_build.send(app, Config())
    assert app.staged == []


def test_no_page_says_that_it_was_executed_when_it_was_not():
    page = (ROOT / "site" / "execution.md").read_text(encoding="utf-8")
    assert "executed" not in page
    assert "no chapter was executed" in " ".join(build_book.STORED.split())
    assert "was executed from a fresh kernel" in executed.EXECUTED_NOW
