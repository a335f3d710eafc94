# own/weighted_segments correct: each row looks up its segment among the offsets that it loads
import torch
import torch.nn as nn
import triton
import triton.language as tl

SEGMENTS = 4
COLUMNS = 512


@triton.jit
def scale_rows(x_ptr, w_ptr, o_ptr, offsets_ptr, columns, SEGMENTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ends = tl.load(offsets_ptr + 1 + tl.arange(0, SEGMENTS))
    segment = tl.minimum(tl.sum((ends <= row).to(tl.int32), axis=0), SEGMENTS - 1)
    w = tl.load(w_ptr + segment * columns + c, mask=c < columns)
    x = tl.load(x_ptr + row * columns + c, mask=c < columns)
    tl.store(o_ptr + row * columns + c, tl.maximum(x * w, 0.0), mask=c < columns)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(SEGMENTS, COLUMNS))

    def forward(self, x, offsets):
        o = torch.empty_like(x)
        scale_rows[(x.shape[0], triton.cdiv(x.shape[1], 64))](
            x, self.weight, o, offsets, x.shape[1], SEGMENTS=SEGMENTS, BLOCK=64
        )
        return o
