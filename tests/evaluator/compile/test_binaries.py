"""Binaries that are kept for the next candidate with the same kernel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rlkernel.evaluator.compile import binaries
from rlkernel.evaluator.compile.binaries import Compiled

FACTS = Compiled(
    key="a" * 32 + "-" + "b" * 32, name="kernel", stores=("o",), registers=16, spills=0, shared_bytes=0, num_warps=4, num_ctas=1,
    tf32=False, symbol="kernel", global_scratch_size=0, global_scratch_align=1, profile_scratch_size=0,
    parameters=(("o", "*fp32"),), tensordesc_meta=(),
)  # fmt: skip


def test_threads_that_write_the_same_binary_do_not_meet(tmp_path: Path) -> None:
    cubin = bytes(1 << 16)
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda _: binaries.write(tmp_path, FACTS, cubin), range(400)))
    assert [path.name for path in tmp_path.iterdir()] == [FACTS.key]
    found = binaries.read(tmp_path, FACTS.key)
    assert found is not None and found[0].from_cache and found[1] == cubin
