"""What small changes to the room would spoil: names in refusals, keys, replies of a worker."""

import pickle
from types import ModuleType

import numpy as np
import pytest

from needle.trials.grid import sweep
from needle.trials.keys import environment, is_local
from needle.trials.store import CacheWarning, TrialStore, encode
from needle.trials.worker import pack, work


def drawn(p, rng):
    return float(rng.normal() + sum(p))


def failing(p, rng):
    raise ValueError(f"no {p}")


def test_tuples_keep_their_stream_wherever_they_stand():
    first, second = {"p": (1, 2.5)}, {"p": (3, 4)}
    there = sweep(drawn, [first, second], trials=2, seed=1, n_jobs=1).results
    back = sweep(drawn, [second, first], trials=2, seed=1, n_jobs=1).results
    assert there == back[::-1]
    assert there[0][0] - 3.5 != pytest.approx(there[1][0] - 7)


def test_refusals_name_their_argument(tmp_path):
    with pytest.raises(ValueError, match=r"^function = 3 .*a function$"):
        sweep(3, {"p": [1]}, trials=1, seed=0)
    with pytest.raises(ValueError, match=r"^cache = 3 .*a path or None$"):
        sweep(drawn, {"p": [(1,)]}, trials=1, seed=0, cache=3)
    with pytest.raises(ValueError, match=r"defined at the top of a module\)$"):
        encode(object())


def test_a_folder_without_a_file_is_the_reader_s_own():
    module = ModuleType("own")
    assert not is_local(module)
    module.__path__ = []
    assert is_local(module)
    assert is_local(None) and not is_local(np)


@pytest.mark.parametrize(("lines", "told"), [(2, r"line \d+; \d+"), (7, r".* and 2 more")])
def test_what_is_damaged_is_counted(tmp_path, lines, told):
    store = TrialStore(tmp_path)
    store.keep("key", 1.0, 0.1)
    store.close()
    [segment] = tmp_path.rglob("*.trials")
    with segment.open("a") as file:
        file.write("not a trial\n" * lines)
    with pytest.warns(CacheWarning, match=rf"damaged at {told}: these trials"):
        TrialStore(tmp_path).read(["key"])


def test_a_worker_says_what_was_raised_and_keeps_what_was_done():
    first, second = (pickle.dumps({"p": p}) for p in ((1,), (2,)))
    done, failure = work(environment(), pack(drawn), [(first, 0, (0,)), (second, 0, (1,))])
    assert len(done) in (1, 2) and failure is None
    done, (told, cause) = work(environment(), pack(failing), [(first, 0, (0,))])
    assert done == [] and told == "ValueError: no (1,)"
    assert isinstance(pickle.loads(cause), ValueError)
    with pytest.raises(RuntimeError, match="the worker has"):
        work("another", pack(drawn), [])
