# own/row_total correct cpu=runtime_error catalogue=59: a relaxed counter hands nothing on: the last program may read parts that are not there yet, though a GPU mostly has them
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total(x, parts, done, y, C, P, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    r = tl.program_id(0)
    p = tl.program_id(1)
    c = p * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x + r * C + c, mask=c < C, other=0.0), 0)
    tl.store(parts + r * P + p, s)
    if tl.atomic_add(done + r, 1, sem="relaxed") == P - 1:
        i = tl.arange(0, PARTS)
        tl.store(y + r, tl.sum(tl.load(parts + r * P + i, mask=i < P, other=0.0), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        b, n = x.shape
        p = triton.cdiv(n, 256)
        y, parts = torch.empty(b, device=x.device), torch.empty((b, p), device=x.device)
        done = torch.zeros(b, dtype=torch.int32, device=x.device)
        total[(b, p)](x, parts, done, y, n, p, BLOCK=256, PARTS=triton.next_power_of_2(p))
        return y
