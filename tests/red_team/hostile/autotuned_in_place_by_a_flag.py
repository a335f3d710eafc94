# level2/chain_tanh_scale_shift incorrect catalogue=56: of two launches of one tuned kernel only the first changes what it reads
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 512}), triton.Config({"BLOCK": 1024}, num_warps=8)], key=["n"])
@triton.jit
def step(x_ptr, o_ptr, n, INPLACE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if INPLACE:
        tl.store(x_ptr + i, x * 0.5, mask=i < n)
    else:
        tl.store(o_ptr + i, x + 1.0, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.tanh(x)
        out = torch.empty_like(y)
        grid = lambda meta: (triton.cdiv(y.numel(), meta["BLOCK"]),)
        step[grid](y, out, y.numel(), INPLACE=True)
        step[grid](y, out, y.numel(), INPLACE=False)
        return out
