"""The list of mutants: each still applies, names tests that exist, and no module is left out."""

from __future__ import annotations

import ast

import pytest

from scripts.mutants import ROOT, Mutant, listed

MUTANTS = listed([])
# what is drawn, plain records, plain sliders, what the tests of the site hold, and one not yet done
WITHOUT = {"figures", "records", "explore_base", "explore_numbers", "bag_amp"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.module}: {m.old[:40]}")
def test_a_mutant_applies_once_and_is_python(mutant: Mutant) -> None:
    assert mutant.old != mutant.new
    ast.parse(mutant.source())
    for words in mutant.attempts():
        assert (ROOT / words[0]).exists(), words


def test_every_module_has_mutants() -> None:
    modules = {path.stem for path in (ROOT / "utils").glob("[!_]*.py")}
    assert modules - WITHOUT == {mutant.module for mutant in MUTANTS}
