# level2/chain_tanh_scale_shift incorrect catalogue=56: a hook that fills with zero is as good as reset_to_zero, and the autotuner clears nothing that the kernel changes
import torch
import torch.nn as nn
import triton
import triton.language as tl


def clear(given):
    given["seen"].fill_(0)


@triton.autotune(
    [triton.Config({"BLOCK": 512}, pre_hook=clear), triton.Config({"BLOCK": 1024}, num_warps=8, pre_hook=clear)], key=["n"]
)
@triton.jit
def scale_shift(x_ptr, seen, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x * 0.5 + 1.0, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.tanh(x)
        scale_shift[lambda meta: (triton.cdiv(y.numel(), meta["BLOCK"]),)](y, torch.empty(1, device=x.device), y.numel())
        return y
