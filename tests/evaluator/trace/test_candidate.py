"""From a candidate's source to a Program, or to a verdict with the line that is at fault. What is hostile is in the red team."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from rlkernel.evaluator import wire
from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import Traces
from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.program.values import Pairs, TensorRef
from rlkernel.evaluator.program.variant import Kept, Traced, Variant
from rlkernel.evaluator.trace.candidate import Verdict, trace
from rlkernel.evaluator.trace.forms import form_of
from rlkernel.types import Status

X = {"tensor": {"shape": [2, 3], "stride": [3, 1], "dtype": "float32"}}


def traced(forward: str, init: str = "pass", *, constants: dict[str, list[int]] | None = None, head: str = "") -> Traced:
    """What a trace of a ModelNew with this body says, for one input of 2 x 3 floats. `forward` begins in line 9 of the file."""
    source = f"import torch\nfrom torch import nn\n{head or '#'}\nclass ModelNew(nn.Module):\n    def __init__(self):\n"
    source += f"        super().__init__()\n        {init}\n    def forward(self, x):\n{textwrap.indent(forward, ' ' * 8)}\n"
    return traced_text(source, Variant([[], {"dict": []}], [X], constants or {}))


def traced_text(source: str, variant: Variant) -> Traced:
    """What a trace of a whole file gives at one size. Raises Verdict."""
    (found,), _ = trace(source, PROFILES["h200"], [variant])
    return found


def program(forward: str, **kwargs: Any) -> Program:
    found = traced(forward, **kwargs)
    assert found.other is None
    return found.program


def test_a_program_by_hand() -> None:
    found = program("return torch.relu(x @ self.w)", init="self.w = nn.Parameter(torch.ones(3, 4))")
    assert isinstance(found.init[0], Op) and found.init[0].op == "aten.ones.default"
    (weight,) = found.state.values()
    assert set(found.state) == {"w"}
    (x,) = found.inputs
    product, relu = found.forward
    assert isinstance(product, Op) and isinstance(relu, Op)
    assert (product.op, product.args) == ("aten.mm.default", (TensorRef(x), TensorRef(weight)))
    assert (relu.op, relu.args) == ("aten.relu.default", (TensorRef(product.outs[0]),))
    assert found.output == TensorRef(relu.outs[0])


def test_outputs_keep_their_structure() -> None:
    found = program("return {'a': x, 'b': [x, 2.0]}")
    (x,) = found.inputs
    assert found.output == Pairs((("a", TensorRef(x)), ("b", [TensorRef(x), 2.0])))
    assert found.forward == ()


def test_work_that_differs_in_the_other_mode_is_a_second_program() -> None:
    found = traced("return x * 2 if self.training else x * 3")
    assert found.other is not None
    assert [side.forward[0].args[1] for side in (found.program, found.other)] == [2, 3]  # type: ignore[union-attr]


def test_constants_are_replaced_before_the_source_runs() -> None:
    (step,) = program("return x * SIZE", head="SIZE = 4096", constants={"SIZE": [4096, 16]}).forward
    assert isinstance(step, Op)
    assert step.args[1] == 16


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (
            {"forward": "return x.sum().item()"},
            "untraceable",
            "line 9: the host reads a tensor's value, which depends on the inputs; "
            "let a kernel or a torch operator take the tensor itself",
        ),
        ({"forward": "return lambda: x"}, "untraceable", "forward returns a function; return tensors"),
        ({"forward": "y = x\nreturn y[7]"}, "runtime_error", "line 10: IndexError: index 7 is out of bounds for dimension 0"),
        ({"forward": "return x @ x"}, "runtime_error", "line 9: RuntimeError: "),
        ({"forward": "return x", "init": "raise SystemExit(3)"}, "invalid", "line 7: SystemExit: 3"),
        ({"forward": "return x", "init": "1 / 0"}, "invalid", "line 7: ZeroDivisionError: division by zero"),
        ({"forward": "return ]"}, "invalid", "line 9: SyntaxError: "),
        (
            {"forward": "self.n += 1\nreturn x * self.n", "init": "self.n = 0"},
            "inconsistent",
            "forward does not do the same work on every call",
        ),
    ],
)
def test_a_candidate_without_a_program_has_a_verdict_with_its_line(body: dict[str, str], status: str, detail: str) -> None:
    with pytest.raises(Verdict) as found:
        traced(**body)  # type: ignore[arg-type]
    assert found.value.status == status
    assert found.value.detail.startswith(detail)


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("x = 1\n", "no class ModelNew(nn.Module): define one"),
        ("class ModelNew: pass\n", "no class ModelNew(nn.Module): define one"),
        (
            "import torch\nclass ModelNew(torch.nn.Module):\n    def __new__(cls): return 3\n",
            "ModelNew() did not give an nn.Module",
        ),
    ],
)
def test_a_file_without_a_module_is_invalid(source: str, detail: str) -> None:
    with pytest.raises(Verdict) as found:
        traced_text(source, Variant([[], {"dict": []}], []))
    assert (found.value.status, found.value.detail) == (Status.INVALID, detail)


def test_two_traces_of_the_same_work_are_equal_whatever_their_ids() -> None:
    def work(first: int, factor: int) -> Any:
        step = Op("aten.mul.Tensor", (TensorRef(first), factor), {}, (first + 1,))
        form = form_of([first], [step], TensorRef(first + 1), (first, 0))
        return form.rows, form.outer

    assert work(3, 2) == work(40, 2)
    assert work(3, 2) != work(3, 5)
    # what was there before a call keeps its name
    assert form_of([3], [], TensorRef(1), (3, 0)).outer != form_of([3], [], TensorRef(2), (3, 0)).outer


def test_a_launch_per_time_step_is_recorded_at_full_length_and_can_be_sent() -> None:
    """Two views and a launch per step, 1,700 steps: 5,100, where a trace once held 4,096."""
    head = """import triton
import triton.language as tl
@triton.jit
def step(x, o, H: tl.constexpr):
    i = tl.arange(0, H)
    tl.store(o + i, tl.load(x + i))
"""
    forward = "o = torch.empty_like(x)\nfor t in range(x.shape[0]):\n    step[(1,)](x[t], o[t], 4)\nreturn o"
    source = f"import torch\nfrom torch import nn\n{head}\nclass ModelNew(nn.Module):\n    def forward(self, x):\n"
    long = {"tensor": {"shape": [1700, 4], "stride": [4, 1], "dtype": "float32"}}
    found = traced_text(source + textwrap.indent(forward, " " * 8), Variant([[], {"dict": []}], [long]))
    assert (len(found.program.launches), len(found.program.forward) > 5100) == (1700, True)
    assert wire.fits(codec.pack(Traces((found, found), Kept())))


@pytest.mark.parametrize("clause", ["except Exception:", "except BaseException:", "except:", "except RuntimeError:"])
def test_a_refusal_of_ours_is_the_verdict_whatever_the_candidate_makes_of_it(clause: str) -> None:
    """On a GPU nothing is refused there, so that its fallback says nothing of what it does."""
    with pytest.raises(Verdict) as found:
        traced(f"try:\n    n = int(x.sum().item())\n    return x + n\n{clause}\n    return torch.relu(x)")
    assert found.value.status is Status.UNTRACEABLE
    assert found.value.detail.startswith("line 10: the host reads a tensor's value")


def test_what_fails_in_a_fallback_does_not_hide_the_refusal_before_it() -> None:
    with pytest.raises(Verdict) as found:
        traced("try:\n    return x + int(x.sum().item())\nexcept Exception:\n    return self.absent")
    assert (found.value.status, found.value.detail[:8]) == (Status.UNTRACEABLE, "line 10:")


def test_an_error_that_a_gpu_raises_is_the_candidates_to_catch() -> None:
    head = "import triton\n@triton.jit\ndef k(x, n):\n    pass"
    found = program("try:\n    k[(1,)](x)\nexcept TypeError:\n    return torch.relu(x)", head=head)
    assert [step.op for step in found.forward if isinstance(step, Op)] == ["aten.relu.default"]
    assert not found.launches


@pytest.mark.parametrize(
    "guard", ["x.is_cuda", "torch.cuda.is_available()", "x.device.type == 'cuda'", "torch.cuda.device_count() > 0", "HAS_TRITON",
              "torch.version.cuda is not None", "torch.cuda.get_device_capability()[0] >= 8", "not x.is_cpu"],
)  # fmt: skip
def test_guards_see_a_gpu(guard: str) -> None:
    head = "try:\n    import triton, triton.language as tl\n    HAS_TRITON = True\nexcept ImportError:\n    HAS_TRITON = False"
    found = program(f"if {guard}:\n    return torch.relu(x)\nreturn torch.neg(x)", head=head)
    assert [step.op for step in found.forward if isinstance(step, Op)] == ["aten.relu.default"]
