"""The table that an agreement leaves: in print, on the page and for machines."""

from __future__ import annotations

import html
import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

MIME = "application/vnd.agreement+json"
SHOWN = 12


class Row(NamedTuple):
    """One number of the theory, its simulated mean and standard error, z and trials behind it."""

    name: str
    theory: float
    simulation: float
    standard_error: float
    z: float
    trials: int | None

    def cells(self) -> dict[str, str]:
        """The row in print, rounded to two digits of the standard error (at most eight figures)."""
        error, size = self.standard_error, max(abs(self.theory), abs(self.simulation))
        order = math.floor(math.log10(size)) if size > 0 else 0
        places = 1 - math.floor(math.log10(error)) if error > 0 else 6  # two digits of the error
        places = min(places, 7 - order if size > 0 else 6)  # eight figures of the number
        if places > 7 or size >= 1e7:  # 1.23e-09 has `order` digits less behind its point
            pattern = f".{max(places + order, 0)}e"
        else:
            pattern = f".{max(places, 0)}f"
        share = f"{error / abs(self.theory):.1%}" if self.theory and error > 0 else "–"
        values = {
            "theory": format(self.theory, pattern),
            "simulation": format(self.simulation, pattern),
            "s.e.": f"{error:#.2g}".rstrip(".") if error > 0 else "exact",
            "z": f"{self.z:+.1f}",
            "s.e./theory": "<0.1%" if share == "0.0%" else share,
        }
        values["simulation"] = re.sub(r"^-(?=[0.]+(e|$))", "", values["simulation"])
        values["z"] = values["z"].replace("-0.0", "+0.0")
        return {"quantity": self.name, **values}

    def record(self) -> dict[str, str | float | None]:
        """The row for machines: the printed digits and no more, so that re-runs compare equal.

        JSON knows no infinity: z is None where trials without spread miss the theory.
        """
        cells = self.cells()
        printed: dict[str, float | None]
        printed = {name: float(cells[name]) for name in ("theory", "simulation", "z")}
        if math.isinf(self.z):
            printed["z"] = None
        error = float(cells["s.e."]) if self.standard_error > 0 else 0.0
        return {"quantity": self.name, **printed, "standard_error": error, "trials": self.trials}


@dataclass(frozen=True)
class Agreement:
    """What `agree` found: a claim, its rows, and the |z| that no row may exceed.

    `false_alarm` is the probability that at least one row of a true claim is refused; `sizes` is
    the number of sizes d from which the simulations were extrapolated.
    """

    claim: str
    rows: tuple[Row, ...]
    false_alarm: float
    limit: float
    sizes: int = 1

    @property
    def holds(self) -> bool:
        """Whether every row stays within the limit."""
        return all(abs(row.z) <= self.limit for row in self.rows)

    @property
    def trials(self) -> int | None:
        """The fewest trials behind a row, at any size; None where a standard error was given."""
        return min((row.trials for row in self.rows if row.trials is not None), default=None)

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    @property
    def largest(self) -> float:
        """The largest |z| of a row."""
        return max(abs(row.z) for row in self.rows)

    @property
    def verdict(self) -> str:
        """One line: the answer, what it rests on, and how often it would be wrong."""
        if not any(row.standard_error for row in self.rows):
            return "recomputed: equal" if self.holds else "recomputed: NOT EQUAL"
        verdict = "agrees" if self.holds else "DISAGREES"
        trials = f" over {self.trials} trials" if self.trials else ""
        trials += f" or more at each of {self.sizes} sizes" if self.sizes > 1 else ""
        sign = "≤" if self.holds else ">"
        limit = f"max |z| {self.largest:.1f} {sign} {self.limit:.1f}"
        rows = f"in {len(self.rows)} row{'s' * (len(self.rows) > 1)}"
        risk = f"false alarm: 1 in {1 / self.false_alarm:,.0f}"
        return f"{verdict}{trials}: {limit} {rows}; {risk}"

    def _shown(self) -> tuple[list[dict[str, str]], str]:
        kept = self.rows
        if len(kept) > SHOWN:
            loudest = set(sorted(kept, key=lambda row: -abs(row.z))[:SHOWN])
            kept = tuple(row for row in kept if row in loudest)
        left = len(self.rows) - len(kept)
        return [row.cells() for row in kept], f"{left} more rows with smaller |z|" if left else ""

    def __repr__(self) -> str:
        cells, rest = self._shown()
        lines = [list(cells[0])] + [list(row.values()) for row in cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
            for line in lines
        ]
        return "\n".join([self.claim, *table, *([rest] if rest else []), self.verdict])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        cells, rest = self._shown()
        head = "".join(f"<th>{name}</th>" for name in cells[0])
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row.values()) + "</tr>"
            for row in cells
        )
        note = f"<caption>{html.escape(rest)}</caption>" if rest else ""
        inside = f"{note}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        summary = f"<summary><code>{self.claim}</code> {html.escape(self.verdict)}</summary>"
        page = f'<details class="agreement">{summary}<table class="agreement">{inside}</table>'
        record = {
            "claim": self.claim,
            "verdict": "agrees" if self.holds else "disagrees",
            "trials": self.trials,
            "false_alarm": self.false_alarm,
            "limit": round(self.limit, 2),
            "rows": [row.record() for row in self.rows],
        }
        return {"text/plain": repr(self), "text/html": f"{page}</details>", MIME: record}
