# level3/squeeze_excite correct coverage>0.5: means and the final scale by kernels, the tiny gate by torch
import torch
import torch.nn as nn
import triton
import triton.language as tl

CHANNELS = 256
HIDDEN = 64


@triton.jit
def mean(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + line * size + i, mask=i < size, other=0.0)
    tl.store(y_ptr + line, tl.sum(acc, axis=0) / size)


@triton.jit
def scale(x_ptr, g_ptr, y_ptr, size, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.sigmoid(tl.load(g_ptr + line))
    tl.store(y_ptr + line * size + i, tl.load(x_ptr + line * size + i, mask=i < size) * gate, mask=i < size)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(CHANNELS, HIDDEN)
        self.up = nn.Linear(HIDDEN, CHANNELS)

    def forward(self, x):
        batch, channels, size = x.shape
        m = torch.empty((batch, channels), device=x.device)
        mean[(batch * channels,)](x, m, size, BLOCK=1024)
        gate = self.up(torch.relu(self.down(m)))
        y = torch.empty_like(x)
        scale[(batch * channels, triton.cdiv(size, 1024))](x, gate, y, size, BLOCK=1024)
        return y
