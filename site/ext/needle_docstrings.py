"""The library's reference: docstrings in plain text, and signatures that fit a line."""

from __future__ import annotations

import re
from typing import Any

from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation


def plain(text: str) -> str:
    """Text in which |w|, x_i and * mean themselves, and `name` is code."""
    pieces = re.split(r"(``.*?``|`[^`]*`)", text)
    pieces[::2] = [re.sub(r"([|*\\`]|_(?!\w)|_(?=_))", r"\\\1", piece) for piece in pieces[::2]]
    pieces[1::2] = [f"``{piece.strip('`')}``" for piece in pieces[1::2]]
    return "".join(pieces)


def plain_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Docstrings are written for people, in sections underlined by dashes.

    An entry "name : meaning" of a section becomes an item of a list, an example stays as it is, and
    where the indentation of a paragraph changes, the blank line that markup asks for is added.
    """
    done: list[str] = []
    section = example = False
    run = indent = 0
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if re.fullmatch(r"-{3,}", line):
            continue
        if re.fullmatch(r"-{3,}", following):
            done += ["", f".. rubric:: {line}", ""]
            section, run = True, 0
        elif example or not line.strip():
            done.append(line)
            run = 0
        elif section and (entry := re.match(r"(\S.*?) : (.*)", line)):
            done += ["", f"- **{plain(entry[1])}**: {plain(entry[2])}"]
            run = 0
        elif section and line.startswith(" "):
            done.append(f"  {plain(line.strip())}")
        else:
            before, indent = indent, len(line) - len(line.lstrip())
            if run and (indent < before or (indent > before and run > 1)):
                done.append("")
            run = run + 1 if run and indent == before else 1
            done.append(plain(line))
    lines[:] = done


def short_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, str]:
    """ArrayLike is called by its name, not by what it stands for."""
    for mode in ("smart", "fully-qualified-except-typing"):
        signature = (signature or "").replace(stringify_annotation(ArrayLike, mode), "ArrayLike")
    return signature, returns


def skip_field_aliases(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """The fields of a NamedTuple are explained in its docstring, not by their numbers."""
    return True if (getattr(obj, "__doc__", "") or "").startswith("Alias for field") else None


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("autodoc-process-signature", short_signature)
    app.connect("autodoc-skip-member", skip_field_aliases)
