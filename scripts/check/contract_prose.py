"""The half of the notebook contract about words: statements, exercises, how a chapter ends."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scripts.book.chapter import PROVED, STATEMENTS, STATUSES, Chapter, boxes

MIN_EXERCISES, MIN_PROOFS, MIN_QUICK_CHECKS = 5, 2, 5


def check_status(chapter: Chapter) -> Iterator[str]:
    for i, cell in chapter.prose:
        for box in boxes(cell.source):
            kind = box.kind.removeprefix("prf:")
            if box.kind.startswith("prf:") and kind in STATEMENTS:
                name = box.label or box.title or kind
                if not box.label:
                    yield f"cell {i}: the {kind} {name!r} has no :label:"
                if not box.title:
                    yield f"cell {i}: the {kind} {name!r} has no title"
                if not box.status:
                    yield (
                        f"cell {i}: after {name} stands no paragraph '**Status:** …' "
                        f"with one of {', '.join(STATUSES)}"
                    )
                elif kind == "theorem" and box.status not in PROVED:
                    yield f"cell {i}: {name} is {box.status}; a theorem is proved, this is a result"
                elif kind == "result" and box.status in PROVED:
                    yield f"cell {i}: {name} is {box.status}: call it what it is, not a result"


def check_marks(chapter: Chapter) -> Iterator[str]:
    found = [(i, box) for i, cell in chapter.prose for box in boxes(cell.source)]
    exercises = [(i, box) for i, box in found if box.kind in ("exercise", "exercise-start")]
    for i, box in exercises:
        if not box.mark:
            name = box.label or box.title
            yield f"cell {i}: exercise {name} lacks its first line, '*Proof · ★★ · 20 min*'"
    if chapter.is_appendix:
        return
    proofs = sum(box.mark == "Proof" for _, box in exercises)
    if proofs < MIN_PROOFS:
        yield f"{proofs} exercise(s) marked Proof; at least {MIN_PROOFS}"
    text = "\n\n".join(cell.source for _, cell in chapter.prose)
    pattern = r"^## Exercises *\n+### Quick checks *\n(.*?)(?=^##|^[`:]+\{exercise|\Z)"
    section = re.search(pattern, text, re.M | re.S)
    checks = [box for box in boxes(section[1]) if box.kind == "dropdown"] if section else []
    if len(checks) < MIN_QUICK_CHECKS:
        yield (
            f"{len(checks)} dropdown(s) under '## Exercises', '### Quick checks'; "
            f"at least {MIN_QUICK_CHECKS}"
        )
    for box in checks:
        if not box.title.endswith("?") or not box.body.strip():
            yield f"quick check {box.title!r}: a question with '?' as title, an answer inside"


def check_exercises(chapter: Chapter) -> Iterator[str]:
    labels, solved, opened = [], set(), None
    for i, name, argument, rest in chapter.directives:
        options = re.match(r"(?:\n:[^\n]*)*", rest)
        options = options[0] if options else ""
        if name in ("exercise", "exercise-start"):
            label = re.search(r":label: *(\S+)", options)
            if label:
                labels.append(label[1])
            else:
                yield f"cell {i}: an exercise without a :label:"
        elif name == "solution-start":
            if opened:
                yield f"cell {i}: a solution starts before that of {opened[0]} ends"
            if not re.search(r":class:.*\bdropdown\b", options):
                yield f"cell {i}: the solution of {argument} is not folded (:class: dropdown)"
            opened = (argument, i)
        elif name == "solution-end":
            if opened is None:
                yield f"cell {i}: solution-end without solution-start"
            elif not any(opened[1] < j < i for j, _ in chapter.code):
                yield f"cell {i}: the solution of {opened[0]} has no code cell"
            else:
                solved.add(opened[0])
            opened = None
        elif name == "solution":
            yield f"cell {i}: use solution-start and solution-end, so that the solution runs"
    if opened:
        yield f"cell {opened[1]}: the solution of {opened[0]} does not end"
    for label in labels:
        if label not in solved:
            yield f"exercise {label} has no executable solution"
    for label in sorted(solved - set(labels)):
        yield f"the solution of {label} belongs to no exercise"
    if not chapter.is_appendix and len(labels) < MIN_EXERCISES:
        yield f"{len(labels)} exercises; at least {MIN_EXERCISES}"


def check_ending(chapter: Chapter) -> Iterator[str]:
    if chapter.is_appendix:
        return
    text = "\n\n".join(cell.source for _, cell in chapter.prose)
    summary = re.search(r"^## What we established *\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not summary:
        yield "the section '## What we established' is missing"
    else:
        lines = re.findall(r"^[-*] .*(?:\n(?![-*] |\n).*)*", summary[1], re.M)
        if not lines:
            yield "'What we established' must be a list"
        for line in lines:
            if not re.search(r"\d", line):
                yield f"'What we established': a line without a number: {line[:60]!r}"
    if not re.search(r"^## Where next", text, re.M):
        yield "the section '## Where next' is missing"
