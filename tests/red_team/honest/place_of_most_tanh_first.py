# own/place_of_most_tanh correct: tl.argmax, which names the first of equal numbers
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, s, y, M, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + r * M + i, mask=i < M, other=float("-inf"))
    a = (2 * tl.sigmoid(2 * v) - 1) * tl.load(s)
    a = tl.where(i < M, a, float("-inf"))
    tl.store(y + r, tl.argmax(a, 0))


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        y = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        k[(x.shape[0],)](x, self.scale, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
