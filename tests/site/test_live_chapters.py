"""The chapters, executed by the Python in the reader's browser: what they claim holds there too."""

from __future__ import annotations

import json
import re
from typing import Any

import nbformat
import pytest

from exercises.places import label
from scripts.book import live_assets
from scripts.book.run_notebooks import ROOT, chapters
from tests.site.reader import AGREEMENTS, Site, cell, python, same_digits, settled

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not live_assets.WANTED, reason="LIVE=0 leaves Python out of the pages"),
]
WHOLE = ("01_model", "03_separation", "04_alignment")
OTHERS = [path.stem for path in chapters() if path.stem not in WHOLE]
THEORY = """
from needle.steps.alignment import predict_alignment
from needle.readout.limit import predict_readout
from needle.readout.capacity import predict_capacity
from needle.data.classifiers import attention
from needle.learning.limit import predict_learning
from needle.data.tokens import SparseTokens
model = SparseTokens(L=10, R=3, theta=6.0, pi=0.2)
law = attention(model, temperature=1.0, cos=0.8)
records = [predict_alignment(model, 0.5), predict_readout(law, 2.0, 0.1)]
records.append(predict_learning(SparseTokens(L=10, R=1, theta=2.0, pi=0.5), 3.0))
numbers = [predict_capacity(law), *(x for record in records for x in vars(record).values())]
numbers = [float(x) for x in numbers if x is not None]
"""
HOLDS = re.compile("agrees|recomputed: equal")
FORGET = "for name in [n for n in globals() if n[0] != '_']:\n    del globals()[name]"


@pytest.fixture(scope="module")
def page(live: Site) -> Any:
    """A page whose Python serves several chapters, which is faster than to start one for each."""
    return live.start("02_linear_baselines")


@pytest.mark.xdist_group("others")
def test_theory_is_that_of_the_book(page: Any) -> None:
    ours: dict[str, Any] = {}
    exec(THEORY, ours)
    theirs = json.loads(python(page, f"{THEORY}\nprint(numbers)"))
    assert len(theirs) > 12
    assert theirs == pytest.approx(ours["numbers"], rel=1e-9, abs=1e-12)


@pytest.mark.xdist_group("others")
def test_an_answer_is_judged_by_the_python_of_the_page(page: Any) -> None:
    name = f".exercise-answer[data-exercise={label('linear', 'label-noise')}]"
    answers = {"wrong": "lambda rho: 1 / (1 - 2 * rho)", "right": "lambda rho: (1 - 2 * rho) ** -2"}
    for state, answer in answers.items():
        page.locator(f"{name} textarea").fill(answer)
        page.locator(f"{name} button").first.click()
        page.wait_for_selector(f"{name}[data-state={state}]")


@pytest.mark.xdist_group("others")
@pytest.mark.parametrize("name", OTHERS)
def test_other_chapters_run_to_their_first_agreement(page: Any, name: str) -> None:
    notebook = nbformat.read(ROOT / "chapters" / f"{name}.ipynb", as_version=4)
    code = [c.source for c in notebook.cells if c.cell_type == "code"]
    last = next(k for k, source in enumerate(code) if re.search(r"\bagree\(", source))
    python(page, FORGET)
    for source in code[:last]:
        python(page, source)
    assert HOLDS.search(python(page, code[last]))


@pytest.mark.xdist_group("whole")
@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_chapter_runs_and_every_agreement_holds(live: Site, name: str) -> None:
    page = live.start(name)
    stored = page.evaluate(AGREEMENTS)
    page.get_by_text("Run all", exact=False).first.click()
    settled(page)
    ran = page.evaluate(AGREEMENTS)
    failed = [(k, cell(page, k).inner_text()[-500:]) for k, state, *_ in ran if state != "live"]
    assert failed == []
    assert sum(told is not None for _, _, told, _ in ran) > 10
    for (k, _, verdict, rows), (_, _, told, table) in zip(stored, ran, strict=True):
        assert (verdict is None) == (told is None), k
        assert [name for name, _ in rows] == [name for name, _ in table], k
        assert all(map(same_digits, [x for _, x in rows], [x for _, x in table])), (k, rows, table)
        assert told is None or HOLDS.search(told), k
    drawn = "figure.book-figure img:is([src^='data:'], [src^='blob:'])"  # by the page itself
    images = f"() => document.querySelectorAll(`{drawn}`).length"
    assert page.evaluate(images) > 5
    page.close()
