# own/norm_differentiated correct: a reference that differentiates has the time of its derivatives
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def of_rows(x, slope, weights, biases, rows, cols, EACH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < cols
    weight = tl.zeros((BLOCK,), tl.float32)
    bias = tl.zeros((BLOCK,), tl.float32)
    for each in range(EACH):
        row = tl.program_id(0) * EACH + each
        values = tl.load(x + row * cols + at, mask=inside & (row < rows), other=0.0)
        mean = tl.sum(values, 0) / cols
        centred = tl.where(inside, values - mean, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred, 0) / cols + 1e-5)
        given = tl.load(slope + row * cols + at, mask=inside & (row < rows), other=0.0)
        weight += given * centred * scale
        bias += given
    tl.store(weights + tl.program_id(0) * cols + at, weight, mask=inside)
    tl.store(biases + tl.program_id(0) * cols + at, bias, mask=inside)


@triton.jit
def added(parts, out, count, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(count):
        total += tl.load(parts + part * cols + at, mask=at < cols, other=0.0)
    tl.store(out + at, total, mask=at < cols)


class ModelNew(nn.Module):
    def forward(self, x, weight, bias, slope):
        rows, cols = x.shape
        count = triton.cdiv(rows, 16)
        parts = torch.empty(2, count, cols, device=x.device)
        of_rows[(count,)](x, slope, parts[0], parts[1], rows, cols, EACH=16, BLOCK=triton.next_power_of_2(cols))
        weights, biases = torch.empty_like(weight), torch.empty_like(bias)
        added[(triton.cdiv(cols, 128),)](parts[0], weights, count, cols, BLOCK=128)
        added[(triton.cdiv(cols, 128),)](parts[1], biases, count, cols, BLOCK=128)
        return weights, biases
