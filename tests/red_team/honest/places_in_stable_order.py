# own/places_in_stable_order correct: equal numbers are named from the first to the last
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def k(x, p, M, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + r * M + i, mask=i < M, other=1 << 20)
    key = v * BLOCK + i
    s = tl.sort(key) % BLOCK
    tl.store(p + r * M + i, (s).to(tl.int64), mask=i < M)


class ModelNew(nn.Module):
    def forward(self, x):
        p = torch.empty(x.shape, dtype=torch.int64, device=x.device)
        k[(x.shape[0],)](x, p, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return p
