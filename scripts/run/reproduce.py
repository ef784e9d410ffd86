"""Run the experiments of the book at full scale and store their results: `make reproduce`.

    python -m scripts.run.reproduce [NAME ...] [--profile quick] [--executor tcp://scheduler:8786]

What is run stands in `experiments/*.toml`, one table an experiment, and how one trial is drawn in
the functions beside. Trials are kept as they finish, so that an interrupted run goes on where it
was; delete `_build/sweeps` to start afresh. Results go to `experiments/results/NAME.csv`, those of
the quick profile to `_build/quick`.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
import math
import os
import platform
import socket
import sys
import time
from collections.abc import Mapping
from concurrent.futures import Executor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import needle
from needle.trials.grid import Sweep, SweepError, sweep
from needle.trials.keys import package_source
from scripts.run.experiments import catalogue, chosen, function_of, source_of
from utils.results import QUANTITY, stored

HERE = Path(__file__).resolve().parents[2]
CACHE = HERE / "_build" / "sweeps"
RESULTS = HERE / "experiments" / "results"


def run(entry: Mapping[str, Any], profile: str, **options: Any) -> Sweep:
    """All trials of one experiment."""
    table = chosen(entry, profile)
    return sweep(
        function_of(entry["function"]),
        table.get("points") or table["grid"],
        trials=table["trials"],
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


def facts(
    entry: Mapping[str, Any], result: Sweep, wall: float, where: str, workers: int
) -> dict[str, str]:
    """What a reader of the numbers may ask: of what code, on what machine, how long, when."""
    cpu = sum(map(sum, result.seconds))
    resumed = cpu > 1.1 * wall * workers + 1  # more than these workers can have done by now
    return {
        "about": entry["about"],
        "function": entry["function"],
        "source": source_of(function_of(entry["function"])),
        "version": f"{needle.__version__}, needle {package_source(HERE / 'needle')[:8]}",
        "machine": f"{where}; {platform.machine()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}",
        "seconds": f"{wall:.0f}" + ", most trials kept from earlier runs" * resumed,
        "cpu seconds": f"{cpu:.1f}",
        "date": datetime.now(UTC).date().isoformat(),
    }


def write(name: str, table: list[dict[str, Any]], said: Mapping[str, str], folder: Path) -> Path:
    """The tidy file of one experiment, its facts first."""
    text = io.StringIO()
    text.writelines(f"# {key}: {value}\n" for key, value in said.items())
    names = list(dict.fromkeys(key for row in table for key in row if key not in QUANTITY))
    writer = csv.DictWriter(text, [*names, *QUANTITY], lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.csv"
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(text.getvalue(), encoding="utf-8")
    unfinished.replace(file)
    return file


def connect(address: str) -> tuple[Executor, int]:
    """A Dask cluster as an executor, and how many trials it runs at once."""
    try:
        from distributed import Client
    except ImportError:
        message = (
            "EXECUTOR needs the extra `cluster`: pip install 'attention-and-the-needle[cluster]'"
        )
        raise SystemExit(message) from None
    host, _, port = address.rpartition("/")[2].rpartition(":")
    try:
        # Dask would ask a closed port again and again
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise SystemExit(f"EXECUTOR = {address!r}: no scheduler answers there ({error})") from None
    return client.get_executor(pure=False), sum(client.nthreads().values())


def expected(name: str) -> float:
    """CPU seconds that the stored run took; 60 where nobody knows."""
    try:
        known = stored(name).facts
    except ValueError:
        return 60.0
    return float(known.get("cpu seconds") or 2 * float(known.get("seconds", 30)))


def span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", help="names of experiments (default: all)")
    parser.add_argument("--profile", choices=("full", "quick"), default="full")
    parser.add_argument("--executor", default="", help="address of a Dask scheduler")
    options = parser.parse_args()
    try:
        known = catalogue()
    except ValueError as error:
        parser.error(str(error))
    if unknown := [name for name in options.only if name not in known]:
        parser.error(f"unknown experiments {unknown}; there are {sorted(known)}")
    quick, names = options.profile == "quick", options.only or list(known)
    executor, workers = connect(options.executor) if options.executor else (None, os.cpu_count())
    where = f"a cluster of {workers}" if executor else f"{workers} cores"
    left = {name: (2.0 if quick else expected(name)) / max(workers or 1, 1) for name in names}
    spent, planned, failed = 0.0, 0.0, []
    for number, name in enumerate(names, 1):
        pace = spent / planned if planned else 1.0
        rest = span(pace * sum(left.values()))
        print(f"{number} of {len(names)}: {name} (about {rest} left in all)", flush=True)
        start = time.monotonic()
        try:
            result = run(known[name], options.profile, cache=CACHE, executor=executor)
        except KeyboardInterrupt:
            print("interrupted; all that had finished is kept: the same command goes on from here")
            return 130
        except SweepError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed.append(name)
            continue
        wall = time.monotonic() - start
        spent, planned = spent + wall, planned + left.pop(name)
        said = facts(known[name], result, wall, where, workers or 1)
        folder = HERE / "_build" / "quick" if quick else RESULTS
        file = write(name, rows(result, known[name]["seed"]), said, folder)
        print(f"  {file.relative_to(HERE)}: {span(wall)}, {said['cpu seconds']} CPU seconds")
    if failed:
        print(f"failed: {', '.join(failed)}; the others are stored")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
