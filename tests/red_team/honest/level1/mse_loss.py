# level1/mse_loss correct: two kernels: a partial sum per program, then the sum of the partial sums
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_squares(x_ptr, y_ptr, part_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    d = tl.load(x_ptr + i, mask=m, other=0.0) - tl.load(y_ptr + i, mask=m, other=0.0)
    tl.store(part_ptr + tl.program_id(0), tl.sum(d * d, axis=0))


@triton.jit
def mean_of_parts(part_ptr, out_ptr, parts, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, parts, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(part_ptr + i, mask=i < parts, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        n = x.numel()
        parts = triton.cdiv(n, 4096)
        part = torch.empty(parts, device=x.device, dtype=torch.float32)
        out = torch.empty((), device=x.device, dtype=torch.float32)
        partial_squares[(parts,)](x, y, part, n, BLOCK=4096, num_warps=8)
        mean_of_parts[(1,)](part, out, parts, n, BLOCK=1024)
        return out
