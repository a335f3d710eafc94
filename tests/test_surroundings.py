"""What a reference file sets holds for its own code, and for nothing else that the process does."""

from __future__ import annotations

import pytest
import torch

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.references.traced_reference import TracedReference
from rlkernel.evaluator.trace.shims import answering_as
from rlkernel.reference import load_reference
from rlkernel.surroundings import as_set, surroundings
from rlkernel.types import FILE as NAME_OF_A_FILE

FILE = """
import torch
{settings}
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
    def forward(self, x):
        return x * self.weight + torch.ones(4)
def get_inputs():
    return [torch.ones(4)]
"""
SETTINGS = (
    "torch.set_default_dtype(torch.float64)",
    "torch.set_default_device('cuda')",
    "torch.set_grad_enabled(False)",
    "torch.use_deterministic_algorithms(True)",
    "torch.set_num_threads(7)",
    "torch.set_float32_matmul_precision('medium')",
    "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = True",
    "torch.backends.cudnn.enabled = False",
    "torch.backends.cudnn.allow_tf32 = False",
    "torch.backends.cuda.enable_flash_sdp(False)",
    "torch.set_flush_denormal(True)",
)

NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")


def held() -> tuple[object, ...]:
    threads, products = torch.get_num_threads(), torch.get_float32_matmul_precision()
    deterministic, cudnn = torch.get_deterministic_debug_mode(), torch.backends.cudnn
    flags = cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32, torch.backends.cuda.flash_sdp_enabled()
    denormals = float(torch.tensor(1e-40) * torch.tensor(1.0))
    return as_set(), torch.is_grad_enabled(), deterministic, threads, products, flags, denormals


@pytest.mark.parametrize("settings", [*SETTINGS, SETTINGS[1] + "\n1 / 0"])
def test_nothing_that_a_file_sets_is_left_behind(settings: str) -> None:
    before = held()
    try:
        reference = load_reference(FILE.format(settings=settings), small=False)
        reference.model(0)(*reference.inputs(0))
    except BrokenReference as error:
        assert "1 / 0" in settings and "ZeroDivisionError" in str(error)
    assert held() == before


@pytest.mark.parametrize("settings", SETTINGS[3:])
def test_nothing_that_forward_sets_is_left_behind(settings: str) -> None:
    before = held()
    text = FILE.format(settings="").replace("return x", f"{settings}\n        return x")
    reference = load_reference(text, small=False)
    reference.model(0)(*reference.inputs(0))
    assert held() == before


def test_a_default_dtype_holds_in_all_parts_of_its_file() -> None:
    reference = load_reference(FILE.format(settings=SETTINGS[0]), small=False)
    model, inputs = reference.model(0), reference.inputs(0)
    assert [model.weight.dtype, inputs[0].dtype, model(*inputs).dtype] == [torch.float64] * 3
    assert load_reference(FILE.format(settings=""), small=False).inputs(0)[0].dtype is torch.float32


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
@pytest.mark.parametrize(
    "asked", ["device='cuda'", "device=torch.device('cuda:0')", "device=f'cuda:{torch.cuda.current_device()}'"]
)
def test_without_a_gpu_forward_makes_on_the_host_what_it_asks_for_on_one(asked: str) -> None:
    text = FILE.format(settings="kept = torch.ones(4, device='cuda')").replace(
        "torch.ones(4)\ndef", f"torch.ones(4, {asked}) * kept\ndef"
    )
    reference = load_reference(text, small=False)
    found = reference.model(0)(*reference.inputs(0))
    assert torch.equal(found, torch.full((4,), 2.0))


def test_a_default_device_is_asked_for_inside_alone() -> None:
    reference = load_reference(FILE.format(settings=SETTINGS[1]), small=False)
    assert reference.defaults.device == torch.device("cuda") and as_set().device is None
    with surroundings(reference.defaults):
        assert as_set().device == torch.device("cuda")
    assert as_set().device is None


@NO_GPU
def test_without_a_gpu_autocast_gives_operators_what_it_would_on_one() -> None:
    text = FILE.format(settings="import torch.nn.functional as F").replace(
        "return x * self.weight + torch.ones(4)",
        "with torch.autocast('cuda', dtype=torch.bfloat16):\n"
        "            product = x.view(2, 2) @ x.view(2, 2)\n"
        "            heads = x.view(1, 1, 2, 2)\n"
        "            attended = F.scaled_dot_product_attention(heads, heads, heads)\n"
        "            return product, product.softmax(1), x + 1, attended, torch.mm(*[x.view(2, 2).double()] * 2)",
    )
    reference = load_reference(text, small=False)
    half, full = torch.bfloat16, torch.float32
    wanted = [half, full, full, half, torch.float64]
    assert [one.dtype for one in reference.model(0)(*reference.inputs(0))] == wanted
    traced = TracedReference(reference, H200)
    recorded = [traced.recorder.ids.tensor(ref.number).dtype for ref in traced.program.output]
    assert recorded == wanted


@NO_GPU
def test_without_a_gpu_a_file_may_choose_what_it_would_on_one() -> None:
    text = FILE.format(settings="KIND = torch.float16 if torch.cuda.is_available() else torch.float32")
    reference = load_reference(text.replace("return [torch.ones(4)]", "return [torch.ones(4, dtype=KIND)]"), small=False)
    assert reference.inputs(0)[0].dtype is torch.float16 and not torch.cuda.is_available()


@NO_GPU
def test_without_a_gpu_a_file_may_ask_what_one_can_do_and_is_told_what_its_trace_tells() -> None:
    """Who finds one available asks on: `torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 8`. A library that
    it calls finds none: it would load weights there."""
    of_a_file = eval("lambda: torch.cuda.is_available()", {"torch": torch, "__name__": NAME_OF_A_FILE})
    with surroundings():
        assert of_a_file() and not torch.cuda.is_available() and torch.cuda.device_count() == 1
        found = torch.cuda.get_device_properties(0), torch.cuda.get_device_capability(), torch.cuda.mem_get_info()
        torch.cuda.init()
        torch.cuda.set_device(0)
    with answering_as(H200):
        assert found == (
            torch.cuda.get_device_properties(0), torch.cuda.get_device_capability(), torch.cuda.mem_get_info()
        )  # fmt: skip
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0


@NO_GPU
def test_without_a_gpu_tensors_of_a_file_that_names_one_say_that_they_are_there() -> None:
    text = FILE.format(settings="").replace(
        "return x",
        """assert torch.cuda.is_available()
        assert x.is_cuda and self.weight.is_cuda and x.device == torch.device("cuda", 0) and str(x.device) == "cuda:0"
        assert x.get_device() == 0 and not x.is_cpu
        side, start, end = torch.cuda.Stream(), *[torch.cuda.Event(enable_timing=True) for _ in range(2)]
        side.wait_stream(torch.cuda.current_stream())
        start.record()
        with torch.cuda.stream(side), torch.cuda.device(x.device):
            x = x + torch.ones(4, device=x.device)
        end.record()
        torch.cuda.current_stream().wait_stream(side)
        assert start.elapsed_time(end) > 0
        x = x + torch.rand(4, generator=torch.Generator(x.device).manual_seed(0), device=x.device).floor()
        return x""",
    )
    reference = load_reference(text, small=False)
    model, inputs = reference.model(0), reference.inputs(0)
    assert torch.equal(model(*inputs), torch.full((4,), 3.0))
    assert not inputs[0].is_cuda and inputs[0].device.type == "cpu"


def test_what_a_file_has_compiled_runs_eagerly() -> None:
    settings = """
@torch.compile
def twice(x):
    return x * 2
@torch.compile(fullgraph=True, dynamic=True)
def thrice(x):
    return x * 3
"""
    text = FILE.format(settings=settings).replace("        return x *", "        return thrice(twice(x)) - 5 * x *")
    text = text.replace("(torch.ones(4))\n", "(torch.ones(4))\n        self.inner = torch.compile(torch.nn.Linear(2, 2))\n")
    reference = load_reference(text, small=False)
    model = reference.model(0)
    assert torch.equal(model(*reference.inputs(0)), torch.full((4,), 2.0))
    assert [name for name, _ in model.named_parameters()] == ["weight", "inner.weight", "inner.bias"]
    assert torch.compile.__module__ == "torch"
