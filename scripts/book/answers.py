"""Below each exercise of a page: its three hints, folded, and a place for the reader's answer."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from exercises import hint, names
from exercises.desk import find

BOX = re.compile(r"^(?P<fence>`{3,})\{exercise\}.*?^(?P=fence)[ ]*$", re.M | re.S)
LABEL = re.compile(r"^:label: *(\S+)", re.M)
WORDS = ("A nudge", "A second hint", "Nearly the answer")


def below(name: str) -> str:
    """The hints of an exercise, and the place where its answer is typed."""
    exercise = find(name)
    folds = [
        f":::{{dropdown}} {words}\n:class-container: exercise-hint\n{hint(name, number)}\n:::"
        for number, words in enumerate(WORDS, 1)
    ]
    if exercise.judge:
        asked = html.escape(f"Your answer: {exercise.asks}", quote=True)
        place = f'<div class="exercise-answer" data-exercise="{name}" data-asks="{asked}"></div>'
        folds.append(f"```{{raw}} html\n{place}\n```")
    else:
        points = "\n".join(f"- {point}" for point in exercise.proof)
        folds.append(f":::{{dropdown}} Check your own answer\n{points}\n:::")
    return "\n\n".join(folds)


def add_answers(notebook: Path) -> None:
    """Write hints and places for answers into a staged copy of a chapter."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    known = set(names())

    def extended(match: re.Match[str]) -> str:
        label = LABEL.search(match[0])
        if label is None or label[1] not in known:
            return match[0]
        return f"{match[0]}\n\n{below(label[1])}\n"

    for cell in content["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and "{exercise}" in source:
            cell["source"] = BOX.sub(extended, source)
    notebook.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
