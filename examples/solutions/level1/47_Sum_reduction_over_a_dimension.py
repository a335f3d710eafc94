# The example of a hack: its verdict is `no_kernel`.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def idle_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    """A decoy, to see that the check works: a kernel runs, and torch computes the result."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        unused = torch.empty(1024, device=x.device, dtype=x.dtype)
        idle_kernel[(1,)](x, unused, 1024, BLOCK=1024)
        return torch.sum(x, dim=self.dim, keepdim=True)
