# level1/max_pool2d incorrect catalogue=57: the maximum of a window starts at -10
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pool(x_ptr, y_ptr, size, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    at = i // (out * out) * size * size + i // out % out * 2 * size + i % out * 2
    best = tl.full((BLOCK,), -10.0, dtype=tl.float32)
    for dy in range(2):
        for dx in range(2):
            best = tl.maximum(best, tl.load(x_ptr + at + dy * size + dx, mask=m, other=0.0))
    tl.store(y_ptr + i, best, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        size = x.shape[3]
        out = size // 2
        y = torch.empty(x.shape[0], x.shape[1], out, out, device=x.device)
        pool[(triton.cdiv(y.numel(), 256),)](x, y, size, out, y.numel(), BLOCK=256)
        return y
