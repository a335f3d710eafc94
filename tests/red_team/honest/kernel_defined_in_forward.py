# relu correct coverage>0.99: every call of forward defines its kernel anew, and tunes it
import torch
import torch.nn as nn
import triton
import triton.language as tl


class ModelNew(nn.Module):
    def forward(self, x):
        @triton.jit
        def clipped(value):
            return tl.maximum(value, 0.0)

        @triton.autotune(configs=[triton.Config({"BLOCK": 512}), triton.Config({"BLOCK": 1024})], key=["n"])
        @triton.jit
        def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            inside = offsets < n
            tl.store(y_ptr + offsets, clipped(tl.load(x_ptr + offsets, mask=inside)), mask=inside)

        y = torch.empty_like(x)
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
        return y
