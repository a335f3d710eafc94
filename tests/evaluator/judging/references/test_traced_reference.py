"""A traced reference: which files are refused, what it may read, and floors of the right peak."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.costs.needs import need
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.judging.references import traced_reference
from rlkernel.evaluator.judging.references.traced_reference import TENSORS, TracedReference
from rlkernel.evaluator.program.schema import Op
from rlkernel.evaluator.trace import reading
from rlkernel.reference import load_reference
from rlkernel.types import Precision
from tests.evaluator.judging.test_oracle import ATTRIBUTE

PRODUCT = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x @ x

def get_inputs():
    return [torch.randn(8192, 8192)]

def get_init_inputs():
    return []

SMALL = {}
"""


def test_the_floor_of_a_float32_product_follows_the_precision() -> None:
    floors = [
        prepare(PRODUCT, "product", H200, precision).costs.floor_us
        for precision in (Precision.STRICT, Precision.PYTORCH, Precision.TF32)
    ]
    flops = 2 * 8192**3
    # three products of half precision at 7.9e8 flops/us each; one of tf32 at 4.0e8, which the candidate may use on its own, too
    assert floors == [pytest.approx(0.9 * 0.5 * flops * 3 / 7.9e8), *[pytest.approx(0.9 * 0.5 * flops / 4.0e8)] * 2]


@pytest.mark.parametrize(
    ("product", "half"),
    [
        ("x.half().float() @ x.half().float().t()", True),  # numbers of half precision, whatever their dtype
        ("(torch.softmax(x, -1) @ x).half()", True),  # nobody sees more than half precision of it
        ("(x @ x).half(), x @ x", False),
        ("(x.half().float() * 0.3) @ x", False),
        ("x.half().float().mul_(0.3) @ x.half().float()", False),
        ("(x @ x).half(), (x @ x).argmax()", False),  # an index is exact
    ],
)
def test_the_floor_of_a_product_that_half_precision_computes_is_that_of_half_precision(product: str, half: bool) -> None:
    found = prepare(PRODUCT.replace("x @ x", product).replace("8192", "2048"), "product", H200, Precision.PYTORCH).costs
    assert found.floor_us == pytest.approx(0.9 * 0.5 * found.products / (7.9e8 if half else 4.0e8))


def test_operations_that_any_method_needs_are_those_of_products() -> None:
    """A kernel of its own for singular values of 32 x 2 needs a fifth of what a library's method takes."""
    source = PRODUCT.replace("x @ x", "(x @ x).sum() + torch.linalg.svdvals(x[:, :2])").replace("8192", "32")
    assert prepare(source, "methods", H200, Precision.STRICT).costs.products == 2 * 32**3


@pytest.mark.parametrize(
    ("function", "value"),
    [
        ("get_inputs", "torch.randn(16, 64), float(torch.default_generator.initial_seed())"),
        ("get_inputs", "torch.randn(16, 32 + 32 * torch.default_generator.initial_seed())"),
        ("get_inputs", "torch.randn(16, 64).to((torch.float32, torch.float16)[torch.default_generator.initial_seed()])"),
        ("get_init_inputs", "torch.randn(64), torch.default_generator.initial_seed()"),
    ],
)
def test_arguments_that_vary_with_the_seed_beyond_tensor_values_are_refused(function: str, value: str) -> None:
    before = {"get_inputs": "torch.randn(16, 64)", "get_init_inputs": "torch.randn(64)"}[function]
    source = ATTRIBUTE.replace("forward(self, x)", "forward(self, x, *rest)").replace("self, scale)", "self, scale, *rest)")
    source = source.replace(f"return [{before}]", f"return [{value}]")
    with pytest.raises(BrokenReference, match=rf"^mine/x: {function} gives other numbers, shapes or dtypes with another seed"):
        prepare(source, "mine/x", H200, Precision.PYTORCH)


READS = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, offsets):
        out = torch.zeros_like(x)
        for k in range(2):
            start, end = int(offsets[k].item()), int(offsets[k + 1])
            out[start:end] = x[start:end] * (k + 1){extra}
        return out
def get_inputs():
    offsets = torch.zeros(3, dtype=torch.int32)
    offsets[1:] = torch.cumsum({counts}, dim=0)
    return [torch.randn(8, 2), offsets]
def get_init_inputs():
    return []
"""


def test_a_reference_may_read_what_its_author_draws() -> None:
    """Segments of 4 and 4 rows, read on the host: each is copied once, at its place."""
    program = prepare(READS.format(counts="torch.tensor([4, 4])", extra=""), "reads", H200, Precision.STRICT).program
    slices = [step.args[2:4] for step in program.forward if isinstance(step, Op) and step.op == "aten.slice.Tensor"]
    assert sorted(set(slices)) == [(0, 4), (4, 8)]
    drawn = prepare(READS.format(counts="torch.randint(4, 5, (2,))", extra=""), "reads", H200, Precision.STRICT)
    assert len(drawn.program.forward) == len(program.forward)


def test_what_depends_on_many_values_is_still_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    source = READS.format(counts="torch.tensor([4, 4])", extra=" * float(x.max())")
    prepare(source, "reads", H200, Precision.STRICT)
    monkeypatch.setattr(reading, "MAX_DRAWN", 15)  # x has 16
    with pytest.raises(BrokenReference, match="the host needs a value that comes from more than 15 elements"):
        prepare(source, "reads", H200, Precision.STRICT)


EXPERTS = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.experts = nn.ModuleList([nn.Linear(16, 16) for _ in range(4)])
    def forward(self, x):
        weight, chosen = self.gate(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            {expert}
        return out
def get_inputs():
    return [torch.randn(100, 16)]
def get_init_inputs():
    return []
"""
WHERE = """rows, place = torch.where(chosen == i)
            out.index_add_(0, rows, expert(x[rows]) * weight[rows, place, None])"""
MASK = """mask = (chosen == i).any(-1)
            if mask.any():
                out[mask] += expert(x[mask])"""


@pytest.mark.parametrize(("expert", "each"), [(WHERE, 1), (MASK, 3)])
def test_a_reference_may_have_lengths_that_values_decide(expert: str, each: int) -> None:
    """Each of 100 tokens goes to two of four experts: their products have 200 rows in all, however these are parted."""
    found = prepare(EXPERTS.format(expert=expert), "experts", H200, Precision.PYTORCH)
    lengths = [step.kwargs["size"] for step in found.program.forward if isinstance(step, Op) and "nonzero" in step.op]
    assert len(lengths) == 4 * each and sum(lengths) == 200 * each and not found.modal
    again = prepare(EXPERTS.format(expert=expert), "experts", H200, Precision.PYTORCH)
    assert again.program == found.program, "the same values are drawn each time"


def test_a_reference_whose_outputs_are_as_long_as_values_say_is_refused() -> None:
    source = EXPERTS.format(expert="out = out + 1").replace("return out", "return x[x > 0]")
    with pytest.raises(
        BrokenReference, match=r"^p: forward returns shapes that depend on values, \(\d+,\) and \(\d+,\); return "
    ):
        prepare(source, "p", H200, Precision.PYTORCH)


def test_a_reference_is_told_which_name_of_its_fixed_no_parameter_has() -> None:
    with pytest.raises(
        BrokenReference, match=r"^mine: FIXED names nope, but Model has no such parameter or buffer; it has none$"
    ):
        prepare(ATTRIBUTE + 'FIXED = ("nope",)\n', "mine", H200, Precision.PYTORCH)


NORM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(64)

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.randn(128, 64)]

def get_init_inputs():
    return []

SMALL = {}
"""


@pytest.mark.parametrize(("put", "both"), [("pass", True), ("self.eval()", False), ("self.norm.eval()", False)])
def test_a_reference_that_puts_itself_into_eval_mode_is_judged_in_that_alone(put: str, both: bool) -> None:
    source = NORM.replace("BatchNorm1d(64)\n", f"BatchNorm1d(64)\n        {put}\n")
    assert prepare(source, "norm", H200, Precision.PYTORCH).modal == both


def test_a_reference_that_launches_a_kernel_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel lies in a file of its own, since Triton reads its text."""
    kernel = "import triton\n\n\n@triton.jit\ndef scale(x):\n    pass\n"
    (tmp_path / "kernels_of_a_reference.py").write_text(kernel)
    monkeypatch.syspath_prepend(str(tmp_path))
    source = PRODUCT.replace(
        "        return", "        import kernels_of_a_reference\n        kernels_of_a_reference.scale[(1,)](x)\n        return"
    )
    line = "scaled: forward launches a Triton kernel, scale; write a reference with torch's operators"
    with pytest.raises(BrokenReference, match=line):
        prepare(source, "scaled", H200, Precision.PYTORCH)
    with pytest.raises(BrokenReference, match=line):
        need(source, "scaled", H200)


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        ("torch.relu(x)", "forward returns nothing"),
        ("return 3", "forward returns int, in which no tensor is found"),
        ("x.relu_()", None),
        ("return {'relu': [torch.relu(x)]}", None),
    ],
)
def test_a_forward_returns_tensors_or_changes_an_input(forward: str, why: str | None) -> None:
    source = f"""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        {forward}
def get_inputs():
    return [torch.randn(8)]
"""
    with nullcontext() if why is None else pytest.raises(BrokenReference, match=re.escape(f"{why}; {TENSORS}")):
        TracedReference(load_reference(source, small=False, name="p"), H200)


SHARED = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16))
        self.gate = nn.Linear(16, 4)
        self.drop = nn.Dropout(0.0)
    def forward(self, x, y):
        {forward}
def get_inputs():
    return [torch.randn(100, 16), torch.randn(100, 16)]
def get_init_inputs():
    return []
"""
GATED = "scores = self.gate(x @ self.weight)[:, 0]; scores += 0.1; "


def lengths_of(forward: str) -> list[int]:
    found = prepare(SHARED.format(forward=forward), "shared", H200, Precision.PYTORCH)
    assert not found.modal
    return [step.kwargs["size"] for step in found.program.forward if isinstance(step, Op) and "nonzero" in step.op]


def test_two_inputs_of_one_shape_are_drawn_apart() -> None:
    """Seeded alike, each alone, they were equal, and nobody was larger."""
    [length] = lengths_of("return x + x[x > y].sum()")
    assert 700 < length < 900


def test_weights_are_the_same_ones_whatever_is_asked_for() -> None:
    """A weight that was known was not drawn again, so that those behind it were other ones in the next question or call."""
    some, others = lengths_of(GATED + "return x + torch.cat([x[scores > 0], x[scores <= 0]])")
    assert some + others == 100 and some


@pytest.mark.parametrize("same", ["y = x.clamp_(-1)", "y = torch.dropout(x, 0.0, True)"])
def test_what_an_operator_gives_back_may_be_an_input(same: str) -> None:
    [length] = lengths_of(f"{same}; return x + y[y > 0].sum()")
    assert 700 < length < 900


def test_the_tokens_of_an_expert_stand_for_no_number_of_the_full_shape() -> None:
    """The 1,024 of 8,192 tokens that take a path were taken for a size, and a kernel's 1,024 for the tokens of that path."""
    source = EXPERTS.format(expert=WHERE).replace("randn(100", "randn(TOKENS") + "TOKENS, SMALL = 1000, {'TOKENS': 100}\n"
    found = prepare(source, "p", H200, Precision.PYTORCH)
    lengths = {step.kwargs["size"] for step in found.program.forward if isinstance(step, Op) and "nonzero" in step.op}
    assert found.counterparts[1000] == (100,) and len(lengths) == 4 and lengths.isdisjoint(found.counterparts)


DISTINCT = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        weight = torch.randn(4, 4)
        self.register_buffer("turn", weight if torch.allclose(weight @ weight.T, torch.eye(4)) else torch.linalg.qr(weight)[0])
    def forward(self, x, kind):
        found, place = torch.unique(kind, return_inverse=True)
        return torch.zeros(len(found), 4).index_add_(0, place, x @ self.turn)[place]
def get_inputs():
    return [torch.randn(64, 4), torch.arange(64) % 5]
"""


def test_a_reference_may_ask_how_many_values_are_distinct_and_what_weights_it_has_drawn() -> None:
    program = prepare(DISTINCT, "distinct", H200, Precision.STRICT).program
    steps = [step for step in program.forward if isinstance(step, Op)]
    assert [step.kwargs["size"] for step in steps if step.op == "aten.nonzero_static.default"] == [5]
    assert [step.op for step in program.init if isinstance(step, Op)].count("aten.linalg_qr.default") == 1


def test_a_forward_that_never_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced_reference, "TRACE_SECONDS", 2.0)
    endless = load_reference(PRODUCT.replace("return x @ x", "while True: x.dim()"), small=False, name="mine.py")
    with pytest.raises(BrokenReference) as refused:
        TracedReference(endless, H200)
    assert str(refused.value) == (
        "mine.py: a call without data had not ended after 2 s of processor time on line 7; is there an end to its loops?"
    )
