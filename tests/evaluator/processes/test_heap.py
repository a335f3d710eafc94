"""New memory of a process whose heap is settled lies behind all that it had, not in the holes between."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, gc
from rlkernel.evaluator.processes import heap

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
kept = [libc.malloc(size) for size in (100, 900, 5000) for _ in range(2000)]
last = max(kept)
for address in kept[::2]:  # every second one becomes a hole
    libc.free(address)
gc.disable()
SETTLE
print(sum(libc.malloc(size) < last for size in (90, 800, 4000) for _ in range(500)), gc.isenabled(), gc.get_freeze_count() > 1000)
"""


def said(settle: str) -> list[str]:
    program = PROGRAM.replace("SETTLE", settle)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason=f"{platform.libc_ver()} is not glibc 2.33 or newer")
def test_a_settled_heap_has_no_holes() -> None:
    before, _, _ = said("")
    after, collects, frozen = said("heap.settle()")
    assert int(before) > 1000  # of 1,500 pieces, so that the holes are there
    assert int(after) <= 14  # malloc keeps up to seven pieces of a small size at hand, for each of two sizes
    assert (collects, frozen) == ("True", "True")
