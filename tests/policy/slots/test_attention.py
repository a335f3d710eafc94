"""The decode step's Triton kernels: their numbers in the interpreter, their code for sm_90, and both on a GPU if there is one."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
import triton
from packaging.version import Version
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from rlkernel.policy.engine import Request
from rlkernel.policy.slots import attention as decode_attention
from rlkernel.policy.slots.attention import attend_kernel, combine_kernel, constants
from rlkernel.policy.slots.engine import SlotEngine
from tests.policy.sampling import far

ROOT = Path(__file__).parents[3]


BROKEN_INTERPRETER = (
    Version(triton.__version__) < Version("3.7") and Version(numpy.__version__) >= Version("2.5"),
    "Triton 3.6's own interpreter makes numbers of arrays, which numpy 2.5 refuses",
)


@pytest.mark.skipif(BROKEN_INTERPRETER[0], reason=BROKEN_INTERPRETER[1])
def test_the_kernel_and_the_engine_with_it_in_the_interpreter() -> None:
    script = Path(__file__).with_name("interpreted_slots.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["kernel"]) == 3
    for case, worst in found["kernel"].items():
        # float16 rounds the output and the weights; float32 differs by summation order.
        assert worst < (4e-3 if "float16" in case else 2e-6), case
    assert found["engine"] < 1e-5
    assert found["masses"] < 1e-4  # of up to 256


@pytest.mark.parametrize(
    ("heads", "kv_heads", "size", "splits"), [(16, 8, 128, 1), (8, 4, 64, 8), (32, 8, 128, 2), (28, 4, 96, 1)]
)
def test_the_kernel_compiles_for_sm_90_into_tensor_core_code(heads: int, kv_heads: int, size: int, splits: int) -> None:
    fixed = constants(heads, kv_heads, size, 128, splits, torch.bfloat16)
    out = "*bf16" if splits == 1 else "*fp32"
    types = {"table_ptr": "*i64", "slot_ptr": "*i64", "length_ptr": "*i32", "out_ptr": out, "lse_ptr": out, "scale": "fp32"}
    built = compiled(attend_kernel, fixed, types, stages=3)
    assert "mma.sync" in built.asm["ptx"] and "cp.async" in built.asm["ptx"]
    # Keys and values of two blocks are under way: no address waits for the table.
    assert built.metadata.shared >= 2 * 2 * 64 * triton.next_power_of_2(size) * 2
    combine = {"SIZE": size, "SIZE_POW2": triton.next_power_of_2(size), "SPLITS": max(splits, 2)}
    assert ".entry" in compiled(combine_kernel, combine, {"part_ptr": "*fp32", "lse_ptr": "*fp32"}, stages=1).asm["ptx"]


def compiled(kernel: Any, fixed: dict[str, Any], types: dict[str, str], stages: int) -> Any:
    """The kernel for sm_90; pointers are bfloat16 and numbers int32 unless `types` says otherwise. All are multiples of 16."""
    names = kernel.arg_names
    default = {name: "*bf16" if name.endswith("_ptr") else "i32" for name in names}
    signature = {name: "constexpr" if name in fixed else types.get(name, default[name]) for name in names}
    aligned = [i for i, name in enumerate(names) if signature[name] not in ("constexpr", "fp32")]
    source = ASTSource(kernel, signature, fixed, {(i,): [["tt.divisibility", 16]] for i in aligned})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4, "num_stages": stages})


def test_positions_are_split_only_where_programs_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_attention, "_processors", lambda device: 132)
    device = torch.device("cuda")
    # 4 programs for each of 132 multiprocessors: 1024 are enough, 16 become 16 * 32.
    assert decode_attention.choose_splits(1024, 640, device) == 1
    assert decode_attention.choose_splits(16, 8192, device) == 32
    # 640 positions are 10 blocks of 64: at most 8 splits.
    assert decode_attention.choose_splits(16, 640, device) == 8
    # A slot of 32,768 positions is read by four programs of 8,192, however many lanes there are.
    assert decode_attention.choose_splits(1024, 32_768, device) == 4


@pytest.mark.gpu
@pytest.mark.parametrize("pages", [None, 6])
def test_the_engine_on_a_gpu_agrees_with_a_fresh_forward_pass(pages: int | None, tiny_model: Any) -> None:
    """bfloat16 copy of the weights, captured step, two turns, more requests than slots, and fewer pages than slots."""
    model = copy.deepcopy(tiny_model).to("cuda")
    # Two layers, keys and values, two heads of 16, 2 bytes: a page of 64 positions has 16 KiB.
    few: dict[str, Any] = {} if pages is None else {"page": 64, "cache_bytes": pages * 64 * 256}
    engine = SlotEngine(model, frozenset({2}), 1.0, slots=6, **few)
    contexts = {i: tuple(range(3, 20 + 15 * i)) for i in range(9)}
    for turn in range(2):
        samples = engine.advance([Request(i, ids, 10 * turn + i, 16) for i, ids in contexts.items()], 8)
        while engine.active:
            samples += engine.advance([], 8)
        assert {sample.key for sample in samples} == set(range(9))
        for sample in samples:
            logprobs = torch.tensor(sample.logprobs)
            # The engine's own weights in another attention, then the float32 ones.
            torch.testing.assert_close(logprobs, fresh(engine.model, contexts[sample.key], sample.token_ids), atol=3e-2, rtol=0)
            assert far(logprobs, tiny_model, contexts[sample.key], sample.token_ids) < 4
            contexts[sample.key] += (*sample.token_ids, 5, 6)


@torch.no_grad()
def fresh(model: Any, context_ids: tuple[int, ...], token_ids: tuple[int, ...]) -> torch.Tensor:
    """The log-probability of each sampled token, by one pass of a model on a GPU that nobody has put into any context."""
    ids = torch.tensor([[*context_ids, *token_ids]], device="cuda")
    logprobs = model(input_ids=ids).logits[0, len(context_ids) - 1 : -1].float().log_softmax(-1)
    found: torch.Tensor = logprobs.gather(1, torch.tensor(token_ids, device="cuda")[:, None])[:, 0].cpu()
    return found
