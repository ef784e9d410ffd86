"""The tools behind the book: stable notebooks, the cache, the gate of the build, the pins."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

import needle
from scripts.book import executed
from scripts.book.run_notebooks import ROOT, WIDGETS, stable_text, write
from scripts.check import run_tests
from scripts.run import lock as lock_script
from tests.book.conftest import code, shown, sound_notebook

PIN = re.compile(r"^[\w.-]+(\[[\w,]+\])?==[\w.]+$")


def with_widgets(*identifiers: str) -> str:
    notebook = sound_notebook()
    view = "application_vnd__jupyter__widget-view+json"
    for name in identifiers:
        notebook.cells.append(code("w", shown(**{view: {"model_id": name}})))
        notebook.cells[-1]["id"] = f"w-{len(notebook.cells)}"
    state = {name: {"state": {"layout": f"IPY_MODEL_{name}"}} for name in identifiers}
    notebook.metadata["widgets"] = {WIDGETS: {"state": state, "version_major": 2}}
    return stable_text(notebook)


def test_widget_ids_follow_the_order_of_creation() -> None:
    first = with_widgets("f" * 32, "0a" * 16)
    assert first == with_widgets("b1" * 16, "c2" * 16)
    assert "f" * 32 not in first


def test_a_file_is_replaced_only_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    assert write(path, "a")
    assert not write(path, "a")
    assert write(path, "b")
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_a_chapter_is_known_by_its_source_and_by_what_it_uses(tmp_path: Path) -> None:
    path = tmp_path / "07_needle.ipynb"
    notebook = sound_notebook()
    nbformat.write(notebook, path)
    key = executed.chapter_key(path, "utils")
    assert key != executed.chapter_key(path, "other utils")
    notebook.cells[3].outputs = []
    nbformat.write(notebook, path)
    assert key == executed.chapter_key(path, "utils")
    notebook.cells[3].source += "\n1"
    nbformat.write(notebook, path)
    assert key != executed.chapter_key(path, "utils")


def test_a_failing_test_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests, "REPORTS", tmp_path)
    source = "import pytest\ndef test_a(): pass\ndef test_b(): assert 0\n"
    source += "def test_c(): pytest.skip('no')\ndef test_d(missing): pass\n"
    (tmp_path / "test_sample.py").write_text(source)
    count = run_tests.pytest("sample", "-p", "no:cacheprovider", str(tmp_path / "test_sample.py"))
    assert (count.passed, count.failed, count.skipped) == (1, 2, 1)
    assert run_tests.pytest("broken", "--no-such-option").failed == 1
    assert run_tests.pytest("nothing", str(tmp_path / "absent.py")).failed == 1


class Book:
    """A book of two pages in a folder of its own, built by the project's scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("scripts", "site"):
            shutil.copytree(ROOT / name, folder / name)
        for name in ("_config.yml", "references.bib"):
            shutil.copy(ROOT / name, folder)
        shutil.copytree(ROOT / "locks", folder / "locks")
        (folder / "_vendor" / "site").mkdir(parents=True)
        for name in ("needle", "utils"):
            (folder / name).mkdir()
        (folder / "chapters").mkdir()
        self.write("utils/seven.py", '"""Seven."""\n')
        self.write("intro.md", "# A book\n")
        toc = {"format": "jb-book", "root": "intro", "chapters": [{"file": "chapters/07_needle"}]}
        self.write("_toc.yml", yaml.safe_dump(toc))
        self.cell("if False:\n    import utils.seven\nprint(7)")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def cell(self, source: str) -> None:
        notebook = sound_notebook()
        notebook.cells = [notebook.cells[0], code(source)]
        nbformat.write(notebook, self.folder / "chapters" / "07_needle.ipynb")

    def build(self) -> tuple[int, str]:
        command = [sys.executable, "-m", "scripts.book.build_book"]
        alone = os.environ | {"LIVE": "0"}  # without Python for the browser
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env=alone)
        return result.returncode, result.stdout + result.stderr


def test_the_build_executes_what_changed_and_fails_on_any_flaw(tmp_path: Path) -> None:
    book = Book(tmp_path / "book")
    committed = (book.folder / "chapters" / "07_needle.ipynb").read_bytes()
    status, said = book.build()
    assert status == 0, said
    assert "07_needle" in said
    assert (book.folder / "chapters" / "07_needle.ipynb").read_bytes() == committed
    page = book.folder / "_build" / "html" / "chapters" / "07_needle.html"
    assert "7" in page.read_text()
    assert "data-live" not in page.read_text()

    status, said = book.build()
    assert status == 0
    assert "nothing changed" in said
    assert "[1/1]" not in said

    page.unlink()
    status, said = book.build()
    assert (status, page.exists()) == (0, True)
    assert "[1/1]" not in said

    book.write("utils/seven.py", '"""Eight."""\n')
    status, said = book.build()
    assert status == 0
    assert "[1/1]" in said

    book.write("intro.md", "# A book\n\n[nowhere](absent.md)\n")
    status, said = book.build()
    assert status != 0, "a warning must fail the build"
    assert book.build()[0] != 0, "and fail it again"
    book.write("intro.md", "# A book\n")

    book.cell("1 / 0")
    status, said = book.build()
    assert status != 0
    assert "ZeroDivisionError" in said
    book.cell("print(7)")

    (book.folder / "chapters" / "07_needle.ipynb").unlink()
    status, said = book.build()
    assert status != 0
    assert "_toc.yml names chapters/07_needle" in said


def tracked() -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def locked(name: str) -> dict[str, str]:
    """Package and version of every line of a lock; each must carry at least one hash."""
    found = {}
    for entry in (ROOT / "locks" / f"{name}.txt").read_text().replace("\\\n", " ").splitlines():
        match = re.match(r"([\w.-]+)==([\w.]+) .*--hash=sha256:[0-9a-f]{64}", entry)
        assert match, entry
        found.setdefault(match[1].replace("_", "-").lower(), match[2])
    return found


def test_every_requirement_is_pinned_and_locked_with_its_hashes() -> None:
    for lock, names in lock_script.LOCKS.items():
        versions = locked(lock)
        for pin in lock_script.wanted(*names).split():
            assert PIN.match(pin), pin
            name, version = re.sub(r"\[.*\]", "", pin.lower()).replace("_", "-").split("==")
            assert versions[name] == version, pin
    assert (ROOT / "requirements.txt").read_text().rstrip().endswith("\n-e .")
    both = locked("test")
    assert {name: both.get(name) for name in locked("book")} == locked("book")


def test_no_download_address_and_no_path_of_a_machine_is_recorded() -> None:
    here = "|".join(re.escape(f"{folder}/") for folder in (ROOT, Path.home()))
    address = re.compile(rf"registry\.npm|files\.pythonhosted|pypi\.org/simple|\"resolved\"|{here}")
    own = Path(__file__)
    files = [path for path in tracked() if path != own and path.suffix not in (".png", ".svg")]
    assert [path.name for path in files if address.search(path.read_text(errors="replace"))] == []


def test_nothing_third_party_is_committed() -> None:
    command = ["git", "ls-files", "_vendor", "node_modules", "_build", ".venv"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout == ""


def test_one_address_of_the_repository() -> None:
    url = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["repository-code"] == url
    for name in ("README.md", "intro.md", "site/about.md"):
        found = re.findall(r"https://github\.com/[\w-]+/[\w-]+", (ROOT / name).read_text())
        assert set(found) <= {url}


def test_the_citation_is_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    preferred = citation["preferred-citation"]
    bibtex = re.sub(r"\n {9,}", " ", (ROOT / "intro.md").read_text())
    for record in (citation, preferred):
        assert record["version"] == needle.__version__
        assert record["authors"] == [{"name": "The authors of Attention and the needle"}]
        assert f"title   = {{{record['title']}}}" in bibtex
    assert f"version = {{{needle.__version__}}}" in bibtex
    assert f"author  = {{{{{preferred['authors'][0]['name']}}}}}" in bibtex
    assert str(preferred["year"]) == str(citation["date-released"])[:4]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "LICENSE-TEXT.md"])
def test_links_of_the_pages_beside_the_book_lead_somewhere(name: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text())
    local = [target for target in targets if not target.startswith("http")]
    assert [target for target in local if not (ROOT / target).exists()] == []


def test_make_knows_every_target_that_is_written_about() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, re.M))
    for name in ("README.md", "CONTRIBUTING.md", "site/about.md", *run_tests.WORKFLOWS):
        text = (ROOT / name).read_text()
        written = re.findall(r"(?:^|`|: )(?:\w+=\S+ )?make ([\w-]+)", text, re.M)
        assert set(written) <= targets
