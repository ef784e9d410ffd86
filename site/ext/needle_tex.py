"""Formulas as text, where no formula can stand: in the index of the search, in a description."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

TOKEN = re.compile(r"\\operatorname\*|\\[A-Za-z]+|\\.|.", re.S)  # a command, or a letter
SIGNS = {"infty": "∞", "le": "≤", "ge": "≥", "to": "→", "sim": "∼"}
WORDS = SIGNS | {"ell": "ℓ", "cdot": "·", "perp": "⊥"}
WORDS |= dict.fromkeys(("text", "mathrm", "mathbf", "operatorname", "hat", "bar", "tilde"), "")
WORDS |= dict.fromkeys(("left", "right", "big", "Big", "tfrac", "frac", "quad", "qquad"), "")
SHORT = SIGNS | {"log": "log ", ",": " "}
APART = re.compile(r"(?<=\w) (?=\w\b|\d)")  # a space before a single letter or a digit


def letter(name: str) -> str:
    """The Greek letter of a command; nothing for other commands."""
    try:
        return unicodedata.lookup(f"GREEK SMALL LETTER {name.upper()}")
    except KeyError:
        return ""


def argument(tokens: list[str], at: int) -> tuple[list[str], int]:
    """What the command before this place takes, without its braces, and where the rest begins."""
    while at < len(tokens) and tokens[at].isspace():
        at += 1
    if tokens[at : at + 1] != ["{"]:
        return tokens[at : at + 1], at + 1
    depth = 0
    for end in range(at, len(tokens)):
        depth += (tokens[end] == "{") - (tokens[end] == "}")
        if not depth:
            return tokens[at + 1 : end], end + 1
    return tokens[at + 1 :], len(tokens)


class Atom(NamedTuple):
    """A piece of a formula: a command or a letter, its argument, and what is set around it."""

    head: str
    inner: list[str]  # of a command that takes an argument
    scripts: list[tuple[str, list[str]]]  # a mark, "_", "^" or "'", and what it sets
    end: int  # where the next piece begins


def atoms(tokens: list[str], takes: set[str]) -> Iterator[Atom]:
    r"""The pieces of a formula without spaces, in order; `takes` are the commands with an argument.

    >>> [(a.head, a.scripts) for a in atoms(list("x_i'=y^{2}"), set())]
    [('x', [('_', ['i']), ("'", [])]), ('=', []), ('y', [('^', ['2'])])]
    """
    at = 0
    while at < len(tokens):
        head, at, inner, scripts = tokens[at], at + 1, list[str](), []
        if head in takes:
            inner, at = argument(tokens, at)
        elif head in ("_", "^"):  # of nothing that stands here
            at -= 1
        while at < len(tokens) and tokens[at] in ("_", "^", "'", "′"):
            mark, at, set_there = tokens[at], at + 1, list[str]()
            if mark in ("_", "^"):
                set_there, at = argument(tokens, at)
            scripts.append((mark, set_there))
        yield Atom(head, inner, scripts, at)


def _words(tokens: list[str], root: str) -> str:
    told, at = "", 0
    while at < len(tokens):
        token, at = tokens[at], at + 1
        if token == r"\sqrt":
            inside, at = argument(tokens, at)
            told += root.format(_words(inside, root))
        elif token in (r"\begin", r"\end"):
            told, at = f"{told} ", argument(tokens, at)[1]
        elif token[1:].isalpha():
            told += letter(token[1:]) or f" {WORDS.get(token[1:], token[1:])} "
        else:
            told += " " if token[0] in "\\{}$_&" else token
    return " ".join(told.split())


def words_of(tex: str) -> str:
    """A formula in the words one would type: sqrt(2 log L), θ ≥ 3, 10^9."""
    return _words(TOKEN.findall(tex), " sqrt({}) ")


def in_words(tex: str) -> str | None:
    """A short formula as text, such as √L or θ = 5; None where that needs more than letters."""
    told, at, tokens = "", 0, TOKEN.findall(tex)
    while at < len(tokens):
        token, at = tokens[at], at + 1
        name = token[1:]
        if token == r"\sqrt":
            inside, at = argument(tokens, at)
            under = in_words("".join(inside))
            if under is None or not under.isalnum():
                return None
            told += f"√{under}"
        elif token[0] == "\\" and (known := (name.islower() and letter(name)) or SHORT.get(name)):
            told += known
        elif token[0] in "\\{}^_":
            return None
        else:
            told += token
    return " ".join(told.split())


def in_letters(tex: str) -> str:
    r"""A formula about as wide in letters as it will be when it is set.

    >>> in_letters(r"\(\theta\sim L^{1/2}\)"), in_letters(r"\(\alpha_0\)")
    ('θ ∼ L1/2', 'α0')
    """
    for half in (r"\frac12", r"\tfrac12", r"\dfrac12"):
        tex = tex.replace(half, "12")
    return APART.sub("", _words(TOKEN.findall(tex.replace("^", " ")), " √{} "))
