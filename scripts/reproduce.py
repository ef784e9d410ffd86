"""Run the experiments of the book at full scale and store their results: `make reproduce`."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import importlib
import io
import math
import platform
import time
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from utils.results import QUANTITY
from utils.sweep import Sweep, sweep

HERE = Path(__file__).resolve().parent.parent
CACHE = HERE / "_build" / "sweeps"


def catalogue() -> dict[str, dict[str, Any]]:
    """All experiments by name, from the tables beside their functions."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted((HERE / "experiments").glob("*.toml")):
        for name, entry in tomllib.loads(file.read_text(encoding="utf-8")).items():
            if name in found:
                raise ValueError(f"experiment {name!r} is defined twice, the second in {file.name}")
            found[name] = entry
    return found


def run(entry: Mapping[str, Any], profile: str, **options: Any) -> Sweep:
    """All trials of one experiment."""
    module, function = entry["function"].split(":")
    chosen = {**entry, **(entry["quick"] if profile == "quick" else {})}
    return sweep(
        getattr(importlib.import_module(module), function),
        chosen.get("points") or chosen["grid"],
        trials=chosen["trials"],
        seed=entry["seed"],
        **options,
    )


def rows(result: Sweep, seed: int) -> list[dict[str, Any]]:
    """One row for each point and quantity."""
    table = []
    for point, trials in result:
        records = [_named(trial) for trial in trials]
        for quantity in records[0]:
            values = np.array([record[quantity] for record in records], dtype=float)
            spread = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
            numbers = (quantity, f"{values.mean():.9g}", f"{spread:.4g}", len(values), seed)
            table.append({**point, **dict(zip(QUANTITY, numbers, strict=True))})
    return table


def _named(trial: Any) -> dict[str, float]:
    if dataclasses.is_dataclass(trial) and not isinstance(trial, type):
        trial = {field.name: getattr(trial, field.name) for field in dataclasses.fields(trial)}
    if not isinstance(trial, Mapping):
        return {"value": float(trial)}
    return {name: float(x) for name, x in trial.items() if isinstance(x, int | float | np.number)}


def write(name: str, table: list[dict[str, Any]], facts: Mapping[str, str], folder: Path) -> Path:
    """The tidy file of one experiment, its facts first."""
    text = io.StringIO()
    text.writelines(f"# {key}: {value}\n" for key, value in facts.items())
    names = list(dict.fromkeys(key for row in table for key in row if key not in QUANTITY))
    writer = csv.DictWriter(text, [*names, *QUANTITY], lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.csv"
    file.write_text(text.getvalue(), encoding="utf-8")
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="names of experiments (default: all)")
    parser.add_argument("--profile", choices=("full", "quick"), default="full")
    options = parser.parse_args()
    known = catalogue()
    unknown = [name for name in options.only if name not in known]
    if unknown:
        parser.error(f"unknown experiments {unknown}; there are {sorted(known)}")
    quick = options.profile == "quick"
    folder = HERE / ("_build/quick" if quick else "utils/results")
    for name in options.only or known:
        start = time.monotonic()
        result = run(known[name], options.profile, cache=CACHE)
        facts = {
            "about": known[name]["about"],
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "seconds": f"{time.monotonic() - start:.0f}",
            "date": datetime.now(UTC).date().isoformat(),
        }
        print(write(name, rows(result, known[name]["seed"]), facts, folder).relative_to(HERE))


if __name__ == "__main__":
    main()
