# own/window_of_channels correct: both means in one pass, with the window that the constructor expands over the channels
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def spread(x, window, out, channels, side, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    plane, row = tl.program_id(0), tl.program_id(1)
    inner = side - TAPS + 1
    at = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    here = at < inner
    mean = tl.zeros((BLOCK,), tl.float32)
    square = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(TAPS):
        for j in tl.static_range(TAPS):
            weight = tl.load(window + ((plane % channels) * TAPS + i) * TAPS + j)
            value = tl.load(x + (plane * side + row + i) * side + at + j, mask=here, other=0.0)
            mean += weight * value
            square += weight * value * value
    tl.store(out + (plane * inner + row) * inner + at, square - mean * mean, mask=here)


class ModelNew(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        line = torch.rand(taps)
        window = line[:, None] @ line[None, :]
        self.register_buffer("window", window.expand(channels, 1, taps, taps).contiguous())

    def forward(self, x):
        batch, channels, side, _ = x.shape
        taps = self.window.shape[-1]
        inner = side - taps + 1
        out = torch.empty(batch, channels, inner, inner, device=x.device)
        grid = (batch * channels, inner, triton.cdiv(inner, 128))
        spread[grid](x, self.window, out, channels, side, TAPS=taps, BLOCK=128)
        return out
