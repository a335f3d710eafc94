"""References that never end with inputs, or at sizes, that their authors have not tried."""

from __future__ import annotations

import threading
import time

import pytest

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.preparing import _if_it_ends, prepare
from rlkernel.evaluator.judging.references import ending
from rlkernel.evaluator.judging.references.ending import Endless, Usual
from rlkernel.evaluator.judging.sizes.fitting import fit_for_cpu
from rlkernel.reference import load_reference
from rlkernel.types import Precision, Problem

ENDLESS_WHEN_LARGE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        while x.detach().abs().max() > 12:
            pass
        return x * 2

def get_inputs():
    return [torch.randn(64, 8)]
"""
ENDLESS_WHEN_FEW = """
import torch
from torch import nn

ROWS = 1 << 16

class Model(nn.Module):
    def forward(self, x):
        rows = x.shape[0]
        while rows != 0:
            rows -= 16384
        return x.reshape(-1) + 1

def get_inputs():
    return [torch.randn(ROWS, 64)]
"""


def spin() -> None:
    while True:
        pass


def test_what_has_not_ended_is_given_up_and_what_is_usual_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "FEWEST_SECONDS", 0.1)
    usual, since = Usual(), time.process_time()
    with pytest.raises(Endless), usual.bounded():
        spin()
    assert time.process_time() - since < 2
    with usual.measured():
        while time.process_time() - since < 0.3:
            pass
    with usual.bounded():  # more than the fewest, and less than 20 times what is usual
        while time.process_time() - since < 0.6:
            pass


def test_who_catches_it_is_stopped_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "FEWEST_SECONDS", 0.05)
    caught = 0
    with pytest.raises(Endless), Usual().bounded():
        while True:
            try:
                spin()
            except Endless:
                caught += 1
                if caught == 2:
                    raise
    assert caught == 2


def test_nothing_is_bounded_in_another_thread() -> None:
    done: list[bool] = []

    def inside() -> None:
        with Usual(0.01).bounded():
            done.append(True)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert done


def test_rounds_in_which_a_reference_never_ends_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its operators are no sign of it where the loop calls few."""
    monkeypatch.setattr(ending, "FEWEST_SECONDS", 0.5)
    reference = load_reference(ENDLESS_WHEN_LARGE, small=False)
    rounds = [one for part in draw_rounds(reference, Precision.PYTORCH, "key", other=False) for one in part]
    assert len(rounds) >= 3
    assert all(float(one.inputs[0].abs().max()) <= 12 for one in rounds)


def test_sizes_at_which_a_reference_never_ends_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlkernel.evaluator.judging.sizes.size_search.FEWEST_AT_OTHER_SIZES", 0.3)
    profile = profile_of("h200")
    fitted = fit_for_cpu(Problem("p", 1, "train", ENDLESS_WHEN_FEW), profile, 0)
    rows = load_reference(fitted.problem.source, small=True, name="p").inputs(0)[0].shape[0]  # type: ignore[union-attr]
    assert rows in (1 << 14, 1 << 15)
    assert prepare(fitted.problem.source, "p", profile, Precision.PYTORCH)  # type: ignore[union-attr]


def test_what_ends_get_inputs_leaves_out_a_look_and_breaks_no_reference() -> None:
    """The file's own code raises Endless in get_inputs, and the reference says so in a line of its own."""

    def stopped() -> tuple[()]:
        try:
            raise Endless("it has not ended")
        except Endless as end:
            raise BrokenReference("mine: get_inputs raised Endless") from end

    def broken() -> tuple[()]:
        raise BrokenReference("mine: get_inputs raised ValueError")

    assert _if_it_ends(stopped) == ()
    with pytest.raises(BrokenReference, match="ValueError"):
        _if_it_ends(broken)
