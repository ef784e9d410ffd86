"""The bills of materials name what is there, by version and hash."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from scripts.book import live_assets
from scripts.run import sbom


def test_the_bill_of_the_wheel_is_what_it_declares_and_what_that_brings():
    names = {part["name"].lower() for part in sbom.wheel()}
    assert {"numpy", "scipy", "joblib", "cloudpickle", "threadpoolctl", "tqdm"} <= names
    assert not names & {"sphinx", "pytest", "jupyter-book"}
    assert all(re.fullmatch(r"pkg:pypi/[\w.-]+@[\w.+-]+", part["purl"]) for part in sbom.wheel())


@pytest.mark.skipif(not live_assets.SITE.is_dir(), reason="Python for the browser is not here")
def test_the_bill_of_the_page_has_the_hash_of_every_wheel():
    parts = sbom.page()
    hashes = {entry["content"] for part in parts for entry in part["hashes"]}
    for path in live_assets.SITE.glob("*.whl"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() in hashes
    assert {"mathjax", "pyodide", "numpy", "scipy"} <= {part["name"].lower() for part in parts}
    bill = sbom.bill("page", parts)
    assert json.loads(json.dumps(bill)) == bill
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
