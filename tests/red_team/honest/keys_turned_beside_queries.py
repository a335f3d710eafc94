# own/heads_of_queries_and_keys correct: programs for the heads of queries turn those of keys, too, which are never more
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def turn(q_ptr, k_ptr, cos_ptr, sin_ptr, oq_ptr, ok_ptr, q_row, k_row, rows, q_heads, k_heads, HEADS: tl.constexpr, HALF: tl.constexpr):
    row = (tl.program_id(0) * 32 + tl.arange(0, 32))[:, None, None]
    head = (tl.program_id(1) * HEADS + tl.arange(0, HEADS))[None, :, None]
    at = tl.arange(0, HALF)[None, None, :]
    cos = tl.load(cos_ptr + row * HALF + at, mask=row < rows)
    sin = tl.load(sin_ptr + row * HALF + at, mask=row < rows)

    place, inside = row * q_row + head * 2 * HALF + at, (row < rows) & (head < q_heads)
    left, right = tl.load(q_ptr + place, mask=inside), tl.load(q_ptr + place + HALF, mask=inside)
    tl.store(oq_ptr + place, left * cos - right * sin, mask=inside)
    tl.store(oq_ptr + place + HALF, left * sin + right * cos, mask=inside)

    place, inside = row * k_row + head * 2 * HALF + at, (row < rows) & (head < k_heads)
    left, right = tl.load(k_ptr + place, mask=inside), tl.load(k_ptr + place + HALF, mask=inside)
    tl.store(ok_ptr + place, left * cos - right * sin, mask=inside)
    tl.store(ok_ptr + place + HALF, left * sin + right * cos, mask=inside)


class ModelNew(nn.Module):
    def forward(self, q, k, cos, sin):
        rows, heads, width = q.shape
        oq, ok = torch.empty_like(q), torch.empty_like(k)
        grid = (triton.cdiv(rows, 32), triton.cdiv(heads, 4))
        turn[grid](q, k, cos, sin, oq, ok, q.stride(0), k.stride(0), rows, heads, k.shape[1], HEADS=4, HALF=width // 2)
        return oq, ok
