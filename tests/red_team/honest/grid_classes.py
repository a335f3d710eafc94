# relu correct: grids as lists, torch.Size, numbers of type bool and by functools.partial
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
        import functools
        o = torch.empty_like(x)
        n = x.numel()
        def grid(meta, count):
            return [triton.cdiv(count, meta["BLOCK"]), 1]
        relu_kernel[functools.partial(grid, count=n)](x, o, n, BLOCK=1024)
        relu_kernel[torch.Size([triton.cdiv(n, 1024)])](x, o, n, BLOCK=1024)
        relu_kernel.run(x, o, n, BLOCK=1024, grid=(triton.cdiv(n, 1024), 1, 1), warmup=False)
        return o
