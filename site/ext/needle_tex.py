"""Formulas as text, where no formula can stand: in the index of the search, in a description."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

SIGNS = {"infty": "∞", "le": "≤", "ge": "≥", "to": "→", "sim": "∼"}
WORDS = SIGNS | {"ell": "ℓ", "cdot": "·", "perp": "⊥"}
WORDS |= dict.fromkeys(("text", "mathrm", "mathbf", "operatorname", "hat", "bar", "tilde"), "")
WORDS |= dict.fromkeys(("left", "right", "big", "Big", "tfrac", "frac", "quad", "qquad"), "")


def _named(tex: str, commands: str, other: Callable[[str], str]) -> str:
    """The formula with Greek letters for their names, and what `other` makes of other commands."""

    def word(match: re.Match[str]) -> str:
        try:
            return unicodedata.lookup(f"GREEK SMALL LETTER {match[1].upper()}")
        except KeyError:
            return other(match[1])

    return re.sub(rf"\\({commands})", word, tex)


def _spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def words_of(tex: str) -> str:
    """A formula in the words one would type: sqrt(2 log L), θ ≥ 3, 10^9."""
    tex = re.sub(r"\\[()\[\]]|\\(?:begin|end)\{\w+\*?\}", " ", tex)
    tex = re.sub(r"\\sqrt\s*(?:\{([^{}]*)\}|(\w))", r" sqrt(\1\2) ", tex)
    tex = _named(tex, "[A-Za-z]+", lambda name: f" {WORDS.get(name, name)} ")
    return _spaced(re.sub(r"\\.|[\\{}$_&]", " ", tex)).strip()


def in_words(tex: str) -> str | None:
    """A short formula as text, such as √L or θ = 5; None where that needs more than letters."""
    names = SIGNS | {"sqrt": "√", "log": "log ", ",": " "}
    text = _named(tex, "[a-z]+|,", lambda name: names.get(name, rf"\{name}"))
    text = re.sub(r"√\s*(?:\{(\w+)\}|(\w))", r"√\1\2", text)
    return None if re.search(r"[\\{}^_]", text) else _spaced(text)


def in_letters(tex: str) -> str:
    r"""A formula about as wide in letters as it will be when it is set.

    >>> in_letters(r"\(\theta\sim L^{1/2}\)"), in_letters(r"\(\alpha_0\)")
    ('θ ∼ L1/2', 'α0')
    """
    inside = re.sub(r"[_^]", "{}", re.sub(r"\\[()]|\\[td]?frac(?=12\b)", "", tex))
    text = re.sub(r"sqrt\(([^()]*)\)", r"√\1", words_of(inside))
    return re.sub(r"(?<=\w) (?=\w\b|\d)", "", text)
