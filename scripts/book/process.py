"""What a build owes to the machine: one at a time, nothing left running, and faults in one line."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
ENDS = [name for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name)]
GRACE = 10.0  # seconds for files and folders to be put away
WORDS = {
    errno.ENOSPC: "the disk is full: make room and run it again, it goes on where it was",
    errno.EDQUOT: "your share of the disk is used up: make room and run it again",
    errno.EROFS: "this checkout cannot be written to, and _build and _vendor go into it: copy it",
    errno.EACCES: "there is no permission to write here: copy the checkout to a folder of yours",
}


def said(error: BaseException) -> str | None:
    """What to do about a fault of the machine, if this is one; shutil lists several as words."""
    number = getattr(error, "errno", None)
    if number not in WORDS:
        number = next((n for n in WORDS if os.strerror(n) in str(error)), None)
    if not isinstance(error, OSError) or number is None:
        return None
    name = getattr(error, "filename", None)
    return WORDS[number] + (f" ({name})" if name else "")


@contextmanager
def plainly() -> Iterator[None]:
    """A full disk or a folder that cannot be written ends in a line, not in a traceback."""
    try:
        yield
    except OSError as error:
        words = said(error)
        if words is None:
            raise
        raise SystemExit(words) from None


@contextmanager
def alone(what: str) -> Iterator[None]:
    """Only one process of this checkout at a time does this; others say so and wait."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    folder = ROOT / "_build"
    folder.mkdir(exist_ok=True)
    with (folder / f"{what}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another process of this checkout is at it ({what}): waiting", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def end_children() -> None:
    """End every process that this one has started, and theirs."""
    import psutil

    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            child.kill()


def end_together() -> None:
    """When this process is told to end, all that it has started ends with it.

    A shell between make and a command does not pass a signal on: under make the end of the one who
    started this process counts as such a signal.
    """

    def end(number: int, frame: FrameType | None) -> None:
        late = threading.Timer(GRACE, os._exit, [128 + number])
        late.daemon = True
        late.start()
        for name in ENDS:
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        end_children()
        os.write(2, b"\nended; run it again, it goes on where it was\n")
        raise SystemExit(128 + number)

    for name in ENDS:
        signal.signal(getattr(signal, name), end)
    if "MAKELEVEL" in os.environ:
        watch(lambda: os.kill(os.getpid(), signal.SIGTERM))


def leave_with_parent() -> None:
    """For a worker: it ends when the process that started it does, even if that was killed."""
    for name in ENDS:  # a forked worker has inherited those of `end_together`
        usual = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
        signal.signal(getattr(signal, name), usual)
    watch(lambda: os._exit(1))


def watch(leave: Callable[[], None]) -> None:
    """Call `leave` as soon as the parent of this process is another one."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        leave()

    threading.Thread(target=look, daemon=True).start()


def begin(what: str) -> None:
    """Called first by every program that writes into the checkout; refuses where it cannot."""
    end_together()
    with plainly():
        folder = ROOT / "_build"
        folder.mkdir(exist_ok=True)
        probe = folder / f"{what}.{os.getpid()}.probe"
        probe.write_bytes(b"")
        probe.unlink()
