"""Kernels that host code compiles ahead of a launch: the trace asks for their facts, and then knows them."""

from __future__ import annotations

import textwrap

import pytest

from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.program.compiled_ahead import KernelFacts
from rlkernel.evaluator.program.schema import Launch
from rlkernel.evaluator.program.variant import Traced, Variant
from rlkernel.evaluator.trace.candidate import Verdict, trace
from rlkernel.evaluator.trace.warmup import NeedsKernel
from rlkernel.types import Status
from tests.evaluator.trace.test_candidate import X

HEAD = """
import torch, triton, triton.language as tl
@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
"""


def traced(body: str, *known: KernelFacts, head: str = HEAD) -> Traced:
    source = head + textwrap.indent(body, " " * 8) + "\n        return y\n"
    return trace(source, PROFILES["h200"], [Variant([[], {"dict": []}], [X])], known)[0][0]


def key_of(body: str, *known: KernelFacts, head: str = HEAD) -> str:
    with pytest.raises(NeedsKernel) as needs:
        traced(body, *known, head=head)
    return needs.value.asked.key


WARM = "handle = copy.warmup(x, y, 6, BLOCK=16, num_warps=2, grid=(1,))\n"


def test_the_question_holds_the_one_launch_and_its_tensors() -> None:
    with pytest.raises(NeedsKernel) as needs:
        traced("copy[(1,)](x, y, 6, 16)\n" + WARM)
    asked = needs.value.asked
    (launch,) = asked.program.forward
    assert isinstance(launch, Launch)
    assert asked.program.functions[launch.function].name == "copy"
    assert [spec.shape for spec in asked.specs.inputs] == [(2, 3), (2, 3)]
    assert (launch.args["n"], launch.configs[0].options["num_warps"]) == (6, 2)


def test_what_is_known_tells_the_grid_and_the_handle_launches() -> None:
    launches = WARM + "handle._init_handles()\nhandle[(handle.n_regs, handle.metadata.shared, 1)](x, y, 6, 16)"
    found = traced(launches, KernelFacts(key_of(launches), 24, 0, 7, 2, 1))
    (launch,) = found.program.launches
    assert (launch.configs[0].grid, launch.configs[0].options["num_warps"]) == ((24, 7, 1), 2)


def test_other_constants_and_options_are_other_questions() -> None:
    texts = [WARM, WARM.replace("16", "32"), WARM.replace("num_warps=2", "num_warps=4"), WARM.replace("x, y, 6", "x, y, 1")]
    assert len({key_of(text) for text in texts}) == 4
    assert key_of(WARM) == key_of("z = torch.empty_like(y)\n" + WARM), "numbers of tensors say nothing"


def test_kernels_that_differ_in_a_helper_alone_are_other_questions() -> None:
    """The same kernel calls `twice`, which is another function each time; what is never called says nothing."""
    shared = HEAD.replace("tl.load(x + i, mask=i < n)", "twice(tl.load(x + i, mask=i < n))")
    helper = "@triton.jit\ndef twice(v):\n    return {body}\n@triton.jit\ndef copy("
    texts = [shared.replace("@triton.jit\ndef copy(", helper.format(body=body)) for body in ("v + v", "v * 3.0")]
    assert len({key_of(WARM, head=text) for text in texts}) == 2
    unused = HEAD.replace("@triton.jit\ndef copy(", helper.format(body="v + v"))
    assert key_of(WARM, head=unused) == key_of(WARM)
    assert key_of("twice[(1,)](x)\n" + WARM, head=unused) == key_of(WARM), "a place in the table says nothing"


def test_a_dtype_stands_for_a_tensor() -> None:
    """As in Triton, whose `MockTensor` has one element, and an address that is a multiple of 16."""
    mocked = WARM.replace("x, y, 6", "torch.float32, torch.float16, 6")
    with pytest.raises(NeedsKernel) as needs:
        traced(mocked)
    specs = needs.value.asked.specs.inputs
    assert [(spec.shape, spec.dtype) for spec in specs] == [((1,), "float32"), ((1,), "float16")]
    launches = mocked + "handle[(handle.n_regs, 1, 1)](x, y, 6, 16)"
    found = traced(launches, KernelFacts(key_of(launches), 24, 0, 7, 2, 1))
    assert [launch.configs[0].grid for launch in found.program.launches] == [(24, 1, 1)]
    with pytest.raises(Verdict, match="kernel argument x is a MockTensor"):
        traced("from triton.runtime.jit import MockTensor\ncopy[(1,)](MockTensor(torch.float32), y, 6, 16)")


def test_a_candidate_that_stops_the_question_is_asked_all_the_same() -> None:
    assert key_of(f"try:\n    {WARM}except BaseException:\n    pass") == key_of(WARM)


def test_a_handle_takes_all_arguments_as_tritons_does() -> None:
    launches = WARM + "handle[(1, 1, 1)](x, y, 6)"
    with pytest.raises(Verdict, match="kernel copy takes 4 arguments, 3 were given") as verdict:
        traced(launches, KernelFacts(key_of(launches), 24, 0, 0, 2, 1))
    assert verdict.value.status is Status.RUNTIME_ERROR


TUNED = HEAD.replace(
    "@triton.jit\ndef copy",
    "@triton.autotune([triton.Config({'BLOCK': 16}), triton.Config({'BLOCK': 32}, num_warps=2)], key=[])\n@triton.jit\ndef copy",
)
READ = "copy[(1,)](x, y, 6)\ny = y[: copy.best_config.kwargs['BLOCK']]\n"


def test_what_an_autotuner_chooses_is_asked_for_where_the_host_reads_it() -> None:
    with pytest.raises(NeedsKernel) as needs:
        traced(READ, head=TUNED)
    asked = needs.value.asked
    assert asked.chooses and [config.constants["BLOCK"] for config in asked.program.launches[0].configs] == [16, 32]
    assert asked.offered == (0, 1)
    (launch,) = traced(READ, KernelFacts(asked.key, 24, 0, 7, 2, 1, chosen=1), head=TUNED).program.launches
    assert [(config.constants["BLOCK"], config.options["num_warps"]) for config in launch.configs] == [(32, 2)]
    assert traced("copy[(1,)](x, y, 6)", head=TUNED).program.launches[0].configs[1:], "nobody reads it: it stays open"


def test_the_choice_is_asked_for_at_the_size_that_is_timed() -> None:
    source = TUNED + textwrap.indent(READ, " " * 8) + "\n        return y\n"
    larger = {"tensor": {"shape": [4, 3], "stride": [3, 1], "dtype": "float32"}}
    with pytest.raises(NeedsKernel) as needs:
        trace(source, PROFILES["h200"], [Variant([[], {"dict": []}], [one]) for one in (X, larger)])
    assert [spec.shape for spec in needs.value.asked.specs.inputs] == [(4, 3), (4, 3)]


def test_only_what_an_autotuner_keeps_may_be_chosen() -> None:
    prunes = "key=[], prune_configs_by={'early_config_prune': lambda configs, *rest, **more: configs[1:]})"
    head = TUNED.replace("triton.Config({'BLOCK': 16})", "triton.Config({'BLOCK': 16}), triton.Config({'BLOCK': 64})")
    with pytest.raises(NeedsKernel) as needs:
        traced(READ, head=head.replace("key=[])", prunes))
    assert needs.value.asked.offered == (1, 2)
    assert [config.constants["BLOCK"] for config in needs.value.asked.program.launches[0].configs] == [64, 32]
