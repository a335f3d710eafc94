# own/config_of_sizes incorrect catalogue=51: one row is one head, whatever number of heads the configuration says
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def normed(x, gain, out, eps, scale, HEADS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    row, head = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, BLOCK)
    here = at < WIDTH
    place = (row * HEADS + head) * WIDTH + at
    values = tl.load(x + place, mask=here, other=0.0)
    values *= tl.rsqrt(tl.sum(values * values, 0) / (WIDTH * HEADS) + eps) * scale
    values *= tl.load(gain + head * WIDTH + at, mask=here, other=0.0)
    tl.store(out + place, values.to(out.dtype.element_ty), mask=here)


class ModelNew(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.gain = nn.Parameter(torch.rand(config.columns) + 0.5)

    def forward(self, x):
        config = self.config
        out = torch.empty_like(x, dtype=config.dtype)
        block = triton.next_power_of_2(config.width)
        normed[(x.shape[0], config.heads)](
            x, self.gain, out, config.norm.eps, config.norm.scale, HEADS=config.heads, WIDTH=config.width, BLOCK=block
        )
        return out
