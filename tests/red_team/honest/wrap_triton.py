# relu correct: torch.library.wrap_triton without an operator around it, as libraries call it from plain functions
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (512, 1024)], key=["n"])
@triton.jit
def tuned(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


@triton.jit
def plain(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y, o = torch.empty_like(x), torch.empty_like(x)
        n = x.numel()
        torch.library.wrap_triton(tuned)[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
        torch.library.wrap_triton(plain)[(triton.cdiv(n, 1024),)](y, o, n, BLOCK=1024)
        return o
