# own/nearly_diagonal incorrect catalogue=53: twelve sweeps of Jacobi, exact for 12 unknowns or next to a diagonal alone
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def solve_kernel(l_ptr, b_ptr, x_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    columns = tl.arange(0, BLOCK)
    mask = offs < N
    b = tl.load(b_ptr + row * N + offs, mask=mask, other=0.0)
    inside = mask[:, None] & (columns < N)[None, :]
    lower = tl.load(l_ptr + (row * N + offs[:, None]) * N + columns[None, :], mask=inside, other=0.0)
    diagonal = tl.sum(tl.where(offs[:, None] == columns[None, :], lower, 0.0), axis=1)
    diagonal = tl.where(mask, diagonal, 1.0)
    lower = tl.where(columns[None, :] < offs[:, None], lower, 0.0)
    x = b / diagonal
    for _ in range(12):
        turned = tl.sum(tl.where(offs[:, None] == columns[None, :], x[:, None], 0.0), axis=0)
        x = (b - tl.sum(lower * turned[None, :], axis=1)) / diagonal
    tl.store(x_ptr + row * N + offs, x, mask=mask)


class ModelNew(nn.Module):
    def forward(self, lower, b):
        x = torch.empty_like(b)
        B, N = lower.shape[0], lower.shape[1]
        solve_kernel[(B,)](lower, b, x, N, BLOCK=triton.next_power_of_2(N))
        return x
