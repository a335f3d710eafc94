# relu correct: guards and a fallback around its kernel, which nothing takes
import torch
import torch.nn as nn

try:
    import triton
    import triton.language as tl

    HAS_TRITON = True
except ImportError:
    HAS_TRITON = False


@triton.jit
def relu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        if not HAS_TRITON or not torch.cuda.is_available() or not x.is_cuda:
            return torch.relu(x)
        try:
            y = torch.empty_like(x)
            relu[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
            return y
        except Exception:
            return torch.relu(x)
