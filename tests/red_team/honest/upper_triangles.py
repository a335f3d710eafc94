# own/upper_triangles correct: of a product of two upper triangles, the sixth that no structural zero leaves out
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def multiply(a_ptr, b_ptr, c_ptr, n, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    i, j = row + tl.arange(0, BLOCK), column + tl.arange(0, BLOCK)
    inside = (i[:, None] < n) & (j[None, :] < n)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(row, tl.minimum(column + BLOCK, n), BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + i[:, None] * n + k[None, :], mask=(i[:, None] < n) & (k[None, :] < n), other=0.0)
        b = tl.load(b_ptr + k[:, None] * n + j[None, :], mask=(k[:, None] < n) & (j[None, :] < n), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(c_ptr + i[:, None] * n + j[None, :], tl.where(i[:, None] <= j[None, :], total, 0.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        n = a.shape[0]
        c = torch.empty_like(a)
        grid = (triton.cdiv(n, 64), triton.cdiv(n, 64))
        multiply[grid](a, b, c, n, BLOCK=64, BLOCK_K=32)
        return c
