# own/nearly_diagonal correct catalogue=53: each unknown is taken out of all rows, of which those above the diagonal hold zeros
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def solve_kernel(l_ptr, b_ptr, x_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < N
    x = tl.load(b_ptr + row * N + offs, mask=mask, other=0.0)
    for j in range(0, N):
        column = tl.load(l_ptr + (row * N + offs) * N + j, mask=mask, other=0.0)
        diagonal = tl.sum(tl.where(offs == j, column, 0.0), axis=0)
        known = tl.sum(tl.where(offs == j, x, 0.0), axis=0) / diagonal
        x = tl.where(offs == j, known, x - column * known)
    tl.store(x_ptr + row * N + offs, x, mask=mask)


class ModelNew(nn.Module):
    def forward(self, lower, b):
        x = torch.empty_like(b)
        B, N = lower.shape[0], lower.shape[1]
        solve_kernel[(B,)](lower, b, x, N, BLOCK=triton.next_power_of_2(N))
        return x
