"""One meaning a letter: the symbols of the boxes against those that notation.md defines.

    python -m scripts.check.notation [notebooks]     print every symbol that a box leaves undefined

A symbol is a letter with what is fixed to it: \\hat q, s_\\perp, \\theta_c, w^{(1)} and
\\alpha^\\star are symbols of their own, while the indices of x_\\ell and y_i, powers and arguments
are left away. A box may use the symbols in the first column of the tables of notation.md, and those
it defines: bound by a sum or a minimum; on the left of '=', '\\in', '\\sim' or '\\to'; named after
words such as 'let', 'with', 'for every' or 'the cosine'; explained by an 'is the' that follows.

What this cannot see: whether a symbol is used in the sense that notation.md gives it; a definition
that only follows the use; that 'the error x' defines nothing; digits, units and operators; letters
inside words of a formula.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import nbformat

from scripts.book.chapter import Box, boxes
from scripts.book.run_notebooks import ROOT, chapters

sys.path.insert(0, str(ROOT / "site" / "ext"))
import needle_tex

NOTATION = ROOT / "site" / "notation.md"
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$(.+?)(?<!\\)\$", re.S)
GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi "
    "pi rho varrho sigma tau upsilon phi varphi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell"
)
LETTERS = {f"\\{name}" for name in GREEK.split()}
SHAPED = {"\\hat", "\\bar", "\\tilde", "\\check", "\\widehat", "\\overline", "\\mathcal"}
WORDS = {"\\text", "\\mathrm", "\\operatorname", "\\operatorname*", "\\begin", "\\end", "\\textbf"}
WORDS |= {"\\mathbb", "\\mathbf", "\\tag", "\\label"}
BINDERS = {
    "\\sum",
    "\\prod",
    "\\min",
    "\\max",
    "\\sup",
    "\\inf",
    "\\lim",
    "\\int",
    "\\operatorname*",
}
INDICES = set("ijkmnry") | {"\\ell", ",", "'"}
STARS = {("\\star",), ("*",), ("\\ast",)}
RELATIONS = {"=", ":", "\\in", "\\sim", "\\to", "\\mapsto", "\\colon"}
SIZES = re.compile(
    r"\\\\\[[^\]]*\]|\\(?:[bB]igg?[lrm]?|left|right|middle|[,;:!> ]|q?quad|displaystyle|limits)"
    r"(?![a-zA-Z])|&"
)
TAKES = SHAPED | (WORDS - BINDERS) | {"\\operatorname*"}
ENDS = {",", ";", ")", "\\\\"}
BEGINS = {",", ";", "\\\\", "{", "}"}
COMPARISONS = {"<", ">", "\\le", "\\ge", "\\ne", "\\gg", "\\ll"}
OPEN, CLOSE = (
    {"(", "[", "{", "\\{", "\\langle", "\\lvert"},
    {")", "]", "}", "\\}", "\\rangle", "\\rvert"},
)
PLAIN = r"(?:\s+(?!(?:is|are|be|than|to|at|by|in|from|equals|exceeds|tends|has|have|if)\b)[\w*-]+)"
BEFORE = re.compile(
    rf"(?:\b(?:let|with|where|write|for|every|each|some|all|any|put|fix|draw|set|call|given|if|"
    rf"denote|as){PLAIN}{{0,4}}|\b(?:a|an|the|its|their|two|inputs){PLAIN}{{1,4}})[\s:(]*$",
    re.I,
)
BETWEEN = re.compile(r"^[\s,;]*(?:and|or)?\s*$")
AFTER = re.compile(r"^[\s,(]*(?:is the|is a|are the|being|denotes?|marks|stands? for|the|an?)\b")


class Reader:
    """Reads a formula: the symbols it uses and those it binds or defines."""

    def __init__(self, tex: str) -> None:
        self.used: list[str] = []
        self.defined: set[str] = set()
        tex = re.sub(r"\\(?:text|mathrm|textbf|operatorname|label)\{[^{}]*\}", " ", tex)
        self.read(tokens_of(tex))

    def read(self, tokens: list[str]) -> list[str]:
        """Collect the symbols of a list of tokens; return those at the head of its pieces."""
        heads, fresh = list[str](), True
        for atom in needle_tex.atoms(tokens, TAKES):
            if atom.head in BINDERS:
                for mark, inner in atom.scripts:
                    found = self.read(inner)
                    self.defined.update(found if mark == "_" else ())
                fresh = False
            elif atom.head in SHAPED | LETTERS or (atom.head.isalpha() and len(atom.head) == 1):
                name = self.symbol(atom)
                self.used.append(name)
                following = next(iter(tokens[skip_arguments(tokens, atom.end) :]), ",")
                if fresh and following in ENDS | RELATIONS | COMPARISONS:
                    heads.append(name)
                    self.defined |= {name} if following in RELATIONS else set()
                fresh = False
            else:
                for _, inner in atom.scripts:
                    self.read(inner)
                if atom.head not in WORDS:  # \\begin{aligned}: what follows is still a head
                    begins = atom.head in BEGINS | RELATIONS
                    fresh = begins or (fresh and atom.head in ("-", "("))
                fresh = fresh and not atom.scripts
        return heads

    def symbol(self, atom: needle_tex.Atom) -> str:
        """The name of the symbol; other symbols in its exponent are collected."""
        name, subscript, star = atom.head, "", ""
        if name in SHAPED:
            shapes = [name, *(token for token in atom.inner if token in SHAPED)]
            base = [token for token in atom.inner if token in LETTERS or token.isalnum()]
            name = " ".join([*shapes[:1], *base[:1]])
        for mark, inner in atom.scripts:
            if mark not in ("_", "^"):
                name = "\\Phi'" if name == "\\Phi" else name
            elif mark == "_":
                if not set(inner) <= INDICES:
                    spaced = (f"{token} " if token in LETTERS else token for token in inner)
                    subscript = f"_{''.join(spaced).strip()}"
            elif tuple(inner) in STARS:
                star = "^*"
            elif len(inner) == 3 and inner[0] == "(" and inner[1].isdigit():
                star = f"^({inner[1]})"
            elif name == "\\chi" and inner == ["2"]:
                name = "\\chi^2"  # the law of a squared length; its subscript counts dimensions
            else:
                self.read(inner)
        return name + ("" if name == "\\chi^2" else subscript) + star


def tokens_of(tex: str) -> list[str]:
    """The tokens of a formula, without what only spaces it."""
    return [token for token in needle_tex.TOKEN.findall(SIZES.sub(" ", tex)) if token.strip()]


def skip_arguments(tokens: list[str], at: int) -> int:
    """Where a formula goes on after the arguments (…) of a function."""
    depth = 0
    for end in range(at, len(tokens)) if tokens[at : at + 1] == ["("] else ():
        depth += (tokens[end] == "(") - (tokens[end] == ")")
        if not depth:
            return end + 1
    return at


def pieces(source: str) -> Iterator[tuple[str, str, str]]:
    """(text before, formula, text after) of every formula of a markdown text."""
    last, found = 0, list(FORMULA.finditer(source))
    for match, following in zip_longest(found, found[1:]):
        end = following.start() if following else len(source)
        yield source[last : match.start()], match[1] or match[2], source[match.end() : end]
        last = match.end()


def defined_in(source: str) -> tuple[set[str], list[str]]:
    """The symbols that a text defines, and all that it uses."""
    defined, used, cue = set(), [], False
    for before, tex, after in pieces(source):
        reader = Reader(tex)
        heads = Reader("").read(tokens_of(tex))
        cue = bool(BEFORE.search(before)) or (cue and bool(BETWEEN.match(before)))
        if cue or AFTER.match(after):
            defined.update(heads)
        defined |= reader.defined
        used += reader.used
    return defined, used


def split(tex: str) -> list[str]:
    """The parts of a formula between its commas, those inside brackets left alone."""
    depth, parts = 0, [""]
    for token in tokens_of(tex):
        depth += (token in OPEN) - (token in CLOSE)
        if token in (",", ";") and not depth:
            parts.append("")
        else:
            parts[-1] += f" {token}"
    return parts


def table_symbols(text: str) -> Iterator[tuple[str, bool]]:
    """(symbol, marked with ∗) of the first column of every table row of notation.md."""
    for line in text.splitlines():
        if not line.startswith("|") or re.match(r"\|\s*(?:-|symbol)", line):
            continue
        cell = re.split(r"(?<!\\)\|", line)[1]
        for _, tex, after in pieces(cell):
            mark = "∗" in after.split(",")[0].split(";")[0]
            for part in split(tex):
                reader = Reader(part)
                if reader.used:
                    yield reader.used[0], mark


def collisions(text: str) -> list[str]:
    """Symbols that notation.md defines more than once without the mark ∗ at each place."""
    rows = list(table_symbols(text))
    count = Counter(name for name, _ in rows)
    return sorted({name for name, mark in rows if count[name] > 1 and not mark})


def undefined(box: Box, known: set[str]) -> list[str]:
    """Symbols of a box that neither notation.md nor the box defines, in order of appearance."""
    defined, used = defined_in(box.body)
    missing = []
    for name in used:
        base, _, subscript = name.partition("_")
        family = subscript.isalnum() and base in defined  # A_1, …, A_n of a family A
        first = needle_tex.TOKEN.match(subscript)  # m_{t-1} of m_t, M_{χ/2} of M_χ
        family |= first is not None and f"{base}_{first[0]}" in known | defined
        family |= "/" in subscript and any(d.startswith(f"{base}_") for d in known | defined)
        free = base in ("I", "O", "o")
        if not (name in known | defined or free or family or name in missing):
            missing.append(name)
    return missing


def breaches(path: Path, known: set[str]) -> list[str]:
    """'label: symbols' for each box of a notebook that leaves symbols undefined."""
    cells = nbformat.read(path, as_version=4).cells
    found = [box for cell in cells if cell.cell_type == "markdown" for box in boxes(cell.source)]
    result = []
    for box in found:
        if box.kind.startswith("prf:") and (missing := undefined(box, known)):
            result.append(f"{box.label}: {'  '.join(missing)}")
    return result


def known_symbols() -> set[str]:
    """All symbols that notation.md defines."""
    return {name for name, _ in table_symbols(NOTATION.read_text(encoding="utf-8"))}


def main() -> int:
    paths = [Path(name) for name in sys.argv[1:]] or chapters()
    lines = [f"{path.stem}: {line}" for path in paths for line in breaches(path, known_symbols())]
    lines += [
        f"notation.md defines {name} twice without ∗"
        for name in collisions(NOTATION.read_text(encoding="utf-8"))
    ]
    print("\n".join([*lines, f"{len(lines)} breach(es)"]))
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
