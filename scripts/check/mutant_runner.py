"""Judge mutants that mutmut has made: `python mutant_runner.py tests/data < names`.

Runs in mutmut's folder `mutants` and prints a line for each name. mutmut itself would start pytest
anew for each mutant, which is ten times the work of most tests; here one process collects the tests
and forks. First each test alone says which functions it reaches and how long it takes; then each
mutant meets the tests that reach it, the quickest first, until one fails. It has five times their
processor time, and ten seconds.
"""

from __future__ import annotations

import math
import os
import pickle
import re
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from mutmut.state import state

EXTRA, SLACK = 10, 5  # seconds, and times what the tests take without a change
SAID = re.compile(r"^judged (\S+): (.+)$", re.M)


def forked(limit: int, work: Callable[..., Any], *given: Any) -> Any:
    """What a function gives in a child process; the signal that ended the child, if one did."""
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.write(write, pickle.dumps(work(*given)))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        said, status = told.read(), os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status))
    return pickle.loads(said) if said else None


class Judge:
    """In place of pytest's loop over tests: a loop over mutants."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        asked = {item: forked(600, alone, session, item) for item in session.items}
        known = {item: found for item, found in asked.items() if isinstance(found, tuple)}
        for item in asked.keys() - known.keys():
            print(f"\nleft out, it fails without a change: {item.nodeid}", flush=True)
        for name in self.names:
            function = name.rpartition("__mutmut_")[0]
            tests = [item for item, (_, reached) in known.items() if function in reached]
            tests.sort(key=lambda item: known[item][0])
            limit = EXTRA + SLACK * math.ceil(sum(known[item][0] for item in tests))
            said = forked(limit, verdict, session, name, tests) if tests else "no tests"
            ended = said.name if isinstance(said, signal.Signals) else said or "killed"
            print(f"\njudged {name}: {ended}", flush=True)
        return True


def passes(session: pytest.Session, item: Any, following: Any = None) -> bool:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return not session.testsfailed


def alone(session: pytest.Session, item: Any) -> tuple[float, set[str]] | None:
    """Seconds of a test, and the functions it reaches; nothing where it fails."""
    os.environ["MUTANT_UNDER_TEST"], start = "stats", time.process_time()
    seen = passes(session, item)
    return (time.process_time() - start, set(state()._stats)) if seen else None


def verdict(session: pytest.Session, name: str, items: list[Any]) -> str:
    os.environ["MUTANT_UNDER_TEST"] = name
    pairs = zip(items, [*items[1:], None], strict=True)
    return "survived" if all(passes(session, *pair) for pair in pairs) else "killed"


def main() -> int:
    sys.path.insert(0, os.getcwd())
    judge = Judge(sys.stdin.read().split())
    words = ["--rootdir=.", "-q", "-p", "no:cacheprovider", "-m", "not slow", *sys.argv[1:]]
    return int(pytest.main(words, plugins=[judge]))


if __name__ == "__main__":
    sys.exit(main())
