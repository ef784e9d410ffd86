"""A small table: HTML that stands in the text of the page, and the same in plain text elsewhere."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from needle.kit.checks import check_integer


class SmallTable:
    """What `small_table` returns: the last line of a cell shows it."""

    def __init__(self, head: list[str], rows: list[list[str]], caption: str) -> None:
        self.head, self.rows, self.caption = head, rows, caption

    def __repr__(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        told = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
            for line in lines
        ]
        return "\n".join([*([self.caption] if self.caption else []), *told])

    def _repr_html_(self) -> str:
        def cells(kind: str, line: list[str]) -> str:
            return "".join(f"<{kind}>{html.escape(text)}</{kind}>" for text in line)

        said = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        body = "".join(f"<tr>{cells('td', line)}</tr>" for line in self.rows)
        table = f"<table>{said}<thead><tr>{cells('th', self.head)}</tr></thead>"
        return f'<div class="shown smalltable">{table}<tbody>{body}</tbody></table></div>'


def small_table(
    head: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str = "", digits: int = 3
) -> SmallTable:
    """A table of a few numbers, floats to `digits` figures; as long as `head` each row.

    >>> small_table(["tokens", "averaging"], [[100, 34.2], [10_000, 344.1]], caption="strength")
    strength
    tokens  averaging
    100          34.2
    10 000        344
    """
    check_integer("digits", digits, 1)
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"rows = {list(row)!r} is not allowed: a row has {len(head)} cells")
    told = [[_written(value, digits) for value in row] for row in rows]
    return SmallTable([str(name) for name in head], told, caption)


def _written(value: Any, digits: int) -> str:
    """A whole number in groups of three, another one rounded, anything else as it is."""
    if isinstance(value, str) or not hasattr(value, "__float__"):
        return str(value)
    number = float(value)
    whole = number.is_integer() and abs(number) < 1e9
    if whole or 10**digits <= abs(number) < 1e9:
        return f"{number:,.0f}".replace(",", " " if abs(number) >= 10_000 else "")
    return f"{number:.{digits}g}"
