# level2/chain_tanh_scale_shift incorrect catalogue=56: an autotuner runs the kernel on its own results, and a configuration that nobody would choose takes too long to try
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 2}), triton.Config({"BLOCK": 512}), triton.Config({"BLOCK": 1024}, num_warps=8)], key=["n"])
@triton.jit
def scale_shift(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x * 0.5 + 1.0, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.tanh(x)
        scale_shift[lambda meta: (triton.cdiv(y.numel(), meta["BLOCK"]),)](y, y.numel())
        return y
