"""Collect every z-score of the book for the page "At full scale": after chapters have changed, run

python -m scripts.check.calibration
python -m scripts.book.run_notebooks chapters/G_full_scale.ipynb

That page reads what is collected here, and its own rows are collected, too, but for those of the
one claim that is made from the collection. So one round is enough, unless the page has new rows.
"""

from __future__ import annotations

import json
from typing import Any

from scripts.book.chapter import agreements
from scripts.book.run_notebooks import ROOT, chapters

FILE = ROOT / "experiments" / "results" / "agreements.json"
MADE_OF_ALL = "g-calibration"  # mean and mean square of what is collected


def collected() -> list[dict[str, Any]]:
    """Claim, quantity, z and trials of every row that chance has a part in, from the chapters."""
    return [
        {"claim": found["claim"], **{name: row[name] for name in ("quantity", "z", "trials")}}
        for path in chapters()
        for found in agreements(path)
        if found["claim"] != MADE_OF_ALL
        for row in found["rows"]
        if row["standard_error"] > 0 and row["z"] is not None
    ]


def main() -> None:
    rows = collected()
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    claims = len({row["claim"] for row in rows})
    print(f"{FILE.relative_to(ROOT)}: {len(rows)} z-scores of {claims} claims")


if __name__ == "__main__":
    main()
