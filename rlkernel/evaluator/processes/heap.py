"""The zygote's memory before it forks. What a child writes to is copied for it, page by page, so that it should write to few.

Imports leave thousands of holes between what stays. A child's own objects would lie in these holes, and each hole costs a copy of
a page, which takes longer than a fresh one. So the holes are filled, and the end of the heap goes back to the kernel.
"""

from __future__ import annotations

import ctypes
import gc

_SIZES = (
    *(1 << power for power in range(16, 11, -1)), 1536, 1024, 768, 512, 384, 256, 192, 128, 96, 64, 40, 24,
)  # fmt: skip
"""Bytes of what is put into holes, from the largest that the heap itself serves to the smallest that it has."""


class _Heap(ctypes.Structure):
    """What glibc's `mallinfo2` answers."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def settle() -> None:
    """Make the heap ready to be shared. For a process of one thread, after its last import and before its first fork."""
    gc.freeze()  # a child's collections then look at what it makes itself, and leave the pages that it shares as they are
    gc.enable()
    _fill_holes()


def _fill_holes() -> None:
    """Fill the heap's holes for good: megabytes, in milliseconds. It does nothing where the allocator is not glibc's."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        return
    libc.mallinfo2.restype = _Heap
    libc.sbrk.restype = libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    end = (libc.sbrk(0) or 0) - libc.mallinfo2().keepcost
    for size in _SIZES:
        while 0 < (address := libc.malloc(size) or 0) < end:
            pass
        libc.free(address)  # it lies behind everything: there is no hole of this size
    libc.malloc_trim(0)
