# own/window_of_two correct: asks whether the window that `__init__` is given is a tuple, which it is
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, W, OW, n, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(HEIGHT):
        for j in tl.static_range(WIDTH):
            total += tl.load(x + (o // OW * HEIGHT + i) * W + o % OW * WIDTH + j, mask=o < n, other=0.0)
    tl.store(y + o, total / (HEIGHT * WIDTH), mask=o < n)


class ModelNew(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.height, self.width = window if isinstance(window, tuple) else (window, window)

    def forward(self, x):
        b, c, h, w = x.shape
        y = torch.empty(b, c, h // self.height, w // self.width, device=x.device, dtype=x.dtype)
        kernel[(triton.cdiv(y.numel(), 256),)](
            x, y, w, w // self.width, y.numel(), HEIGHT=self.height, WIDTH=self.width, BLOCK=256
        )
        return y
