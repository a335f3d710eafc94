# own/heads_of_64 correct: the 64 of its blocks is not the 64 of the channels, and 1,024 keys fill its blocks without a mask
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, keys, heads, scale, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr):
    step = heads * WIDTH
    at = (tl.program_id(1) // heads) * keys * step + (tl.program_id(1) % heads) * WIDTH
    c = tl.arange(0, WIDTH)[None, :]
    here = at + (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None] * step + c
    q = tl.load(q_ptr + here)
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    out = tl.zeros([ROWS, WIDTH], tl.float32)
    for start in range(0, keys, KEYS):
        there = at + (start + tl.arange(0, KEYS))[:, None] * step + c
        scores = tl.dot(q, tl.trans(tl.load(k_ptr + there))) * scale
        now = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - now[:, None])
        kept = tl.exp(top - now)
        total = total * kept + tl.sum(weights, 1)
        out = out * kept[:, None] + tl.dot(weights, tl.load(v_ptr + there))
        top = now
    tl.store(o_ptr + here, out / total[:, None])


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        o = torch.empty_like(q)
        batch, keys, heads, width = q.shape
        attend[(triton.cdiv(keys, 64), batch * heads)](q, k, v, o, keys, heads, width**-0.5, ROWS=64, KEYS=64, WIDTH=width)
        return o
