"""Threads, forks and processes: together they admit exactly the burst."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading

import pytest
from conftest import SECOND

from tatcell import Cell, Limiter

WORKER = """
import sys
from tatcell import Limiter
limiter = Limiter("1/h burst 1000", keys=100, name=sys.argv[1])
sys.stdin.read(1)
print(sum(limiter.hit("one", now=10**9) for _ in range(2000)))
"""


def test_threads_admit_exactly_the_burst() -> None:
    limiter, cell, passed = Limiter("1/h burst 5000", keys=100), Cell("1/h burst 5000"), []

    def work() -> None:
        for _ in range(2000):
            passed.append((limiter.hit("one", now=10**9), cell.hit(now=10**9)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sum(verdicts) for verdicts in zip(*passed)] == [5000, 5000]


def test_processes_that_open_one_name_admit_exactly_the_burst(shared_name: str) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, shared_name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    for worker in workers:
        assert worker.stdin
        worker.stdin.write(b"x")
        worker.stdin.flush()
    counts = [int(worker.communicate(timeout=60)[0]) for worker in workers]
    assert sum(counts) == 1000
    with Limiter("1/h burst 1000", keys=100, name=shared_name) as again:
        assert not again.hit("one", now=10**9) and again.name == shared_name


def test_a_name_keeps_its_limit_its_size_and_its_policy(shared_name: str) -> None:
    first = Limiter("10/s burst 20", keys=1000, name=shared_name)
    with pytest.raises(ValueError, match="another limit"):
        Limiter("10/s burst 21", keys=1000, name=shared_name)
    with pytest.raises(ValueError, match="another limit"):
        Limiter("10/s burst 20", keys=1000, name=shared_name, full="deny")
    with pytest.raises(ValueError, match="another number of keys"):
        Limiter("10/s burst 20", keys=2000, name=shared_name)
    assert first.hit("a", 20) and not Limiter("10/s burst 20", keys=1000, name=shared_name).hit("a")
    Limiter.unlink(shared_name)
    assert not first.hit("a") and Limiter("1/s", keys=10, name=shared_name).hit("a")


def test_processes_that_come_and_go_sweep_a_name(shared_name: str) -> None:
    # Each opens the name for one call, in ten minutes. No key can be over the limit.
    rng, answers = random.Random(29), []
    for call in range(1500):
        with Limiter("5/15min", name=shared_name) as limiter:
            answers.append(limiter.hit(rng.randrange(50), now=call * 600 * SECOND))
    assert answers.count(False) == 0


def test_processes_that_were_all_silent_find_no_old_debt(shared_name: str) -> None:
    a, b = (Limiter("10/s burst 20", keys=1000, name=shared_name) for _ in range(2))
    now = SECOND
    for silence in (2**43 - SECOND, 10**16, 2**50 - SECOND):
        for one, other in ((a, b), (b, a), (a, a)):
            assert one.hit("a", 20, now=now) and not other.hit("a", now=now)
            now += silence
            assert other.test("a", 20, now=now) and one.peek("a", 20, now=now)
        # One was silent while the other charged: no debt is forgotten.
        for _ in range(40):
            now += 300 * SECOND
            assert a.hit("b", 20, now=now)
        assert not b.hit("b", now=now)
        now += SECOND * 2
        with Limiter("10/s burst 20", keys=1000, name=shared_name) as third:
            assert third.hit("b", 20, now=now) and not b.hit("b", now=now)
        now += silence


def test_wrong_names_are_refused(shared_name: str) -> None:
    for name in ("", "x", "/", "/..", "//a", "/" + "n" * 300, "/a\0b"):
        with pytest.raises(ValueError):
            Limiter("1/s", keys=10, name=name)
    with pytest.raises(ValueError):
        Limiter("1/s", keys=10, name="/no/such/folder/x")
    with pytest.raises(TypeError):
        Limiter("1/s", keys=10, name=5)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        Limiter.unlink(shared_name)
    with Limiter("1/s", keys=10, name=shared_name):
        with pytest.raises(ValueError, match="NUL"):
            Limiter.unlink(shared_name + "\0b")
        Limiter.unlink(shared_name)
    with pytest.raises(ValueError, match="exclude each other"):
        Limiter("1/s", keys=10, name=shared_name, shared=True)
    with pytest.raises(ValueError):
        Limiter("1/s burst 1000000000000000000", keys=10, name=shared_name)
    assert not os.path.exists("/dev/shm" + shared_name)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="names are not files in /dev/shm here")
def test_memory_that_nobody_finishes_is_named(shared_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Limiter("1/s", keys=10, name=shared_name) as limiter:
        size = limiter.memory
    Limiter.unlink(shared_name)
    with open("/dev/shm" + shared_name, "wb") as file:
        file.write(bytes(size))
    with pytest.raises(ValueError, match="unlink"):
        Limiter("1/s", keys=10, name=shared_name)


def test_a_signal_ends_the_wait_for_another_process(shared_name: str) -> None:
    with Limiter("1/s", keys=10, name=shared_name) as limiter:
        size = limiter.memory
    Limiter.unlink(shared_name)
    with open("/dev/shm" + shared_name, "wb") as file:
        file.write(bytes(size))

    class Rang(Exception):
        pass

    def ring(number: int, frame: object) -> None:
        raise Rang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Rang):
            Limiter("1/s", keys=10, name=shared_name)
    finally:
        signal.signal(signal.SIGALRM, before)


def hits(limiter: Limiter) -> int:
    context = multiprocessing.get_context("fork")
    with context.Pool(3) as pool:
        return sum(pool.starmap(one_process, [(100,)] * 3))


def one_process(count: int) -> int:
    return sum(FORKED[0].hit("one", now=10**9) for _ in range(count))


FORKED: list[Limiter] = []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_share_what_is_shared_and_copy_what_is_not() -> None:
    FORKED[:] = [Limiter("1/h burst 150", keys=100, shared=True)]
    assert FORKED[0].hit("one", 50, now=10**9)
    assert hits(FORKED[0]) == 100 and not FORKED[0].hit("one", now=10**9)
    FORKED[:] = [Limiter("1/h burst 150", keys=100)]
    assert FORKED[0].hit("one", 50, now=10**9)
    assert hits(FORKED[0]) >= 100 and FORKED[0].hit("one", 100, now=10**9)


INTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
one = interpreters.create({config})
said = interpreters.{run}(one, '''
from tatcell import Cell, Limiter
import ipaddress
limiter = Limiter("1/h burst 2", keys=10)
if [limiter.hit(ipaddress.ip_address("192.0.2.1")) for _ in range(3)] != [True, True, False]: raise SystemExit("wrong")
''')
interpreters.destroy(one)
from tatcell import Limiter
print(said, Limiter("1/s").hit("a"))
"""


def test_other_interpreters_have_objects_of_their_own() -> None:
    if sys.version_info >= (3, 13):
        text = INTERPRETERS.format(config="'isolated'", run="exec")
    elif sys.version_info >= (3, 12):
        text = INTERPRETERS.format(config="isolated=True", run="run_string")
    else:
        text = INTERPRETERS.format(config="", run="run_string")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout == "None True\n", done.stderr
