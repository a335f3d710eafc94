# own/centred_running incorrect catalogue=56: its autotuner has updated the running mean, too
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 512}), triton.Config({"BLOCK": 1024}, num_warps=8)], key=["cols"])
@triton.jit
def centre(x_ptr, mean_ptr, run_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        m = tl.load(mean_ptr + i, mask=i < cols)
        x = tl.load(x_ptr + row * cols + i, mask=i < cols)
        tl.store(o_ptr + row * cols + i, tl.maximum(x - m, 0.0), mask=i < cols)
        if row == 0:
            r = tl.load(run_ptr + i, mask=i < cols)
            tl.store(run_ptr + i, r * 0.9 + m * 0.1, mask=i < cols)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.register_buffer("running", torch.zeros(cols))

    def forward(self, x):
        mean = x.mean(0)
        out = torch.empty_like(x)
        centre[(x.shape[0],)](x, mean, self.running, out, x.shape[1])
        return out
