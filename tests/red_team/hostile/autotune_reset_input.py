# relu incorrect catalogue=40,56: its autotuner sets the input to zero before the first call returns
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 1024, "SKIP": False}), triton.Config({"BLOCK": 2048, "SKIP": False})], key=["n"], reset_to_zero=["x_ptr"], warmup=1, rep=1)
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr, SKIP: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if not SKIP:
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, o, x.numel())
        return o
