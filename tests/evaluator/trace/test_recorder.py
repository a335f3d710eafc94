"""What the recorder writes down for small functions of tensors, and what it refuses."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rlkernel.evaluator.program.schema import MAX_LITERAL_BYTES, Literal, Op, Step
from rlkernel.evaluator.program.values import DeviceRef, TensorRef, TorchName
from rlkernel.evaluator.trace.lie import recording
from rlkernel.evaluator.trace.reading import INPUT
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable, stand_in


def traced(function: Callable[..., Any], *shapes: tuple[int, ...]) -> tuple[list[Step], Any]:
    """The steps of `function` on contiguous inputs of these shapes, whose ids are 0, 1, ...; and what it returns."""
    recorder = Recorder()
    inputs = [stand_in(recorder, shape, torch.empty(shape, device="meta").stride(), torch.float32) for shape in shapes]
    with recording(recorder):
        result = function(*inputs)
    return recorder.phase(), result


def test_operators_are_recorded_by_name_with_ids_in_order_of_appearance() -> None:
    steps, result = traced(lambda x, y: torch.relu(x + y) * 2, (2, 3), (3,))
    assert steps == [
        Op("aten.add.Tensor", (TensorRef(0), TensorRef(1)), {}, (2,)),
        Op("aten.relu.default", (TensorRef(2),), {}, (3,)),
        Op("aten.mul.Tensor", (TensorRef(3), 2), {}, (4,)),
    ]
    assert tuple(result.shape) == (2, 3)


def test_what_works_in_place_keeps_its_id() -> None:
    steps, _ = traced(lambda x: x.add_(1.5), (4,))
    assert steps == [Op("aten.add_.Tensor", (TensorRef(0), 1.5), {}, (0,))]


def test_an_operator_with_several_results_binds_each() -> None:
    steps, _ = traced(lambda x: x.max(dim=1), (2, 3))
    assert steps == [Op("aten.max.dim", (TensorRef(0), 1), {}, (1, 2))]


def test_composite_operators_are_taken_apart() -> None:
    steps, _ = traced(lambda x, w: torch.nn.functional.linear(x, w), (2, 3), (4, 3))
    assert [step.op for step in steps if isinstance(step, Op)] == ["aten.t.default", "aten.mm.default"]


def test_attention_is_recorded_whole_because_its_parts_depend_on_the_device() -> None:
    attention = torch.nn.functional.scaled_dot_product_attention
    steps, _ = traced(lambda q, k, v: attention(q, k, v, is_causal=True), *[(1, 2, 4, 8)] * 3)
    assert steps == [
        Op("aten.scaled_dot_product_attention.default", (TensorRef(0), TensorRef(1), TensorRef(2)), {"is_causal": True}, (3,))
    ]


def test_devices_are_recorded_as_the_replays_own() -> None:
    steps, made = traced(lambda: torch.zeros(2, device="cuda:0", dtype=torch.float16))
    step = steps[0]
    assert isinstance(step, Op)
    assert (step.op, step.args) == ("aten.zeros.default", ([2],))
    assert (step.kwargs["device"], step.kwargs["dtype"]) == (DeviceRef(), TorchName("dtype", "float16"))
    assert made.device.type == "meta", "seen from outside; inside it answers cuda"


def test_literals_are_recorded_by_value() -> None:
    steps, _ = traced(lambda x: x + torch.tensor([1.0, -2.0], device=x.device), (2,))
    data = base64.b64encode(struct.pack("<2f", 1.0, -2.0)).decode()
    assert steps == [Literal(1, "float32", (2,), data), Op("aten.add.Tensor", (TensorRef(0), TensorRef(1)), {}, (2,))]


def test_infinite_scalars_have_a_form_that_json_knows() -> None:
    steps, _ = traced(lambda x: x.masked_fill(x > 0, float("-inf")), (2,))
    assert isinstance(steps[1], Op)
    assert steps[1].args == (TensorRef(0), TensorRef(1), float("-inf"))


def test_host_code_sees_a_cuda_device() -> None:
    seen: list[Any] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.extend([x.is_cuda, x.is_cpu, x.is_meta, x.device, x.get_device(), x.cuda() is x])
        return x

    steps, _ = traced(look, (2,))
    assert seen == [True, False, False, torch.device("cuda", 0), 0, True]
    assert steps == []


def test_a_view_made_behind_the_recorders_back_is_found_by_its_memory() -> None:
    recorder = Recorder()
    x = stand_in(recorder, (2, 3), (3, 1), torch.float32)
    row = x[1]  # outside of the modes
    assert recorder.ids.of(row) == 1
    assert recorder.phase() == [Op("aten.as_strided.default", (TensorRef(0), [3], [1], 3), {}, (1,))]


def test_phases_share_ids_and_not_steps() -> None:
    recorder = Recorder()
    with recording(recorder):
        x = stand_in(recorder, (2,), (1,), torch.float32)
        y = x + 1
        first = recorder.phase()
        y * 2
    assert [step.outs for step in (*first, *recorder.phase()) if isinstance(step, Op)] == [(1,), (2,)]
    assert len(recorder.ids) == 3


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (lambda x: x.item(), INPUT),
        (lambda x: x.tolist(), INPUT),
        (lambda x: bool(x), INPUT),
        (lambda x: torch.equal(x, x), INPUT),
        (lambda x: x.storage(), "the host reads a tensor's address or storage (.storage())"),
        (lambda x: x.nonzero(), "aten.nonzero.default cannot be traced: its result depends on values"),
        (
            lambda x: torch.tensor([0] * (MAX_LITERAL_BYTES // 8 + 1)),
            "a literal tensor of 8193 elements; build large tensors with operators",
        ),
    ],
)
def test_what_depends_on_values_is_refused_in_one_line(function: Callable[[torch.Tensor], Any], line: str) -> None:
    with pytest.raises(Untraceable) as refused:
        traced(function, (1,))
    assert str(refused.value) == line


def test_a_generator_of_its_own_is_refused_in_forward_and_none_before_it() -> None:
    recorder, own = Recorder(), torch.Generator()
    with recording(recorder):
        weight = torch.empty(2).normal_(generator=own) + torch.rand(2, generator=own)
        assert weight.shape == (2,)
        recorder.reading.begin()
        with pytest.raises(Untraceable, match=r"^random operators with their own generator; use the default one$"):
            torch.rand(2, generator=own)


def test_arrays_are_literals_and_large_ones_of_a_reference_are_shapes() -> None:
    small, large = np.arange(4, dtype=np.float32), np.zeros((MAX_LITERAL_BYTES, 2), dtype=np.float32)
    for trusted in (False, True):
        recorder = Recorder(trusted=trusted)
        with recording(recorder):
            assert (torch.from_numpy(small) * 2).shape == (4,)
            assert isinstance(recorder.phase()[0], Literal)
            if trusted:
                assert (torch.from_numpy(large) * 2).shape == large.shape
                assert [step.op for step in recorder.phase() if isinstance(step, Op)] == [
                    "aten.zeros.default",
                    "aten.mul.Tensor",
                ]
            else:
                with pytest.raises(Untraceable, match="a literal tensor of 131072 elements"):
                    torch.from_numpy(large)


def test_endless_work_is_refused() -> None:
    def forever(x: torch.Tensor) -> None:
        while True:
            x = x + 1

    with pytest.raises(Untraceable, match=r"^more than 131072 operations$"):
        traced(forever, (1,))
