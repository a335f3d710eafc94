"""What operators make of arguments that look alike is told once, and is what torch says each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlkernel.evaluator.program.schema import Op
from rlkernel.evaluator.trace.lie import recording
from rlkernel.evaluator.trace.recorder import Recorder, stand_in
from rlkernel.evaluator.trace.results import Results

Call = Callable[[torch.Tensor, torch.Tensor], Any]
CALLS: list[Call] = [
    lambda x, y: x + y,
    lambda x, y: x.t() * y.t(),
    lambda x, y: x[::2] + 1,
    lambda x, y: torch.add(x, y, alpha=2),
    lambda x, y: x > y,
    lambda x, y: (x > y) + 1,
    lambda x, y: (x > y) + 1.0,
    lambda x, y: (x > y) + True,
    lambda x, y: x.to(torch.float16) @ y.t().half(),
    lambda x, y: torch.nn.functional.layer_norm(x, (6,)),
    lambda x, y: x.sum(0),
    lambda x, y: x.sum(0, keepdim=True),
    lambda x, y: torch.topk(x, 2),
    lambda x, y: torch.cat([x, y, x]),
    lambda x, y: torch.cat([x, y], dim=1),
    lambda x, y: torch.stack([x, y]),
    lambda x, y: torch.empty_like(x.t()),
    lambda x, y: x.new_empty(4, 6, dtype=torch.int8),
    lambda x, y: x.new_zeros(0, 6),
    lambda x, y: x.clone(memory_format=torch.contiguous_format),
    lambda x, y: x.t().clone(),
    lambda x, y: x.add_(y),
    lambda x, y: x.view(6, 4).t_(),
    lambda x, y: x.t().expand(3, 6, 4).contiguous(),
    lambda x, y: torch.where(x > 0, x, y),
    lambda x, y: torch.nn.functional.conv1d(x[None], x.new_zeros(2, 4, 3)),
    lambda x, y: x.max(),
]


def _described(result: Any) -> Any:
    if isinstance(result, tuple):
        return [_described(one) for one in result]
    return tuple(result.shape), result.stride(), result.dtype, result.storage_offset(), result.untyped_storage().nbytes()


@pytest.mark.parametrize("call", CALLS)
def test_the_second_answer_is_the_first(call: Call) -> None:
    wanted = _described(call(torch.zeros(4, 6, device="meta"), torch.zeros(4, 6, device="meta")))
    recorder, found = Recorder(), []
    with recording(recorder):
        for _ in range(3):
            x, y = (stand_in(recorder, (4, 6), (6, 1), torch.float32) for _ in range(2))
            found.append(call(x, y))
    with torch._C.DisableTorchFunction():
        assert [_described(one) for one in found] == [wanted] * 3


def test_results_have_memory_of_their_own_and_steps_are_recorded_each_time() -> None:
    recorder = Recorder()
    with recording(recorder):
        x = stand_in(recorder, (4,), (1,), torch.float32)
        made = [x + 1 for _ in range(5)]
        numbers = [recorder.ids.of(one) for one in made]
    assert len({recorder.ids.storage(number) for number in numbers}) == len(set(numbers)) == 5
    assert [step.outs for step in recorder.steps if isinstance(step, Op)] == [(number,) for number in numbers]


def test_torch_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    of = Results.of

    def counted(self: Results, one: Any, call: Any, args: Any, kwargs: Any) -> Any:
        real = type(call).__call__
        monkeypatch.setattr(type(call), "__call__", lambda own, *a, **k: (asked.append(str(own)), real(own, *a, **k))[1])
        try:
            return of(self, one, call, args, kwargs)
        finally:
            monkeypatch.setattr(type(call), "__call__", real)

    monkeypatch.setattr(Results, "of", counted)
    recorder = Recorder()
    with recording(recorder):
        x = stand_in(recorder, (4,), (1,), torch.float32)
        for _ in range(4):
            torch.mul(x, x)
    assert asked.count("aten.mul.Tensor") == 1


def test_a_default_dtype_is_part_of_the_question() -> None:
    recorder = Recorder()
    with recording(recorder):
        x = stand_in(recorder, (4,), (1,), torch.int64)
        first = (x / 2).dtype
        torch.set_default_dtype(torch.float64)
        assert (first, (x / 2).dtype) == (torch.float32, torch.float64)


def test_numbers_of_the_weights_are_recorded_each_for_itself() -> None:
    recorder = Recorder()
    with recording(recorder):
        x = stand_in(recorder, (4,), (1,), torch.float32)
        weights = [torch.zeros(1, device="cuda") + number for number in range(2)]
        recorder.reading.state |= {recorder.ids.storage(recorder.ids.of(weight)) for weight in weights}
        recorder.phase()
        recorder.reading.begin()
        for weight in weights:
            x * weight.item()
    products = [step for step in recorder.steps if isinstance(step, Op) and step.op == "aten.mul.Tensor"]
    assert len(products) == 2 and products[0].args[1] != products[1].args[1]
