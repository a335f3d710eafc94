# own/forgetful_scan incorrect catalogue=57: chunks of 64 steps begin 32 steps before, so that what is older is forgotten
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scan(x_ptr, gate_ptr, out_ptr, length, width, CHUNK: tl.constexpr, BEFORE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    start = tl.program_id(1) * CHUNK
    state = tl.zeros((BLOCK,), tl.float32)
    for t in range(tl.maximum(start - BEFORE, 0), tl.minimum(start + CHUNK, length)):
        keep = tl.sigmoid(tl.load(gate_ptr + t * width + at, mask=inside, other=0.0))
        state = keep * state + (1 - keep) * tl.load(x_ptr + t * width + at, mask=inside, other=0.0)
        tl.store(out_ptr + t * width + at, state, mask=inside & (t >= start))


class ModelNew(nn.Module):
    def forward(self, x, gate):
        length, width = x.shape
        out = torch.empty_like(x)
        scan[(triton.cdiv(width, 64), triton.cdiv(length, 64))](x, gate, out, length, width, CHUNK=64, BEFORE=32, BLOCK=64)
        return out
