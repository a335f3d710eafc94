"""Native runs share a device, and time alone."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

from rlkernel.evaluator.native.quiet import Quiet


def _until_somebody_waits(path: Path) -> None:
    """Return when the lock of whoever is next is held."""
    while True:
        with open(f"{path}.turn", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return


def test_who_wants_to_be_alone_waits_for_the_others_and_comes_before_who_begins_later(tmp_path: Path) -> None:
    path, seen = tmp_path / "lock", list[str]()
    first, second, third = (Quiet(str(path)) for _ in range(3))
    inside, go_on = threading.Event(), threading.Event()

    def times() -> None:
        with second.shared():
            inside.set()
            with second.alone():
                seen.append("second alone")

    def begins() -> None:
        with third.shared():
            seen.append("third")

    with first.shared():
        timing = threading.Thread(target=times)
        timing.start()
        inside.wait()  # two share the device
        _until_somebody_waits(path)
        later = threading.Thread(target=begins)
        later.start()
        seen.append("first")
        go_on.set()
    timing.join()
    later.join()
    assert seen == ["first", "second alone", "third"]


def test_two_that_both_want_to_be_alone_take_turns(tmp_path: Path) -> None:
    path, within, most = tmp_path / "lock", list[int](), list[int]()

    def one(number: int) -> None:
        mine = Quiet(str(path))
        with mine.shared():
            for _ in range(20):
                with mine.alone():
                    within.append(number)
                    most.append(len(within))
                    within.remove(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80


def test_a_process_that_was_forked_inside_keeps_nobody_waiting(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    quiet = Quiet(str(path))
    with quiet.shared():
        assert quiet._file is not None
        kept = os.dup(quiet._file.fileno())  # what a fork leaves in the child: the same open file
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises BlockingIOError where it is still locked
    os.close(kept)


def test_without_a_file_nobody_is_waited_for() -> None:
    quiet = Quiet("")
    with quiet.shared(), quiet.alone():
        pass
