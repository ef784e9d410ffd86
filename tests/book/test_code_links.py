"""Names in code become links to their documentation, and nothing else does."""

from __future__ import annotations

import sys

import pytest

from scripts.book.run_notebooks import ROOT

sys.path.insert(0, str(ROOT / "site" / "ext"))
code = pytest.importorskip("needle_code")

ADDRESSES = {"needle.plans.plan": "../api/plans.html#plan", "needle.plans": "../api/plans.html#top"}
CELL = '<div class="highlight-python notranslate"><div class="highlight"><pre>{}</pre></div></div>'
NAME = '<span class="n">{}</span>'
LINK = '<a class="code-link" href="../api/plans.html#plan">{}</a>'
INLINE = '<code class="docutils literal notranslate"><span class="pre">{}</span></code>'


def linked(body: str, source: str = "from needle.plans import plan") -> str:
    return code.linked(body, code.imported(source), ADDRESSES)


def test_imports_are_read_from_cells() -> None:
    source = "import numpy\nfrom needle.plans import plan as p, other\nfrom scipy import stats"
    assert code.imported(source) == {
        "p": "needle.plans.plan",
        "other": "needle.plans.other",
        "needle.plans": "needle.plans",
    }
    assert code.imported("%matplotlib inline") == code.imported("") == {}


def test_a_name_is_a_link_wherever_it_is_used_by_itself() -> None:
    name = NAME.format("plan")
    assert linked(CELL.format(name)) == CELL.format(LINK.format(name))
    renamed = NAME.format("p")
    found = linked(CELL.format(renamed), "from needle.plans import plan as p")
    assert found == CELL.format(LINK.format(renamed))
    module = '<span class="nn">needle.plans</span>'
    assert 'href="../api/plans.html#top"' in linked(CELL.format(module))


@pytest.mark.parametrize(
    "inside",
    [
        '<span class="o">.</span><span class="n">plan</span>',
        '<span class="n">plan</span><span class="o">=</span>',
        '<span class="nf">plan</span>',
        '<span class="n">other</span>',
    ],
)
def test_attributes_keywords_definitions_and_strangers_are_left_alone(inside: str) -> None:
    assert linked(CELL.format(inside)) == CELL.format(inside)


def test_words_of_the_text_are_linked_once() -> None:
    for text in ("plan", "plan()", "needle.plans.plan"):
        assert linked(INLINE.format(text)) == LINK.format(INLINE.format(text))
    inside = f'<a href="x.html">{INLINE.format("plan")}</a>'
    assert linked(inside) == inside
    assert linked(INLINE.format("plain")) == INLINE.format("plain")
    assert linked(NAME.format("plan")) == NAME.format("plan")
