"""What the explorers of the built page need: their descriptions, and tables computed by `utils`.

    python -m scripts.explore_data [names]     fill the cache and say what it took

A table is kept under a hash of `utils`, of this file and of the lock of the book, so it is
computed again only when something it depends on has changed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from scripts.run_notebooks import ROOT, write
from utils.explore import FOLDER, specification
from utils.explore_values import EXPLORERS

CACHE = ROOT / "_build" / "explore"


def packed(values: Any) -> dict[str, Any]:
    """An array as 16-bit steps between its least and its greatest value."""
    array = np.asarray(values, dtype=float)
    low, high = float(array.min()), float(array.max())
    ticks = np.rint((array - low) / ((high - low) or 1.0) * 65535).astype("<u2")
    text = base64.b64encode(ticks.tobytes()).decode()
    return {"shape": list(array.shape), "low": low, "high": high, "data": text}


TABLES: dict[str, Callable[[], dict[str, Any]]] = {}


def key() -> str:
    """What the tables depend on."""
    files = sorted((ROOT / "utils").glob("*.py"))
    files += [Path(__file__), ROOT / "locks" / "book.txt"]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


def data(name: str) -> Path:
    """The description of an explorer with its tables, from the cache or computed."""
    path = CACHE / f"{name}-{key()}.json"
    if not path.exists():
        start = time.perf_counter()
        tables = TABLES[name]() if name in TABLES else {}
        if tables:
            print(f"tables of the explorer {name}: {time.perf_counter() - start:.1f} s", flush=True)
        text = json.dumps(
            {"spec": specification(name), "data": tables},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        for old in CACHE.glob(f"{name}-*.json"):
            old.unlink()
        write(path, text)
    return path


def stage(static: Path) -> None:
    """Put modules, style and data of all explorers beside the other static files of the site."""
    target = static / "explorers"
    target.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob("*.*"):
        shutil.copy(path, target)
    for name in EXPLORERS:
        shutil.copy(data(name), target / f"{name}.json")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or EXPLORERS:
        print(chosen, f"{data(chosen).stat().st_size / 1000:.0f} kB")
