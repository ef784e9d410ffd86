"""Two builds at once, builds that are ended, a full disk, a checkout that cannot be written."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from scripts.book import process

ROOT = process.ROOT
PYTHON = [sys.executable, "-c"]


def until(what, seconds: float = 60.0):
    """The first true answer; a busy machine may take its time."""
    end = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def test_of_two_at_once_the_second_waits_and_says_so(tmp_path):
    code = (
        "from pathlib import Path; import sys, time; from scripts.book import process\n"
        "process.ROOT = Path(sys.argv[1])\n"
        "with process.alone('book'):\n"
        "    (process.ROOT / 'in').touch(exist_ok=False)\n"
        "    time.sleep(1)\n"
        "    (process.ROOT / 'in').unlink()\n"
    )
    both = [
        subprocess.Popen(
            [*PYTHON, code, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = sorted(one.communicate()[0] for one in both)
    assert [one.returncode for one in both] == [0, 0]
    assert said[0] == ""
    assert said[1] == "another process of this checkout is at it (book): waiting\n"


def sleeper(folder: Path) -> Path:
    """A notebook that says that it runs, and then takes an hour."""
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "id": "a"}
    cell["source"] = "open('begun', 'w').close(); import time; time.sleep(3600)"
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = folder / "sleeper.ipynb"
    path.write_text(json.dumps(book))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "SIGINT", "SIGKILL", "the shell above it"])
def test_an_ended_build_leaves_no_process(how, tmp_path):
    words = [sys.executable, "-m", "scripts.book.run_notebooks", str(sleeper(tmp_path))]
    environment = os.environ | {"MAKELEVEL": "1"}
    if how == "the shell above it":
        words = ["sh", "-c", f"{' '.join(words)}; true"]
    running = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    try:
        assert until((tmp_path / "begun").exists), "the notebook never began"
        family = psutil.Process(running.pid).children(recursive=True)
        assert len(family) >= 2, "a worker and its kernel"
        number = signal.SIGTERM if "shell" in how else getattr(signal, how)
        running.send_signal(number)
        running.wait(60)
        left = until(lambda: not [one for one in family if alive(one)])
        assert left, f"still there: {[one for one in family if alive(one)]}"
    finally:
        for one in psutil.Process().children(recursive=True):
            if one.pid == running.pid:
                one.kill()


def alive(one: psutil.Process) -> bool:
    return one.is_running() and one.status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full: make room"),
        (errno.EROFS, "this checkout cannot be written to"),
        (errno.EACCES, "there is no permission to write here"),
    ],
)
def test_a_fault_of_the_machine_is_a_line(number, words):
    fault = OSError(number, os.strerror(number), "some/file")
    many = shutil.Error([("a", "b", f"[Errno {number}] {os.strerror(number)}: 'b'")])
    for error in (fault, many):
        with pytest.raises(SystemExit, match=words), process.plainly():
            raise error
    with pytest.raises(FileNotFoundError), process.plainly():
        raise FileNotFoundError("a mistake of ours keeps its traceback")


def test_a_checkout_that_cannot_be_written_is_refused_at_once(tmp_path, monkeypatch):
    (tmp_path / "_build").write_text("a file where the folder goes")
    monkeypatch.setattr(process, "ROOT", tmp_path)
    monkeypatch.setattr(process, "end_together", lambda: None)

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "_build")

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(SystemExit, match="this checkout cannot be written to"):
        process.begin("book")


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize("given", ["C", "POSIX", "en_US.UTF-8", ""])
def test_make_reads_paths_as_utf8_in_the_plainest_locale(given):
    words = ["make", "--no-print-directory", "--eval", "said: ; @echo [$$LC_ALL]", "said"]
    environment = {**os.environ, "LC_ALL": given}
    found = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == f"[{'C.UTF-8' if given in ('C', 'POSIX') else given}]"
