# own/causal_heads correct: each turn of a loop, of which later rows take more, loads the same queries once more
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, length, scale, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1) * length * WIDTH
    at = tl.arange(0, WIDTH)
    most = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    made = tl.zeros([BLOCK, WIDTH], tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BLOCK, BLOCK):
        other = start + tl.arange(0, BLOCK)
        q = tl.load(q_ptr + first + row[:, None] * WIDTH + at, mask=row[:, None] < length, other=0.0)
        k = tl.load(k_ptr + first + other[:, None] * WIDTH + at, mask=other[:, None] < length, other=0.0)
        v = tl.load(v_ptr + first + other[:, None] * WIDTH + at, mask=other[:, None] < length, other=0.0)
        scores = tl.where(other[None, :] <= row[:, None], tl.dot(q, tl.trans(k)) * scale, float("-inf"))
        now = tl.maximum(most, tl.max(scores, 1))
        weights, kept = tl.exp(scores - now[:, None]), tl.exp(most - now)
        made = made * kept[:, None] + tl.dot(weights.to(v.dtype), v)
        total, most = total * kept + tl.sum(weights, 1), now
    tl.store(o_ptr + first + row[:, None] * WIDTH + at, made / total[:, None], mask=row[:, None] < length)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        batch, heads, length, width = q.shape
        o = torch.empty_like(q)
        attend[(triton.cdiv(length, 64), batch * heads)](q, k, v, o, length, width**-0.5, BLOCK=64, WIDTH=width)
        return o
