"""The list of mutants: each still applies, names tests that exist, and no module is left out."""

from __future__ import annotations

import ast

import pytest

from scripts.mutants import REPORT, ROOT, Mutant, Verdict, listed, report

MUTANTS = listed([])
# what is drawn, plain records, plain sliders, and what the tests of the site hold
WITHOUT = {"figures", "records", "explore_base", "explore_numbers"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.module}: {m.old[:40]}")
def test_a_mutant_applies_once_and_is_python(mutant: Mutant) -> None:
    assert mutant.old != mutant.new
    ast.parse(mutant.source())
    for words in mutant.attempts():
        assert (ROOT / words[0]).exists(), words


def test_every_module_has_mutants() -> None:
    modules = {path.stem for path in (ROOT / "utils").glob("[!_]*.py")}
    assert modules - WITHOUT == {mutant.module for mutant in MUTANTS}


def test_the_page_of_mutants_is_that_of_the_list() -> None:
    """`make mutants` writes it: where the list has changed, it is to be run again."""

    def changes(page: str) -> list[str]:
        return [line.rsplit(" | ", 1)[0] for line in page.splitlines() if line.startswith("| ")]

    due = changes(report(MUTANTS, [Verdict(None, 0.0)] * len(MUTANTS)))
    assert changes(REPORT.read_text(encoding="utf-8")) == due
