"""Numbers that a reference's host reads of the GPU: noted once, then given without waiting. Tensors lie on the CPU here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from rlkernel.evaluator.gpu import host_reads
from rlkernel.evaluator.gpu.host_reads import answered, noted


class Sums(nn.Module):
    """The sums of the first elements of each row, as many as `lengths` says, and how often forward was called."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.stack([x[row, : int(lengths[row].item())].sum() for row in range(len(lengths))])


@pytest.fixture(autouse=True)
def on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_reads, "is_of_gpu", lambda tensor: True)


X = torch.ones(3, 8)


def test_what_was_read_is_given_in_its_order() -> None:
    assert noted(Sums(), [X, torch.tensor([2, 8, 5])], 0) == [2, 8, 5]
    known = noted(Sums(), [X, torch.tensor([2, 8, 5])], 0)
    # Other lengths show that nobody looks at them any more.
    assert answered(Sums(), [X, torch.tensor([1, 1, 1])], 0, known).tolist() == [2.0, 8.0, 5.0]
    assert answered(Sums(), [X, torch.tensor([1, 3, 1])], 0, known[:1]).tolist() == [2.0, 3.0, 1.0], "more than was known"


def test_copies_and_checks_make_the_host_wait_too() -> None:
    class Copies(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            host = x.to("cpu", copy=True)
            return torch.linalg.solve(torch.eye(2), x) + host.add_(1.0)

    x = torch.tensor([[1.0], [2.0]])
    known = noted(Copies(), [x], 0)
    assert [None if value is None else value.tolist() for value in known] == [[[1.0], [2.0]], None]
    for _ in range(2):  # what is given may be changed
        assert answered(Copies(), [torch.zeros(2, 1)], 0, known).tolist() == [[2.0], [3.0]]


def test_lengths_that_values_decide_are_known_too() -> None:
    class Chosen(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out = torch.zeros_like(x)
            out[x > 1] = x[x > 1] * 2
            return out.index_add(0, torch.nonzero(x[:, 0])[:, 0], x[x[:, 0] != 0])

    x = torch.tensor([[0.0, 2.0, 3.0], [4.0, 0.0, 1.0]])
    known = noted(Chosen(), [x], 0)
    assert known == [3, 3, 1, 1], "two masks of three elements, and two of one row"
    assert answered(Chosen(), [x], 0, known).tolist() == [[0.0, 4.0, 6.0], [12.0, 0.0, 1.0]]


def test_a_timed_reference_is_called_once_before(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.trials.host_reads, "is_of_gpu", lambda tensor: True)
    drawn: list[int] = []
    problem = SimpleNamespace(replaced=(), inputs=lambda seed: drawn.append(seed) or [X, torch.tensor([2, 8, 5])])
    model = Sums()
    for reads, before in ((True, [7]), (False, [])):
        known = SimpleNamespace(reads=reads, changes_state=("calls",))
        trials = room.trials.Trials(problem, known, None, None, None, precision=None, seconds=1.0)
        drawn.clear()
        model.calls.zero_()
        forward = trials._reference(model, [X, torch.tensor([2, 8, 5])], 7, 0)
        assert (drawn, float(model.calls)) == (before, 0.0), "state is as it was"
        assert (forward().tolist(), float(model.calls)) == ([2.0, 8.0, 5.0], 1.0)
