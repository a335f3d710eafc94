# relu inconsistent catalogue=12: replays a CUDA graph that reads where the first input lay, whatever lies there now
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.made = torch.empty_like(x)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                kernel[(triton.cdiv(x.numel(), 1024),)](x, self.made, x.numel(), BLOCK=1024)
        self.graph.replay()
        return self.made
