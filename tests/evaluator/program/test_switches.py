"""What a candidate sets of torch's precision is recorded with its products and has its effect where that is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from rlkernel.evaluator.devices import H200, PROFILES
from rlkernel.evaluator.judging.costs.roofline import operator_us
from rlkernel.evaluator.judging.references.flags import set_precision
from rlkernel.evaluator.program.encoding import from_json, to_json
from rlkernel.evaluator.program.schema import Op
from rlkernel.evaluator.program.switches import under
from rlkernel.evaluator.program.values import MalformedProgram
from rlkernel.evaluator.program.variant import Variant
from rlkernel.evaluator.trace.candidate import trace
from rlkernel.types import Precision

SOURCE = """
import torch
from torch import nn
{head}
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 3, 1)
    def forward(self, x):
        y = x @ x.T
        {between}
        return self.conv(x[None]), y, x @ x.T
"""
X = {"tensor": {"shape": [3, 3], "stride": [3, 1], "dtype": "float32"}}


@pytest.fixture(autouse=True)
def _as_torch_ships() -> Iterator[None]:
    _as_shipped()  # another test of this process may have judged with another precision
    yield
    _as_shipped()


def _as_shipped() -> None:
    torch._C._set_fp32_precision_setter("cuda", "conv", "tf32")
    torch._C._set_fp32_precision_setter("cuda", "rnn", "tf32")
    torch._C._set_fp32_precision_setter("cuda", "matmul", "ieee")
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    matmul.allow_tf32, cudnn.allow_tf32, cudnn.deterministic = False, True, False


def switches(head: str = "", between: str = "pass") -> list[tuple[str, ...]]:
    """The switches of the first product, of the convolution and of the second product, in this order."""
    source = SOURCE.format(head=head, between=between)
    program = trace(source, PROFILES["h200"], [Variant([[], {"dict": []}], [X])])[0][0].program
    assert from_json(to_json(program)) == program
    found = [(step.op.split(".")[1], step.switches) for step in program.forward if isinstance(step, Op)]
    first, second = [kept for name, kept in found if name == "mm"]
    (conv,) = [kept for name, kept in found if name == "convolution"]
    assert all(not kept for name, kept in found if name not in ("mm", "convolution"))
    return [first, conv, second]


TF32, EXACT = ("matmul_tf32",), ("cudnn_float32",)


@pytest.mark.parametrize(
    ("head", "between", "found"),
    [
        ("", "pass", [(), (), ()]),
        ("torch.backends.cuda.matmul.allow_tf32 = True", "pass", [TF32, (), TF32]),
        ("torch.set_float32_matmul_precision('high')", "pass", [TF32, (), TF32]),
        ("torch.set_float32_matmul_precision('medium')", "torch.set_float32_matmul_precision('highest')", [(), (), ()]),
        ("torch.backends.cuda.matmul.fp32_precision = 'tf32'", "pass", [TF32, (), TF32]),
        ("torch.backends.cudnn.allow_tf32 = False", "pass", [(), EXACT, ()]),
        ("torch.backends.cudnn.conv.fp32_precision = 'ieee'", "pass", [(), EXACT, ()]),
        ("torch.backends.cudnn.deterministic = True", "pass", [(), ("cudnn_deterministic",), ()]),
        ("torch.backends.cudnn.benchmark = True", "pass", [(), (), ()]),
    ],
)
def test_an_operator_has_the_switches_that_are_set_where_it_is_called(
    head: str, between: str, found: list[tuple[str, ...]]
) -> None:
    """'medium' and then 'highest' in forward: from its second call on, which is judged, the first product is exact, too."""
    assert switches(head, between) == found


def test_a_switch_that_is_set_around_one_call_is_that_calls() -> None:
    body = "torch.backends.cuda.matmul.allow_tf32 = not torch.backends.cuda.matmul.allow_tf32; z = x @ x.T; "
    body += "torch.backends.cuda.matmul.allow_tf32 = False; x = x + z"
    source = SOURCE.format(head="", between=body)
    program = trace(source, PROFILES["h200"], [Variant([[], {"dict": []}], [X])])[0][0].program
    products = [step.switches for step in program.forward if isinstance(step, Op) and step.op == "aten.mm.default"]
    assert products == [(), TF32, ()]


@pytest.mark.parametrize(
    ("precision", "during"),
    [(Precision.PYTORCH, (True, False)), (Precision.STRICT, (False, False)), (Precision.TF32, (True, False))],
)
def test_tf32_is_on_during_the_call_where_the_precision_allows_it(precision: Precision, during: tuple[bool, bool]) -> None:
    set_precision(precision)
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32

    def seen() -> tuple[bool, bool]:
        return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32

    assert under((*TF32, *EXACT), seen, (), {}) == during
    assert seen() == before
    with pytest.raises(ZeroDivisionError):
        under(TF32, lambda: 1 / 0, (), {})
    assert seen() == before


@pytest.mark.parametrize("precision", [Precision.PYTORCH, Precision.STRICT])
def test_a_cpu_rounds_the_operands_of_a_product_to_tf32(precision: Precision) -> None:
    """1 + 2^-11 is half of tf32's last place, and becomes 1 + 2^-10; 1 + 2^-12 becomes 1. What is added stays as it is."""
    set_precision(precision)
    mm, addmm = torch.ops.aten.mm.default, torch.ops.aten.addmm.default
    one, fine, finer = torch.ones(1, 1), torch.tensor([[1 + 2**-11]]), torch.tensor([[1 + 2**-12]])
    rounded = precision is Precision.PYTORCH
    assert under(TF32, mm, (fine, one), {}).item() == (1 + 2**-10 if rounded else 1 + 2**-11)
    assert under(TF32, mm, (one, -finer), {}).item() == (-1 if rounded else -1 - 2**-12)
    assert under(TF32, addmm, (finer, finer, one), {}).item() == (2 + 2**-12 if rounded else 2 + 2**-11)
    assert under(EXACT, mm, (fine, one), {}).item() == 1 + 2**-11


def test_a_switch_that_does_not_exist_is_refused() -> None:
    program = trace(SOURCE.format(head="", between="pass"), PROFILES["h200"], [Variant([[], {"dict": []}], [X])])[0][0].program
    step = program.forward[0]
    assert isinstance(step, Op)
    forged = to_json(replace(program, forward=(replace(step, switches=("all_of_them",)),)))
    with pytest.raises(MalformedProgram, match="unknown switch"):
        from_json(forged)


def test_modelled_time_is_that_of_tf32_where_both_want_it() -> None:
    """2 * 4096^3 flops at 80 % of each peak, and one launch."""
    a = torch.empty(4096, 4096, device="meta")
    step = Op("aten.mm.default", (), {}, (1,))

    def us(switches: tuple[str, ...], precision: Precision) -> float:
        return operator_us(replace(step, switches=switches), [a, a], [torch.empty_like(a)], H200, precision)

    exact = H200.launch_us + 2 * 4096**3 / (0.8 * H200.fp32_flops_per_us)
    fast = H200.launch_us + 2 * 4096**3 / (0.8 * H200.matrix_flops_per_us["tf32"])
    assert us((), Precision.PYTORCH) == us(TF32, Precision.STRICT) == pytest.approx(exact)
    assert us(TF32, Precision.PYTORCH) == us((), Precision.TF32) == pytest.approx(fast)
