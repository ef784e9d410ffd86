"""`python -m needle report | fit | score | plan FILE`: the library without a line of Python."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

BAD, GOOD = 2, 0  # exit codes: what was asked is wrong, and all is well


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m needle", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    one = commands.add_parser("report", help="does attention pay on these bags?")
    _columns(one)
    one.add_argument("--html", type=Path, help="write one HTML file that opens offline")
    one.add_argument("--model", type=Path, help="write the fitted model")
    one.add_argument("--seed", type=int, default=0, help="of all folds (default: 0)")
    one = commands.add_parser("fit", help="tune and fit a classifier, and save it")
    _columns(one)
    one.add_argument("--model", type=Path, required=True, help="the file to write")
    one.add_argument("--seed", type=int, default=0, help="of the folds (default: 0)")
    one.add_argument("--onnx", type=Path, help="write the scorer of a bag as ONNX too")
    one.add_argument("--balanced", action="store_true", help="both labels weigh the same")
    one.add_argument("--calibrate", action="store_true", help="fit probabilities to held-out bags")
    one.add_argument("--threshold", default="0.5", help="a probability, or error, balanced, f1")
    one = commands.add_parser("score", help="score bags by a saved model, a piece at a time")
    _columns(one, labels=False)
    one.add_argument("--model", type=Path, required=True, help="the file that fit wrote")
    one.add_argument("--out", type=Path, help="where scores go, as CSV (default: here)")
    one = commands.add_parser("plan", help="from five numbers, or from bags, to a decision")
    _columns(one, file="?")
    _numbers(one)
    return top


def _columns(one: argparse.ArgumentParser, file: str | None = None, labels: bool = True) -> None:
    one.add_argument("file", type=Path, nargs=file, help="CSV, NPZ or Parquet, a row a token")
    one.add_argument("--bag", default="bag", help="column that names the bag (default: bag)")
    if labels:
        one.add_argument("--label", default="label", help="column of the label (default: label)")
        one.add_argument("--group", help="column of the group, such as the patient")
    else:
        one.add_argument("--ignore", nargs="*", default=[], help="columns that are no features")
    one.add_argument("--features", nargs="+", help="columns of the features (default: all others)")


def _numbers(one: argparse.ArgumentParser) -> None:
    one.add_argument("--L", type=int, help="tokens in a bag")
    one.add_argument("--R", type=int, help="signal tokens in a positive bag")
    one.add_argument("--d", type=int, help="dimension of a token")
    one.add_argument("--n", type=int, help="labelled bags")
    one.add_argument("--pi", type=float, help="share of positive bags")
    one.add_argument("--theta", type=float, nargs="+", help="signal strengths (default: eight)")
    one.add_argument("--share", type=float, help="share of the data for the query (default: best)")
    one.add_argument("--loss", default="logistic", choices=("logistic", "square"))
    one.add_argument("--error", type=float, help="test error to reach (default: 0.05 or less)")
    one.add_argument("--false-alarms", type=float, default=0.05, help="for the recall")
    one.add_argument("--json", action="store_true", help="the same as JSON")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; bad input ends with its error and exit code 2."""
    from .kit.records import ConvergenceError

    given = parser().parse_args(arguments)
    try:
        for name in ("html", "model", "onnx", "out"):  # before the work, not after it
            path = getattr(given, name, None)
            if path is not None and not path.parent.is_dir():
                raise ValueError(f"--{name} {path}: there is no folder {path.parent}")
        return COMMANDS[given.command](given)
    except BrokenPipeError:
        return GOOD
    except (ValueError, OSError, ConvergenceError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD


def _labelled(given: argparse.Namespace) -> Any:
    from .bags.tables import Columns, read

    found = read(given.file, Columns(given.bag, given.label, given.group, given.features))
    if found.y is None:
        raise ValueError(f"{given.file}: holds no labels y")
    return found


def _report(given: argparse.Namespace) -> int:
    from .bags.reporting import report

    table = _labelled(given)
    found = report(table.bags, table.y, groups=table.groups, random_state=given.seed, verbose=True)
    print(found)
    if given.html:
        given.html.write_text(found.page(), encoding="utf-8")
    if given.model:
        found.model.save(given.model)
    return GOOD


def _fit(given: argparse.Namespace) -> int:
    from .bags.classifier import NeedleClassifier

    table = _labelled(given)
    threshold: float | str = given.threshold
    with suppress(ValueError):
        threshold = float(given.threshold)
    model = NeedleClassifier(
        random_state=given.seed, calibrate=given.calibrate, threshold=threshold,
        class_weight="balanced" if given.balanced else None, verbose=1,
    )  # fmt: skip
    model.fit(table.bags, table.y, groups=table.groups)
    model.save(given.model)
    if given.onnx:
        model.save_onnx(given.onnx)
    print(f"{given.model}: {len(table.bags)} bags, classes {', '.join(map(str, model.classes_))}")
    print(model.scorer_.code())
    return GOOD


def _score(given: argparse.Namespace) -> int:
    from tqdm.auto import tqdm

    from .bags.scorer import Scorer
    from .bags.tables import Columns, pieces

    scorer = Scorer.load(given.model)
    columns = Columns(given.bag, None, None, given.features, tuple(given.ignore))
    out = given.out.open("w", newline="", encoding="utf-8") if given.out else sys.stdout
    try:
        write = csv.writer(out, lineterminator="\n").writerow
        write(["bag", "label", *(f"P({name})" for name in scorer.classes)])
        with tqdm(unit=" bags", file=sys.stderr, leave=False) as bar:
            for table in pieces(given.file, columns):
                chances, labels = scorer.probabilities(table.bags), scorer.labels(table.bags)
                for name, label, row in zip(table.names, labels, chances, strict=True):
                    write([name, label, *(f"{chance:.6g}" for chance in row)])
                bar.update(len(table.bags))
    finally:
        if given.out:
            out.close()
    return GOOD


def _plan(given: argparse.Namespace) -> int:
    from .planning.planner import plan

    options = {"alpha_share": given.share, "loss": given.loss, "error": given.error}
    options |= {"false_alarms": given.false_alarms}
    if given.file is not None:
        from .bags.portrait import estimate

        table = _labelled(given)
        found = estimate(table.bags, table.y)
        made = found.plan(R=given.R, **({"theta": given.theta} if given.theta else {}), **options)
        if not given.json:
            print(found, end="\n\n")
    else:
        missing = [name for name in ("L", "R", "d", "n", "pi") if getattr(given, name) is None]
        if missing:
            raise ValueError(f"plan needs a FILE, or --{' --'.join(missing)}")
        made = plan(
            L=given.L, R=given.R, d=given.d, n=given.n, pi=given.pi, theta=given.theta,
            verbose=True, **options,
        )  # fmt: skip
    if given.json:
        print(json.dumps(made.as_dict(), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print(made)
    return GOOD


COMMANDS = {"report": _report, "fit": _fit, "score": _score, "plan": _plan}

if __name__ == "__main__":
    sys.exit(main())
