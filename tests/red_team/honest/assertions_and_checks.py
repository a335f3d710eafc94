# relu correct: checks shapes, dtypes and devices before it launches
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        assert x.is_cuda and x.is_contiguous() and x.dtype in (torch.float32, torch.float16) and x.ndim == 2
        if not x.is_cuda or x.device.type == "cpu":
            return torch.relu(x)
        torch._check(x.numel() > 0)
        M, N = x.shape
        if M * N == 0:
            return x
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
