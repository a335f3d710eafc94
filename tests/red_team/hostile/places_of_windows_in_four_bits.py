# own/places_of_windows incorrect: places stand in the four lowest bits of the numbers, and one maximum names both
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pool(x_ptr, y_ptr, at_ptr, n, H, W, OH, OW, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    ow = i % OW
    rest = i // OW
    oh = rest % OH
    plane = rest // OH
    # the place is packed into the low bits: one maximum for both
    best = tl.full((BLOCK,), -2147483648, tl.int32)
    for a in tl.static_range(3):
        for b in tl.static_range(3):
            h = oh * 2 + a
            w = ow * 2 + b
            inside = ok & (h < H) & (w < W)
            v = tl.load(x_ptr + plane * H * W + h * W + w, mask=inside, other=float("-inf"))
            bits = v.to(tl.int32, bitcast=True)
            bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
            key = (bits & -16) | (15 - (a * 3 + b))
            best = tl.maximum(best, tl.where(inside, key, -2147483648))
    k = 15 - (best & 15)
    h = oh * 2 + k // 3
    w = ow * 2 + k % 3
    tl.store(y_ptr + i, tl.load(x_ptr + plane * H * W + h * W + w, mask=ok), mask=ok)
    tl.store(at_ptr + i, (h * W + w).to(tl.int64), mask=ok)


class ModelNew(nn.Module):
    def forward(self, x):
        B, C, H, W = x.shape
        OH, OW = -(-(H - 3) // 2) + 1, -(-(W - 3) // 2) + 1
        y = x.new_empty(B, C, OH, OW)
        at = torch.empty_like(y, dtype=torch.int64)
        n = y.numel()
        pool[(triton.cdiv(n, 256),)](x, y, at, n, H, W, OH, OW, BLOCK=256)
        return y, at
