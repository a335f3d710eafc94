"""What a trace records when tensors become others, when dtypes depend on settings, and when tensors lie on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.program.values import TensorRef
from rlkernel.evaluator.trace.devices import CUDA, HOST
from rlkernel.evaluator.trace.lie import recording
from rlkernel.evaluator.trace.passing import encode_output
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable, stand_in
from rlkernel.evaluator.trace.shims import answering_as

X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -0.125]])


@contextmanager
def tracing(base: torch.device = HOST) -> Iterator[Recorder]:
    recorder = Recorder()
    recorder.devices.base = base
    with answering_as(PROFILES["h200"]), recording(recorder):
        yield recorder


def replayed(forward: Callable[[Any], Any], x: torch.Tensor = X) -> Any:
    """What `forward` gives when it is traced on a tensor without data and replayed on `x`."""
    with tracing() as recorder:
        given = stand_in(recorder, tuple(x.shape), tuple(x.stride()), x.dtype)
        number = recorder.ids.of(given)
        output = encode_output(forward(given), recorder)
    program = Program((), (), (), {}, (number,), tuple(recorder.steps), output)
    return Replay(program, torch.device("cpu"), lambda *call: None).forward([x.clone()], 0)


def ops(forward: Callable[[Any], Any]) -> list[str]:
    with tracing() as recorder:
        forward(stand_in(recorder, (4, 4), (4, 1), torch.float32))
    return [step.op for step in recorder.steps if isinstance(step, Op)]


def data(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    y.data = x
    return y


def swapped(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    torch.utils.swap_tensors(y, x)
    return y


def steps_of(tensor: torch.Tensor) -> list[int]:
    """Strides along which there are elements."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "half": lambda x: data(x * 1, x.to(torch.float16)),
    "bfloat16": lambda x: data(x * 1, x.to(torch.bfloat16)),
    "transposed": lambda x: data(x * 1, x.t()),
    "row": lambda x: data(x * 1, x[1]),
    "set": lambda x: (x * 1).set_(x + 1),  # type: ignore[call-overload]  # torch's stubs lack this form
    "swapped": lambda x: swapped(x * 1, (x + 1).half()),
    "squeezed": lambda x: (x * 1).unsqueeze_(0).transpose_(1, 2),
    "bits": lambda x: (x * 1).view(torch.int32) + 1,
    "negated": lambda x: -x,
    "added in place": lambda x: data(x * 1, x.double()).add_(1),
    "of data": lambda x: (x + 1).data.data * 2,
}


@settings(deadline=None)
@given(st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=5))
def test_whatever_tensors_become_is_replayed(names: list[str]) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        for name in names:
            if x.dim() == 2 or name not in ("transposed", "row", "squeezed"):
                x = CHANGES[name](x) if name != "bits" or x.dtype == torch.float32 else x
        return x

    with torch.no_grad():
        expected = forward(X.clone())
    found = replayed(forward)
    assert (found.dtype, found.shape, steps_of(found)) == (expected.dtype, expected.shape, steps_of(expected))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("swap", [False, True])
def test_modules_that_are_moved_between_dtypes_have_state_of_the_last_one(swap: bool) -> None:
    torch.__future__.set_swap_module_params_on_conversion(swap)
    try:
        with tracing(CUDA) as recorder:
            layer = nn.Linear(4, 3).half().to(torch.float64).bfloat16()
            number = recorder.ids.of(layer.weight)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    program = Program((), (), tuple(recorder.steps), {"weight": number}, (), (), None)
    state = Replay(program, torch.device("cpu"), lambda *call: None).init([], 3)
    torch.manual_seed(3)
    assert torch.equal(state["weight"], nn.Linear(4, 3).half().to(torch.float64).bfloat16().weight)


def test_a_tensor_that_changed_has_another_id_and_what_was_made_of_it_keeps_its_own() -> None:
    with tracing() as recorder:
        x = stand_in(recorder, (2, 3), (3, 1), torch.float32)
        y = x + 1
        before = recorder.ids.of(y)
        row = y[0]
        y.data = x
        assert recorder.ids.of(y) != before
        assert recorder.ids.ref(row) == TensorRef(recorder.ids.of(row))
        assert recorder.ids.of(x) == 0


@pytest.mark.parametrize("made", ["torch.Tensor(2, 3)", "torch.FloatTensor(2, 3)", "nn.Parameter(torch.Tensor(2, 3))"])
def test_tensors_by_their_types_lie_on_the_host_as_torchs_others_do(made: str) -> None:
    with tracing() as recorder:
        tensor = eval(made)
        assert (tensor.shape, tensor.dtype, recorder.devices.of(tensor)) == ((2, 3), torch.float32, HOST)
    assert torch.equal(replayed(lambda x: x * torch.Tensor([2.0, 0.5, 1.0]).to(x.device)), X * torch.tensor([2.0, 0.5, 1.0]))


def test_devices_are_those_of_a_machine_with_one_gpu() -> None:
    with tracing() as recorder:
        x = stand_in(recorder, (2, 3), (3, 1), torch.float32)
        assert x.device == CUDA == torch.device("cuda:0") == torch.device("cuda", 0)
        assert (x.is_cuda, x.is_cpu, x.is_meta, x.get_device(), x.type()) == (True, False, False, 0, "torch.cuda.FloatTensor")
        assert torch.device("cuda").index is None and torch.device("cpu") == HOST and torch.device(0) == CUDA
        for made, device in (
            (torch.empty(3), HOST), (torch.empty(3, device="cuda"), CUDA), (torch.empty(3, device=x.device), CUDA),
            (torch.zeros_like(x), CUDA), (x.new_empty(3), CUDA), (x.cpu(), HOST), (x.cpu().cuda(), CUDA), (x.to("cpu"), HOST),
            (x.to(torch.float16), CUDA), (x.cpu().to(torch.float16), HOST), (x.cpu().to(x), CUDA), (torch.tensor([1.0]), HOST),
            (x.new_tensor([1.0]), CUDA), (torch.arange(3, device="cuda"), CUDA), (x.cpu()[0], HOST), (x.cpu() * 2, HOST),
            (x * torch.tensor(2.0), CUDA), (x[torch.tensor([0, 1])], CUDA), (torch.tensor([1.0], device="cuda"), CUDA),
            (torch.empty_like(x, device="cpu"), HOST), (torch.full((2,), 1.0).to(0), CUDA), (nn.Linear(2, 2).cuda().weight, CUDA),
        ):  # fmt: skip
            assert made.device == device
        with torch.device("cuda"):
            assert torch.empty(1).device == CUDA
        torch.set_default_device("cuda")
        assert torch.empty(1).device == CUDA == torch.get_default_device()
        torch.set_default_device(None)
        assert torch.empty(1).device == HOST
        with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu"):
            x + torch.zeros(3)
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            torch.empty(1, device="cuda:1")


def test_autocast_and_default_dtypes_are_written_into_the_steps() -> None:
    def product(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return torch.softmax(x @ x.t(), dim=-1)

    casts = [
        "aten._to_copy.default",
        "aten._to_copy.default",
        "aten.mm.default",
        "aten._to_copy.default",
        "aten._softmax.default",
    ]
    assert [name for name in ops(product) if name in casts] == casts
    found = replayed(product)
    half = X.bfloat16()
    assert found.dtype == torch.float32 and torch.equal(found, torch.softmax((half @ half.t()).float(), dim=-1))

    def made(x: torch.Tensor) -> torch.Tensor:
        torch.set_default_dtype(torch.float64)
        return torch.ones(2) + torch.empty(2).fill_(0.1)

    assert replayed(made).dtype == torch.float64
    assert torch.get_default_dtype() == torch.float32

    def divided(x: torch.Tensor) -> torch.Tensor:
        torch.set_default_dtype(torch.float64)
        return torch.arange(3, device="cuda") / 3 + torch.ones(3, dtype=torch.bool, device="cuda") * 0.1

    found = replayed(divided)
    assert found.dtype == torch.float64
    assert torch.equal(found, torch.arange(3, dtype=torch.float64) / 3 + 0.1)

    def averaged(x: torch.Tensor) -> torch.Tensor:
        torch.set_default_dtype(torch.float64)
        return torch.arange(3, device="cuda").to(torch.float16).double().var(dim=0)

    assert replayed(averaged).dtype == torch.float64


def test_operators_of_the_candidate_are_traced_through_and_gone_afterwards() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        @torch.library.custom_op("traced::double", mutates_args=())
        def double(y: torch.Tensor) -> torch.Tensor:
            return y * 2

        return torch.ops.traced.double(x)

    for _ in range(2):  # the same name again, as at another size
        assert torch.equal(replayed(forward), X * 2)
    with tracing() as recorder:
        library = torch.library.Library("traced2", "DEF")
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x.relu(), "CPU")
        with pytest.raises(Untraceable, match="traced2::f has no implementation in Python for CUDA"):
            torch.ops.traced2.f(stand_in(recorder, (2,), (1,), torch.float32))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.sum().item(), "reads a tensor's value"),
        (lambda x: bool(x[0, 0] > 0), "reads a tensor's value"),
        (lambda x: x.untyped_storage(), "reads a tensor's address"),
        (lambda x: x.resize_(1), "aten.resize_.default is not allowed"),
        (lambda x: x.to_sparse(), "cannot be traced|not allowed|not an ATen"),
    ],
)
def test_what_cannot_be_traced_says_why(call: Callable[[torch.Tensor], Any], message: str) -> None:
    with tracing() as recorder, pytest.raises(Untraceable, match=message):
        call(stand_in(recorder, (2, 3), (3, 1), torch.float32))


def weighted_norm(x: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, [x.shape[-1]], torch.full((x.shape[-1],), 0.5, dtype=dtype, device=x.device), 1e-6)


def test_an_rms_norm_is_the_one_operator_that_a_gpu_computes_it_by() -> None:
    assert ops(weighted_norm)[-1] == "aten._fused_rms_norm.default"
    assert len([op for op in ops(weighted_norm) if "detach" not in op]) == 2  # and the weight
    assert ops(lambda x: torch.rms_norm(x, [4])) == ["aten._fused_rms_norm.default"]
    assert torch.allclose(replayed(weighted_norm), weighted_norm(X))
    other = ops(lambda x: weighted_norm(x, torch.bfloat16))  # which a GPU computes in parts, too
    assert "aten._fused_rms_norm.default" not in other and "aten.rsqrt.default" in other


def test_an_rms_norm_of_rows_of_another_length_fails_as_in_torch() -> None:
    """Rows of four, and a norm over five."""
    with pytest.raises(RuntimeError, match=r"normalized_shape=\[5\]"):
        ops(lambda x: torch.rms_norm(x, [5]))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_products_of_whole_numbers_are_refused_as_on_a_gpu(dtype: torch.dtype) -> None:
    with pytest.raises(RuntimeError, match='"addmm_cuda" not implemented for'):
        ops(lambda x: x.to(dtype) @ x.to(dtype))
    with pytest.raises(RuntimeError, match='"baddbmm_cuda" not implemented for'):
        ops(lambda x: torch.bmm(x.to(dtype)[None], x.to(dtype)[None]))
    assert ops(lambda x: x.to(dtype) * x.to(dtype))
    assert ops(lambda x: x @ x) == ["aten.mm.default"]


def test_what_the_host_alone_has_is_refused() -> None:
    with pytest.raises(Untraceable, match="is the host's alone"):
        ops(lambda x: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(x[None, None], x[None, None], x[None, None])[0])


def test_a_number_of_the_host_meets_one_of_the_gpu_but_does_not_take_it_in() -> None:
    with tracing() as recorder:
        total, mine = stand_in(recorder, (4,), (1,), torch.float32).sum(), torch.tensor(0.5)
        for found in (torch.minimum(mine, total), total + mine, torch.where(total > 0, mine, total), total.add_(mine)):
            assert recorder.devices.of(found) == CUDA
        for met in (lambda: mine.add_(total), lambda: torch.stack([total, mine]), lambda: torch.stack([mine, total])):
            with pytest.raises(RuntimeError, match="on the same device"):
                met()
