# relu correct: captures a CUDA graph once for each address of the input, and replays it on whatever lies there
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
        self.graphs = {}

    def forward(self, x):
        key = (x.data_ptr(), tuple(x.shape))
        if key not in self.graphs:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.launch(x, torch.empty_like(x))
            torch.cuda.current_stream().wait_stream(side)
            o, graph = torch.empty_like(x), torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.launch(x, o)
            self.graphs[key] = graph, o
        graph, o = self.graphs[key]
        graph.replay()
        return o

    def launch(self, x, o):
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
