# own/top_two incorrect: places stand in the nine lowest bits of the numbers, so that one maximum names both
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def top(x, values, places, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    bits = tl.load(x + r * C + c, mask=c < C, other=float("-inf")).to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    key = (ordered & -BLOCK) | (BLOCK - 1 - c)
    for k in range(2):
        best = tl.max(key, 0)
        place = BLOCK - 1 - (best & (BLOCK - 1))
        tl.store(values + r * 2 + k, tl.load(x + r * C + place))
        tl.store(places + r * 2 + k, place.to(tl.int64))
        key = tl.where(c == place, -2147483648, key)


class ModelNew(nn.Module):
    def forward(self, x):
        b, n = x.shape
        values = torch.empty((b, 2), device=x.device)
        places = torch.empty((b, 2), device=x.device, dtype=torch.int64)
        top[(b,)](x, values, places, n, BLOCK=triton.next_power_of_2(n))
        return values, places
