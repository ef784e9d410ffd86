"""The symbols of the boxes are those of notation.md, and the check sees one that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.book.chapter import Box
from scripts.book.run_notebooks import ROOT, chapters
from scripts.check import notation

TEXT = (ROOT / "site" / "notation.md").read_text(encoding="utf-8")
KNOWN = notation.known_symbols()


def missing(body: str, known: set[str] | None = None) -> list[str]:
    return notation.undefined(Box("prf:theorem", "A", "thm-7-a", body, ""), known or KNOWN)


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_every_symbol_of_a_box_is_defined(path: Path) -> None:
    assert notation.breaches(path, KNOWN) == []


def test_no_symbol_has_two_meanings_without_a_mark() -> None:
    assert notation.collisions(TEXT) == []


@pytest.mark.parametrize(
    ("planted", "names"),
    [
        ("The error is $\\Upsilon$ if $\\theta>0$.", ["\\Upsilon"]),
        ("Then $\\varepsilon=\\Phi(-\\hat y)$.", ["\\hat y"]),
        ("Then $s_q>s_{\\sharp}$ and $w^{(3)}=0$ and $w^{(2)}+1=0$.", ["s_\\sharp", "w^(2)"]),
        (
            "Then $$\\begin{aligned}\\varepsilon&=\\pi\\,H_2+\\tfrac12\\Gamma_2\\end{aligned}$$",
            ["H_2"],
        ),
        ("Then $e^{\\vartheta R}\\to\\infty$.", ["\\vartheta"]),
    ],
)
def test_an_undefined_symbol_is_found(planted: str, names: list[str]) -> None:
    assert missing(planted) == names


@pytest.mark.parametrize(
    "sound",
    [
        "Let $\\Upsilon>0$ and $\\vartheta$ be given. Then $\\Upsilon<\\vartheta$.",
        "Then $\\Upsilon=\\theta^2$ and $\\varepsilon<\\Upsilon$.",
        "For every $\\Upsilon>0$ the error $\\varepsilon$ is below $\\Upsilon$.",
        "The error is $\\min_\\Upsilon\\pi\\Phi(\\Upsilon-\\delta)$.",
        "It is $\\sum_{\\Upsilon\\le R}x_\\ell^{\\Upsilon}$ of $X\\in\\mathbb R^{L\\times d}$.",
        "It is $\\Phi(-\\Upsilon)$, $\\Upsilon$ being the distance.",
        "Put $A_1,\\dots,A_n$ for any $A\\in\\mathbb R^d$.",
        "Then $y_i\\langle w,f_i\\rangle\\ge0\\text{ or Upsilon}$.",
    ],
)
def test_a_definition_in_the_box_is_seen(sound: str) -> None:
    assert missing(sound) == []


def test_a_symbol_taken_from_the_page_is_missed() -> None:
    assert missing("Then $\\theta>\\delta$.", KNOWN - {"\\delta"}) == ["\\delta"]


def test_a_collision_is_found_unless_it_is_marked() -> None:
    twice = "| $\\delta$ | the width of a window | |"
    assert notation.collisions(f"{TEXT}\n{twice}\n") == ["\\delta"]
    marked = TEXT.replace("| $\\delta=\\theta R/\\sqrt L$ |", "| $\\delta=\\theta R/\\sqrt L$ ∗ |")
    assert notation.collisions(f"{marked}\n{twice}\n") == ["\\delta"]
    assert notation.collisions(f"{marked}\n{twice.replace(' | the', ' ∗ | the')}\n") == []


def test_the_page_defines_what_stands_in_its_first_column() -> None:
    head, row = (
        "| symbol | meaning |",
        "| $\\hat q=q/\\lvert q\\rvert$, $D_0$; $w\\in\\mathbb R^d$ | $u$ |",
    )
    found = notation.table_symbols(f"{head}\n|---|---|\n{row}")
    assert [name for name, _ in found] == ["\\hat q", "D_0", "w"]
