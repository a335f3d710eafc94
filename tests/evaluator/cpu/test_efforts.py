"""What kernels compute for each element that they store, at both sizes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rlkernel.evaluator.cpu.efforts import Efforts
from rlkernel.evaluator.judging.costs.counts import Counts

PROGRAM: Any = SimpleNamespace(functions=[SimpleNamespace(source=name) for name in "abc"])


def efforts(**counts: tuple[float, float]) -> Efforts:
    made = Efforts()
    for name, (operations, lanes) in counts.items():
        made.note(name, Counts(on_floats=operations, lanes=lanes))
    return made


def test_less_for_each_element_is_a_share_of_what_is_computed_here() -> None:
    here = efforts(a=(2400.0, 100.0))
    assert here.share(efforts(a=(8e6, 1e6)).of(PROGRAM), PROGRAM, 1.0) == pytest.approx(1 / 3)
    assert here.share(efforts(a=(24e6, 1e6)).of(PROGRAM), PROGRAM, 1.0) == pytest.approx(1.0)
    assert here.share(efforts(a=(96e6, 1e6)).of(PROGRAM), PROGRAM, 1.0) == pytest.approx(4.0)


def test_a_kernel_counts_by_what_it_would_compute_at_full_shape() -> None:
    """One that adds up the parts of a split sum hardly counts beside the one that makes them."""
    here = efforts(a=(100.0, 10.0), b=(160.0, 10.0))
    assert here.share(efforts(a=(1e6, 1e5), b=(100.0, 100.0)).of(PROGRAM), PROGRAM, 1.0) > 0.99


def test_launches_of_one_kernel_are_one_effort() -> None:
    full = efforts(a=(100.0, 10.0))
    full.note("a", Counts(on_floats=300.0, lanes=10.0))
    assert full.of(PROGRAM) == {0: (400.0, 20.0, 20.0, 0.0)}


def test_nothing_is_said_of_what_is_launched_or_stores_at_one_size_alone() -> None:
    full = efforts(a=(1.0, 100.0), b=(1.0, 0.0)).of(PROGRAM)
    assert efforts(b=(100.0, 1.0), c=(100.0, 1.0)).share(full, PROGRAM, 1.0) == 1.0
    assert efforts(a=(100.0, 0.0)).share(full, PROGRAM, 1.0) == 1.0


def test_what_the_elements_of_a_block_share_is_not_asked_for() -> None:
    """A factor of a row is computed once for it: 8 elements take 48 operations here, and 1,024 take 4,112 at full shape."""
    here = Efforts()
    counts = Counts(lanes=8.0, widest=8)
    for elements in (1.0,) * 16 + (8.0,) * 4:
        counts.compute(elements, floats=True)
    here.note("a", counts)
    assert here.share(efforts(a=(4112.0, 1024.0)).of(PROGRAM), PROGRAM, 1.0) == pytest.approx(4112 / 4096)


def test_single_numbers_that_are_stored_share_nothing() -> None:
    counts = Counts(lanes=1.0, widest=1)
    counts.compute(1.0, floats=True)
    assert counts.for_elements == 1.0


@pytest.mark.parametrize(
    ("operations", "certain", "share"),
    [
        (800.0, 10.0, 1.0),  # ten times as much is loaded, and as much computed for it
        (400.0, 10.0, 0.5),
        (800.0, 400.0, 0.25),  # forty times as much is stored whatever memory holds
    ],
)
def test_what_memory_may_have_stored_asks_for_no_more_than_what_is_loaded(
    operations: float, certain: float, share: float
) -> None:  # fmt: skip
    """A sum of each run of equal keys: followed without data, it is stored behind each row."""
    here, full = Efforts(), Efforts()
    counts = Counts(lanes=10.0, widest=10, loaded=10.0, inside=10.0)
    for _ in range(8):
        counts.compute(10.0, floats=True)
    here.note("a", counts)
    full.note("a", Counts(on_floats=operations, lanes=1000.0, perhaps=1000.0 - certain, loaded=100.0))
    assert here.share(full.of(PROGRAM), PROGRAM, 10.0) == pytest.approx(share)


def test_whole_numbers_and_kernels_of_few_operations_are_not_asked() -> None:
    """A mask takes places and a choice, which a kernel does without where its blocks are filled."""
    here, counts = Efforts(), Counts(lanes=8.0, widest=8)
    for floats in (True, True, False, False, False):
        counts.compute(8.0, floats=floats)
    here.note("a", counts)
    assert here.of(PROGRAM) == {0: (16.0, 8.0, 8.0, 0.0)}
    assert here.share(efforts(a=(8.0, 8.0)).of(PROGRAM), PROGRAM, 1.0) == 1.0, "two operations for an element"


@pytest.mark.parametrize(
    ("turns", "bins", "share"),
    [
        (10.0, 64.0, 1.0),  # blocks of 2,048 numbers, as many for each block of bins that is stored
        (5.0, 64.0, 0.5),  # of which half is left out
        (20.0, 16.0, 2.0),
        (2.5, 16.0, 0.25),
    ],
)
def test_what_is_computed_on_larger_blocks_than_are_stored_goes_by_those_that_are_loaded(
    turns: float, bins: float, share: float
) -> None:  # fmt: skip
    """A histogram of 16 bins here and of 64 at full shape."""

    def of(turns: float, bins: float) -> Efforts:
        counts, made = Counts(lanes=bins, widest=int(bins), loaded=2048.0, inside=2048.0), Efforts()
        counts.compute(turns * 2048.0, floats=True)
        made.note("a", counts)
        return made

    assert of(10.0, 16.0).share(of(turns, bins).of(PROGRAM), PROGRAM, 1.0) == pytest.approx(share)


@pytest.mark.parametrize(
    ("turns", "filled", "share"),
    [
        (34, 1.0, 1.0),
        (2, 1.0, 2 / 34),  # two of 34 turns, each of which loads the row: 16 times as many rows, and less is loaded
        (34, 0.35, 1.0),
        (2, 0.35, 2 / 34 / 0.35),
        (2, 0.01, 2 / 34 / 0.125),
    ],
)
def test_who_loads_less_because_it_takes_fewer_turns_computes_less(turns: int, filled: float, share: float) -> None:
    """Rows of 1,024 numbers, of which 1,024 in place of 64 are summed; `filled` is what masks leave in here."""

    def of(rows: float, turns: int, filled: float) -> Efforts:
        loaded = rows * turns * 1024.0
        counts, made = Counts(lanes=rows, widest=1, loaded=loaded, inside=filled * loaded), Efforts()
        counts.compute(loaded, floats=True)
        made.note("a", counts)
        return made

    here, full = of(64.0, 34, filled), of(1024.0, turns, 1.0).of(PROGRAM)
    assert here.share(full, PROGRAM, 16.0) == pytest.approx(share)
