"""The ledger: generated, linked, sorted, and refused where a claim or an agreement is left over."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from scripts.book import ledger, ledger_calibration, statements
from scripts.book.run_notebooks import ROOT
from scripts.check import fresh_chapters
from utils.agreement_table import MIME, Agreement, Row

BOX = "```{prf:theorem} So\n:label: thm-7-a\n\nIt is.\n```\n\n**Status:** derived here.\n"
CLAIM = """
[[claim]]
words = "It is so, $|z|$ and all"
whose = "paper"
stated = "thm-7-a"
agreements = ["ch7-one"]
"""
REST = """
[[claim]]
words = "Chapter 7, to the side"
whose = "book"
stated = "chapters/07_needle"
status = "measured"
agreements = ["ch7-*"]
rest = true
"""
OPEN = """
[[claim]]
words = "No algorithm does"
whose = "book"
stated = "chapters/07_needle"
status = "conjectured"
reason = "a claim about all algorithms"
"""


def agreement(name: str) -> nbformat.NotebookNode:
    rows = (Row("a", 1.0, 1.02, 0.02, 1.0, 40), Row("b", 2.0, 1.9, 0.05, -2.0, 50))
    found = Agreement(name, rows, 1e-4, 4.0)
    return new_code_cell(outputs=[new_output("display_data", found._repr_mimebundle_())])


@pytest.fixture
def chapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A chapter with a theorem and two agreements."""
    monkeypatch.setattr(statements, "ROOT", tmp_path)
    path = tmp_path / "chapters" / "07_needle.ipynb"
    path.parent.mkdir()
    words = [new_markdown_cell("# A needle"), new_markdown_cell(BOX)]
    cells = [*words, agreement("ch7-one"), agreement("ch7-another-thing")]
    nbformat.write(new_notebook(cells=cells), path)
    return path


def lines(chapter: Path, text: str) -> list[list[str]]:
    page = ledger.ledger_page({chapter: chapter}, text).split("## All z-scores")[0]
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows][2:]


def test_each_claim_has_a_line_with_the_loudest_row_of_its_agreement(chapter: Path) -> None:
    one, other, open_ = lines(chapter, CLAIM + REST + OPEN)
    assert one[:4] == [
        "It is so, $\\vert z\\vert $ and all",
        "the paper",
        "derived",
        "{prf:ref}`thm-7-a`",
    ]
    assert 'href="chapters/07_needle.html#agreement-ch7-one">ch7-one</a>' in one[4]
    assert one[5:] == ["2", "1.9", "0.05", "−2", "50"]
    assert other[0] == "Chapter 7, to the side: another thing"
    assert other[2:4] == ["measured", "[7. A needle](chapters/07_needle.ipynb)"]
    assert open_[2] == "conjectured"
    assert open_[4] == "not checked: a claim about all algorithms"


def test_an_agreement_that_no_claim_owns_stops_the_build(chapter: Path) -> None:
    with pytest.raises(SystemExit, match=r"that no claim .* owns: ch7-another-thing"):
        lines(chapter, CLAIM)


def test_a_claim_without_agreement_or_reason_stops_the_build(chapter: Path) -> None:
    with pytest.raises(SystemExit, match="without agreement or reason: “No algorithm does”"):
        lines(chapter, CLAIM + REST + OPEN.replace("reason", "# reason"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ch7-one", "ch7-gone", "ch7-gone"),
        ("thm-7-a", "thm-7-b", "which does not exist"),
        ('"paper"', '"nobody"', "nobody"),
        ('stated = "thm-7-a"', 'stated = "chapters/07_needle"', "without status"),
    ],
)
def test_a_claim_that_points_nowhere_stops_the_build(
    chapter: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(SystemExit, match=message):
        lines(chapter, CLAIM.replace(old, new) + REST)


def test_every_claim_and_agreement_of_the_book_is_in_its_ledger() -> None:
    pages = {path: path for path in sorted((ROOT / "chapters").glob("*.ipynb"))}
    page = ledger.ledger_page(pages)
    assert [name for name in ledger.agreements(pages) if f">{name}</a>" not in page] == []
    for claim in ledger.claims(ledger.CLAIMS.read_text(encoding="utf-8")):
        assert claim.rest or ledger.line([claim.words])[:-1] in page


def test_a_statement_that_no_claim_names_stops_the_build(chapter: Path) -> None:
    lost = BOX.replace("thm-7-a", "lem-7-b")
    notebook = nbformat.read(chapter, as_version=4)
    notebook.cells.append(new_markdown_cell(lost))
    nbformat.write(notebook, chapter)
    with pytest.raises(SystemExit, match=r"no claim .* names: lem-7-b"):
        lines(chapter, CLAIM + REST)
    also = CLAIM + 'also = ["lem-7-b"]\n'
    assert lines(chapter, also + REST)[0][3] == "{prf:ref}`thm-7-a`, {prf:ref}`lem-7-b`"
    with pytest.raises(SystemExit, match="also stated at lem-7-c, which does not exist"):
        lines(chapter, also.replace("lem-7-b", 'lem-7-b", "lem-7-c') + REST)


def test_the_distance_knows_that_z_scores_are_rounded() -> None:
    z = np.random.default_rng(3).standard_normal(200_000)
    assert ledger_calibration.rounded_distance(np.round(z, 1)) < 0.004
    assert ledger_calibration.rounded_distance(np.round(1.1 * z, 1)) > 0.015


def test_the_pictures_show_what_the_table_says(chapter: Path) -> None:
    """Bars have the heights of the counts, dots lie on the diagonal where the law is normal."""
    z = np.round(np.random.default_rng(5).standard_normal(900), 1)
    left, right = ledger_calibration.pictures(z).axes
    counts, _ = np.histogram(z, ledger_calibration.EDGES)
    assert [bar.get_height() for bar in left.patches] == counts.tolist()
    curve = left.lines[0]
    assert np.trapezoid(curve.get_ydata(), curve.get_xdata()) == pytest.approx(450, rel=0.01)
    x, y = right.lines[-1].get_data()
    assert len(x) == 900 and np.corrcoef(x, y)[0, 1] > 0.99
    page = ledger.ledger_page({chapter: chapter}, CLAIM + REST)
    assert page.count('<svg class="plot broad" role="img"') == 1 and "var(--c-vectorized)" in page
    assert "the standard normal law" in page


def test_chapters_are_executed_again_at_other_seeds(
    chapter: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another shift gives other numbers, the same one the same; what is refused is only noted."""
    notebook = nbformat.read(chapter, as_version=4)
    notebook.cells = [
        new_code_cell("import numpy as np\nfrom utils.agreement import agree"),
        new_code_cell('agree(0.0, np.random.default_rng(0).normal(size=50), claim="ch7-one")'),
        new_code_cell('agree(5.0, np.random.default_rng(1).normal(size=50), claim="ch7-two")'),
    ]
    nbformat.write(notebook, chapter)
    monkeypatch.setattr(fresh_chapters, "FOLDER", tmp_path / "fresh")
    one, two = fresh_chapters.look(chapter, 1), fresh_chapters.look(chapter, 2)
    assert [record["verdict"] == "agrees" for record in one] == [True, False]
    assert one != two
    assert fresh_chapters.look(chapter, 1) == one


def test_agreements_get_the_ids_that_the_ledger_links_to(chapter: Path) -> None:
    ledger.mark_agreements(chapter)
    cells = nbformat.read(chapter, as_version=4).cells
    pages = [o["data"]["text/html"] for cell in cells for o in cell.get("outputs", [])]
    assert [page.count('<details id="agreement-ch7-') for page in pages] == [1, 1]
    assert all(MIME in o["data"] for cell in cells for o in cell.get("outputs", []))


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_cells_sort_by_value_and_lines_are_found_by_all_words() -> None:
    module = (ROOT / "site" / "static" / "ledger.mjs").as_uri()
    code = f"""
        import {{ order, matches }} from "{module}";
        const sorted = (cells, name) => cells.sort((a, b) => order(a, b, name));
        console.log(JSON.stringify([
            sorted(["10", "–", "9", "−2", "1e-05"], "trials"),
            sorted(["−2", "1.5", "∞", "0"], "z"),
            sorted(["0.2", "exact", "0.01"], "s.e."),
            sorted(["ch10-a", "ch2-b", "ch2-a"], "checked"),
            [matches("The Needle wins", "wins needle"), matches("The needle", "needle hay")],
        ]));"""
    command = ["node", "--input-type=module", "-e", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == [
        ["−2", "1e-05", "9", "10", "–"],
        ["0", "1.5", "−2", "∞"],
        ["exact", "0.01", "0.2"],
        ["ch2-a", "ch2-b", "ch10-a"],
        [True, False],
    ]
