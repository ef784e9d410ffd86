"""The command: `needle plan …`, or `python -m needle plan …`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from .planning import plan


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="needle")
    commands = top.add_subparsers(dest="command", required=True)
    one = commands.add_parser("plan", help="from five numbers to a decision")
    one.add_argument("--L", type=int, required=True, help="tokens in a bag")
    one.add_argument("--R", type=int, required=True, help="signal tokens in a positive bag")
    one.add_argument("--d", type=int, required=True, help="dimension of a token")
    one.add_argument("--n", type=int, required=True, help="labelled bags")
    one.add_argument("--pi", type=float, required=True, help="share of positive bags")
    one.add_argument("--theta", type=float, nargs="+", help="signal strengths (default: eight)")
    one.add_argument("--share", type=float, help="share of the data for the query (default: best)")
    one.add_argument("--loss", default="logistic", choices=("logistic", "square"))
    one.add_argument("--error", type=float, help="test error to reach (default: 0.05 or less)")
    one.add_argument("--false-alarms", type=float, default=0.05, help="for the recall")
    one.add_argument("--json", action="store_true", help="the same as JSON")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a plan; bad input ends with its error and exit code 2."""
    given = parser().parse_args(arguments)
    try:
        made = plan(
            L=given.L, R=given.R, d=given.d, n=given.n, pi=given.pi, theta=given.theta,
            alpha_share=given.share, loss=given.loss, error=given.error,
            false_alarms=given.false_alarms,
        )  # fmt: skip
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps(made.as_dict(), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
