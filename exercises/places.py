"""Where each exercise stands: the file of its check, and the chapter in its label.

This is the only place that knows how chapters are numbered. An exercise `slug` of the file `name`
has the label `prefix-slug`, with the prefix of its file or, where it stands elsewhere, its own.
"""

from __future__ import annotations

PREFIX = {  # file: chapter
    "model": "ch1",
    "linear": "ch2",
    "separation": "ch3",
    "alignment": "ch4",
    "readout": "ch5",
    "capacity": "ch6",
    "length": "ch7",
    "again": "ch8",
    "learning": "ch9",
    "training": "ch10",
    "beyond": "ch11",
    "planning": "ch12",
    "real": "ch13",
    "bets": "f",
}
ELSEWHERE = {  # (file, slug): chapter
    ("alignment", "many-needles"): "ch7",
    ("alignment", "patience"): "ch7",
    ("readout", "own"): "ch8",
    ("readout", "missed"): "ch8",
}


def label(file: str, slug: str) -> str:
    """The label of an exercise in the book.

    >>> label("model", "rare")
    'ch1-rare'
    """
    return f"{ELSEWHERE.get((file, slug), PREFIX[file])}-{slug}"
