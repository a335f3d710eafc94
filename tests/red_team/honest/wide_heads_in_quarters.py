# own/wide_heads correct: forward takes a width of 1024 alone, beside 32 heads, which are no size
import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, out_ptr, keys, scale, QUARTER: tl.constexpr, ROWS: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * keys * 4 * QUARTER
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = rows[:, None] < keys
    columns = tl.arange(0, QUARTER)
    largest = tl.full([ROWS], float("-inf"), tl.float32)
    whole = tl.zeros([ROWS], tl.float32)
    first = tl.zeros([ROWS, QUARTER], tl.float32)
    second = tl.zeros([ROWS, QUARTER], tl.float32)
    third = tl.zeros([ROWS, QUARTER], tl.float32)
    fourth = tl.zeros([ROWS, QUARTER], tl.float32)
    for start in range(0, keys, ROWS):
        other = start + tl.arange(0, ROWS)
        there = other[:, None] < keys
        scores = tl.zeros([ROWS, ROWS], tl.float32)
        for part in range(16):
            i = part * (QUARTER // 4) + tl.arange(0, QUARTER // 4)[None, :]
            q = tl.load(q_ptr + head + rows[:, None] * 4 * QUARTER + i, mask=inside, other=0.0)
            k = tl.load(k_ptr + head + other[:, None] * 4 * QUARTER + i, mask=there, other=0.0)
            scores += tl.dot(q, tl.trans(k), input_precision="ieee")
        scores = tl.where(other[None, :] < keys, scores * scale, float("-inf"))
        now = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp(scores - now[:, None])
        left = tl.exp(largest - now)
        whole = whole * left + tl.sum(weights, axis=1)
        v = v_ptr + head + other[:, None] * 4 * QUARTER + columns[None, :]
        first = first * left[:, None] + tl.dot(weights, tl.load(v, mask=there, other=0.0), input_precision="ieee")
        v += QUARTER
        second = second * left[:, None] + tl.dot(weights, tl.load(v, mask=there, other=0.0), input_precision="ieee")
        v += QUARTER
        third = third * left[:, None] + tl.dot(weights, tl.load(v, mask=there, other=0.0), input_precision="ieee")
        v += QUARTER
        fourth = fourth * left[:, None] + tl.dot(weights, tl.load(v, mask=there, other=0.0), input_precision="ieee")
        largest = now
    out = out_ptr + head + rows[:, None] * 4 * QUARTER + columns[None, :]
    tl.store(out, first / whole[:, None], mask=inside)
    tl.store(out + QUARTER, second / whole[:, None], mask=inside)
    tl.store(out + 2 * QUARTER, third / whole[:, None], mask=inside)
    tl.store(out + 3 * QUARTER, fourth / whole[:, None], mask=inside)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        batch, heads, keys, width = q.shape
        quarter = 256
        assert width == 4 * quarter
        out = torch.empty_like(q)
        attend[(triton.cdiv(keys, 16), batch * heads)](q, k, v, out, keys, 1 / math.sqrt(width), quarter, 16, num_warps=8)
        return out
