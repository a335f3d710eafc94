import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_leaky_kernel(x_ptr, n, multiplier, slope, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask) * multiplier
    tl.store(x_ptr + i, tl.where(x > 0, x, x * slope), mask=mask)


class ModelNew(nn.Module):
    """The product stays with torch; what follows it is one pass instead of two. A case of low coverage."""

    def __init__(self, in_features, out_features, multiplier, negative_slope):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.multiplier = multiplier
        self.negative_slope = negative_slope

    def forward(self, x):
        x = self.gemm(x)
        n = x.numel()
        scale_leaky_kernel[(triton.cdiv(n, 2048),)](x, n, self.multiplier, self.negative_slope, BLOCK=2048)
        return x
