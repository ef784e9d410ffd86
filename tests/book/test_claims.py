"""The claims stored in the chapters hold, and each has a name of its own."""

import json
from collections import Counter

from scripts.book.run_notebooks import ROOT
from scripts.check.false_alarms import of_book, of_tests
from utils.agreement import MIME


def test_claims_of_the_book_hold_and_have_names_of_their_own():
    outputs = [
        (path.name, output["data"][MIME])
        for path in sorted((ROOT / "chapters").glob("*.ipynb"))
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", [])
        if MIME in output.get("data", {})
    ]
    claims = Counter(record["claim"] for _, record in outputs)
    assert [name for name, count in claims.items() if count > 1] == []
    for name, record in outputs:
        assert record["verdict"] == "agrees", (name, record["claim"])
        assert max(abs(row["z"]) for row in record["rows"]) <= record["limit"] + 0.05


def test_false_alarms_of_suite_and_book_are_stated_and_small():
    """The union bound: at fresh seeds a run fails by chance less than five times in a hundred."""
    tests, book = sum(of_tests().values()), sum(of_book().values())
    assert 0 < tests < 0.02 and 0 < book < 0.03
