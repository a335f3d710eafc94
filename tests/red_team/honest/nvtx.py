# relu correct: nvtx, torch.accelerator and questions about capturing
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
        torch.cuda.nvtx.range_push("relu")
        with torch.cuda.nvtx.range("inner"):
            o = torch.empty_like(x, memory_format=torch.contiguous_format)
        assert not torch.cuda.is_current_stream_capturing()
        assert torch.accelerator.is_available() and torch.accelerator.current_accelerator().type == "cuda"
        assert torch.accelerator.current_device_index() == 0 and torch.accelerator.device_count() == 1
        with torch.profiler.record_function("relu"):
            relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        torch.accelerator.synchronize()
        torch.cuda.nvtx.range_pop()
        return o
