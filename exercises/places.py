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
    "learning": "ch7",
    "training": "ch8",
    "beyond": "ch9",
    "planning": "ch10",
    "real": "ch11",
    "bets": "f",
}
ELSEWHERE: dict[tuple[str, str], str] = {}  # (file, slug): chapter


def label(file: str, slug: str) -> str:
    """The label of an exercise in the book.

    >>> label("model", "rare")
    'ch1-rare'
    """
    return f"{ELSEWHERE.get((file, slug), PREFIX[file])}-{slug}"
