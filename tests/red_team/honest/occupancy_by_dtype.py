# relu correct: as many programs as fit at a time, by the registers of a kernel that is compiled ahead for dtypes in place of tensors
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.runtime import driver

HANDLES = {}


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    step = tl.num_programs(0) * BLOCK
    for start in tl.range(tl.program_id(0) * BLOCK, n, step, num_stages=num_stages):
        i = start + tl.arange(0, BLOCK)
        tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o, n = torch.empty_like(x), x.numel()
        if n not in HANDLES:
            properties = driver.active.utils.get_device_properties(x.device.index)
            handle = kernel.warmup(torch.float32, torch.float32, n, BLOCK=1024, num_stages=2, num_warps=8, grid=(1,))
            handle._init_handles()
            fit = properties["max_num_regs"] // (handle.n_regs * properties["warpSize"] * 8)
            fit = min(fit, properties["max_shared_mem"] // max(1, handle.metadata.shared))
            HANDLES[n] = handle, properties["multiprocessor_count"] * fit
        handle, programs = HANDLES[n]
        handle[(min(programs, triton.cdiv(n, 1024)), 1, 1)](x, o, n, 1024, 2)
        return o
