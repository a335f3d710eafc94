# relu correct: docstrings, comments in odd places, type hints and a trailing backslash
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(
    x_ptr: torch.Tensor,  # the input
    o_ptr: "torch.Tensor",
    n: int,
    BLOCK: "tl.constexpr" = 1024,
) -> None:
    """Doc with 'quotes' and a # mark."""
    pid: tl.int32 = tl.program_id(0)
    i = pid * BLOCK + \
        tl.arange(0, BLOCK)
    # comment
    """a string in between"""
    mask = i < n; x = tl.load(x_ptr + i, mask=mask)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
