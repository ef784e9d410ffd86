"""Results of the heavy runs, as `make reproduce` stored them: estimates and standard errors."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from needle.kit.records import Estimate as Estimate

FOLDER = Path(__file__).resolve().parents[1] / "experiments" / "results"
QUANTITY = ("quantity", "estimate", "standard_error", "trials", "seed")


@dataclass(frozen=True)
class Stored:
    """One experiment as it was run: for each point its parameters and its estimates.

    Attributes
    ----------
    name : the experiment's name; `make reproduce ONLY=name` runs it again
    facts : version, machine, duration and date of the run
    points : the parameters of every point
    estimates : for each point, quantity → Estimate
    seed : the one seed of the run
    """

    name: str
    facts: Mapping[str, str]
    points: Sequence[Mapping[str, Any]]
    estimates: Sequence[Mapping[str, Estimate]]
    seed: int | None = None

    def at(self, **parameters: Any) -> list[tuple[Mapping[str, Any], Mapping[str, Estimate]]]:
        """The pairs (point, estimates) with these parameters, in the stored order."""
        found = [
            (point, estimates)
            for point, estimates in zip(self.points, self.estimates, strict=True)
            if all(point.get(name) == value for name, value in parameters.items())
        ]
        if not found:
            raise ValueError(f"parameters = {parameters!r} are not allowed: {self.name} has none")
        return found

    def only(self, **parameters: Any) -> Mapping[str, Estimate]:
        """The estimates of the one point with these parameters."""
        found = self.at(**parameters)
        if len(found) > 1:
            raise ValueError(
                f"parameters = {parameters!r} are not allowed: "
                f"{len(found)} points of {self.name} have them"
            )
        return found[0][1]


def stored(name: str) -> Stored:
    """The stored results of one experiment.

    >>> run = stored("example")
    >>> (point, estimates), *_ = run.at(n=100)
    >>> abs(float(estimates["mean"]) - 1) < 5 * estimates["mean"].standard_error
    True
    """
    folder = FOLDER
    known = sorted(file.name[:-4] for file in folder.iterdir() if file.name.endswith(".csv"))
    if name not in known:
        raise ValueError(f"name = {name!r} is not allowed: name must be one of {known}")
    lines = (folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    facts = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    groups: dict[tuple, dict[str, Estimate]] = {}
    seed = None
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        seed = int(row["seed"])
        point = tuple((key, _plain(value)) for key, value in row.items() if key not in QUANTITY)
        groups.setdefault(point, {})[row["quantity"]] = Estimate(
            float(row["estimate"]), float(row["standard_error"]), int(row["trials"])
        )
    return Stored(name, facts, [dict(point) for point in groups], list(groups.values()), seed)


def agreements() -> list[dict[str, Any]]:
    """Every z-score of the book as collected from its chapters: claim, quantity, z and trials.

    >>> sorted(agreements()[0])
    ['claim', 'quantity', 'trials', 'z']
    """
    file = FOLDER / "agreements.json"
    return json.loads(file.read_text(encoding="utf-8"))


def _plain(text: str) -> Any:
    """A parameter as it was: a whole number, a number or a word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
