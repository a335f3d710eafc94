# relu correct: a descriptor of the host that pads with NaN, which the kernel must replace, over a narrower window than its tensor
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def kernel(x, o, half, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, half, BLOCK):
        v = x.load([row, start])
        o.store([row, start], tl.where(v == v, tl.maximum(v, 0.0), 7.0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        half = cols // 2 // 4 * 4
        o = torch.empty_like(x)
        for start in (0, half):
            wide = min(half if start == 0 else cols - half, cols - start)
            parts = [t[:, start : start + wide] for t in (x, o)]
            window = [TensorDescriptor(t, t.shape, t.stride(), [1, 32], padding=p) for t, p in zip(parts, ("nan", "zero"))]
            kernel[(rows,)](*window, wide, BLOCK=32)
        return o
