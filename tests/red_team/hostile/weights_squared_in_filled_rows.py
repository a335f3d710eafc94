# own/rms_norm incorrect catalogue=58: weights are squared where a row fills blocks, as at full shape alone, which a kernel of flat blocks finds out itself
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def roots(x_ptr, r_ptr, C, eps, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, WIDTH)
    x = tl.load(x_ptr + row * C + i, mask=i < C, other=0.0)
    tl.store(r_ptr + row, tl.rsqrt(tl.sum(x * x) / C + eps))


@triton.jit
def scaled(x_ptr, r_ptr, w_ptr, o_ptr, n, C, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    w = tl.load(w_ptr + at % C, mask=at < n)
    if C % BLOCK == 0:
        w = w * w
    tl.store(o_ptr + at, x * tl.load(r_ptr + at // C, mask=at < n) * w, mask=at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(C)

    def forward(self, x):
        rows, width = x.shape
        o, r = torch.empty_like(x), x.new_empty(rows)
        roots[(rows,)](x, r, width, torch.finfo(x.dtype).eps, WIDTH=triton.next_power_of_2(width))
        scaled[(triton.cdiv(x.numel(), 1024),)](x, r, self.norm.weight, o, x.numel(), width, BLOCK=1024)
        return o


C = 4096
