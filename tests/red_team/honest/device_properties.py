# relu correct: a persistent grid from the card's properties
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        p = torch.cuda.get_device_properties(x.device)
        q = triton.runtime.driver.active.utils.get_device_properties(x.device.index)
        assert q["multiprocessor_count"] == p.multi_processor_count and torch.cuda.get_device_capability()[0] >= 8
        assert torch.version.cuda and torch.cuda.is_available()
        k[(min(p.multi_processor_count, triton.cdiv(x.numel(), 1024)),)](x, o, x.numel(), BLOCK=1024)
        return o
