"""What teachers are given: the course, ideas, projects, problem sets, sources of slides."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import nbformat
import pytest

from exercises import names
from exercises.desk import find
from scripts.book import lab, plain_html, slides, teaching
from scripts.book import problems as sets
from scripts.book.run_notebooks import ROOT, chapters

PLAN = teaching.plan()
PROJECTS = sorted(path.stem for path in teaching.PROJECTS.glob("*.ipynb"))
TALKS = sorted(slides.SOURCES.glob("*.md"))
LEFT = re.compile(r"\{[\w:]+\}`|^(?::::|```)|\(eq-[\w-]+\)|\]\((?!https://)|:label:", re.M)


def test_each_exercise_carries_one_idea() -> None:
    listed = [label for labels in PLAN["ideas"].values() for label in labels]
    assert sorted(listed) == sorted(names()) == sorted(teaching.problems())
    assert all(3 <= len(labels) <= 12 for labels in PLAN["ideas"].values())


def test_every_proof_has_a_list_to_check_it_by() -> None:
    proofs = [label for label, found in teaching.problems().items() if found.kind == "Proof"]
    assert len(proofs) > 30
    assert [label for label in proofs if len(find(label).proof) < 2] == []


def test_the_course_has_twelve_sessions_and_sets_of_one_to_two_hours() -> None:
    assert len(PLAN["course"]) == 12
    given: list[str] = []
    for name, page, labels in PLAN["course"]:
        assert (ROOT / f"{page}.ipynb").exists(), name
        assert set(labels) <= set(teaching.problems()), name
        assert 45 <= sum(teaching.problems()[label].minutes for label in labels) <= 120, name
        given += labels
    assert len(set(given)) == len(given)


def test_the_page_tells_kind_effort_and_answer_of_every_exercise() -> None:
    page = teaching.teaching_page()
    for problem in teaching.problems().values():
        effort = f"{problem.kind.lower()} {'★' * problem.stars} {problem.minutes} min"
        assert f"<{problem.label}>`, {effort}{', list' * (problem.answered == 'list')}" in page
    assert {problem.answered for problem in teaching.problems().values()} == {"check", "list"}


def test_six_projects_begin_with_a_notebook_and_say_what_a_good_result_shows() -> None:
    assert sorted(PLAN["projects"]) == PROJECTS and len(PROJECTS) == 6
    for name in PROJECTS:
        notebook = nbformat.read(teaching.PROJECTS / f"{name}.ipynb", as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert 3 <= len(code) <= 7 and not any(cell.outputs for cell in code)
        assert max(len(cell.source.splitlines()) for cell in code) <= 20
        text = notebook.cells[-1].source
        assert text.startswith("## Now you") and "**A good result**" in text
        assert len(re.findall(r"^\d\. ", text, re.M)) == 4
        assert name in teaching.projects()


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
@pytest.mark.parametrize("name", PROJECTS)
def test_the_notebook_of_a_project_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib.use("Agg")
    monkeypatch.chdir(ROOT)
    space: dict[str, Any] = {}
    for cell in nbformat.read(teaching.PROJECTS / f"{name}.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{name}.ipynb", "exec"), space)
    matplotlib.pyplot.close("all")
    assert "fig" in space or "found" in space


ALL = sets.sets()


def test_there_is_a_set_for_every_chapter_with_exercises_and_every_session() -> None:
    of_chapters = [name for name in ALL if name.startswith("chapter-")]
    assert sum(len(ALL[name][1]) for name in of_chapters) == len(names())
    assert len([name for name in ALL if name.startswith("session-")]) == 12


@pytest.mark.parametrize("name", ALL)
def test_a_set_is_plain_and_holds_no_solution(name: str, tmp_path: Path) -> None:
    title, chosen = ALL[name]
    notebook = sets.sheet(title, sets.told(chosen), chosen)
    nbformat.validate(notebook)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert LEFT.findall(text) == []
    for problem in chosen:
        assert problem.title in text and problem.body.splitlines()[0] in text
        assert solutions().get(problem.label, "-" * 99) not in text
    assert len(solutions()) > 40
    page = sets.printable(notebook)
    assert page.count("<h2>") == len(chosen) and "check(" not in page
    assert "$" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)


@cache
def solutions() -> dict[str, str]:
    """The first line of text of each solution that has one."""
    found = {}
    for path in chapters():
        for cell, after in pairwise(nbformat.read(path, as_version=4).cells):
            begun = re.search(r"\{solution-start\} (\S+)", cell.source)
            line = next(filter(None, after.source.splitlines()), "")
            if begun and after.cell_type == "markdown" and len(line) > 30:
                found[begun[1]] = lab.words(line, "")
    return found


def test_a_reference_names_the_chapter_and_leads_to_the_published_book() -> None:
    text = sets.statement(teaching.problems()["f-exponent"], 2)
    assert text.startswith("## 2. ") and ", Appendix F](https://" in text
    assert "/chapters/F_places.html)" in text
    text = sets.statement(teaching.problems()["ch11-whitening"], 1)
    assert ", Chapter 11](https://" in text


@pytest.mark.slow
def test_a_notebook_of_problems_runs_and_says_what_is_asked(tmp_path: Path) -> None:
    [path] = sets.main(["session-07"], tmp_path, pdf=False)
    space: dict[str, Any] = {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            exec(cell.source, space)
    assert space["check"]("ch5-nothing").right is None
    with pytest.raises(SystemExit, match="there is no set"):
        sets.main(["session-13"], tmp_path, pdf=False)


def test_there_are_slides_for_the_six_core_chapters() -> None:
    assert [path.stem[:2] for path in TALKS] == ["01", "03", "04", "05", "06", "07"]


@pytest.mark.parametrize("path", TALKS, ids=lambda path: path.stem)
def test_slides_show_what_the_chapter_has_and_each_has_notes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    parts = text.split("\n---\n")
    assert 6 <= len(parts) <= 10 and len(text.splitlines()) <= 120
    cells = nbformat.read(ROOT / "chapters" / f"{path.stem}.ipynb", as_version=4).cells
    chapter = "\n".join(cell.source for cell in cells)
    shown = re.findall(r"!\[\]\(([^)]*)\)", text)
    assert len(shown) >= 4
    for name in shown:
        kind, _, rest = name.partition("-" if name.startswith("figure-") else ":")
        number = rest.replace("-", ".")
        there = f"**Figure {number}.**" if kind == "figure" else f'explore("{rest}")'
        assert there in chapter, name
    for part in parts:
        said = part.partition("\nNotes:")[2].split()
        assert 8 <= len(said) <= 80, part[:40]


def test_a_slide_takes_its_figure_from_the_page() -> None:
    page = (
        '<figure id="figure-3-1" class="book-figure"><div class="plate"><img src="../_images/a.png"'
        ' loading="lazy" width="9"/></div><figcaption>Long</figcaption></figure>'
        '<div class="explorer" data-explorer="needle"><svg></svg></div>'
    )
    source = "## One\n\n![](figure-3-1)\n\n$x<y$\n\nNotes: Say *this*."
    made = slides.slide(source, page, "chapters/03_x.html")
    assert '<img src="../_images/a.png"' in made and "Long" not in made and "lazy" not in made
    assert '<a href="../chapters/03_x.html#figure-3-1">Figure 3.1</a>' in made
    assert '<aside class="notes"><p>Say <em>this</em>.' in made and r"\(x&lt;y\)" in made
    source = "![](explorer:needle)\n\nNotes: Play."
    assert 'data-explorer="needle"' in slides.slide(source, page, "chapters/03_x.html")
    for wrong in ("![](figure-3-2)\n\nNotes: x", "![](explorer:hay)\n\nNotes: x", "## No notes"):
        with pytest.raises(SystemExit):
            slides.slide(wrong, page, "chapters/03_x.html")


def test_the_script_of_the_speakers_window_is_read_as_a_browser_reads_it() -> None:
    assert slides.speaker_script(r"a=`<p><script>x = /\\?/;<\/script>`") == r"x = /\?/;"
    for changed in ("no script", r"`<script>${a}<\/script>`", r"`<script>'\n'<\/script>`"):
        with pytest.raises(SystemExit, match="mend"):
            slides.speaker_script(changed)


def test_formulas_are_left_to_the_page() -> None:
    assert plain_html.rendered("$$\na < b\n$$").strip().startswith('<div class="math block">')
    assert "<td>" in plain_html.rendered("| a |\n| --- |\n| b |")
    assert plain_html.page("A & B", "", "x", "../").count("../vendor/mathjax") == 1
