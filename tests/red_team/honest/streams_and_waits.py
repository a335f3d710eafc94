# level2/chain_scale_gelu correct catalogue=44: a side stream, events and waits, all in order
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    x = x * 1.5
    x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(o_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.stream = torch.cuda.Stream()

    def forward(self, x):
        o = torch.empty_like(x)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream), torch.cuda.device(x.device):
            kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
            done = torch.cuda.Event()
            done.record()
        torch.cuda.current_stream().wait_event(done)
        torch.cuda.current_stream().wait_stream(self.stream)
        torch.cuda.synchronize()
        return o
