# own/column_squares correct speedup<1 catalogue=35: all work is done under one lock, so that no two programs work at once
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, lock_ptr, R, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    for r in range(tl.program_id(0) * ROWS, min((tl.program_id(0) + 1) * ROWS, R)):
        x = tl.load(x_ptr + r * C + c, mask=c < C, other=0.0)
        acc += x * x
    tl.store(o_ptr + c, tl.load(o_ptr + c, mask=c < C) + acc, mask=c < C)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        R, C = x.shape
        o = torch.zeros(C, device=x.device)
        lock = torch.zeros(1, dtype=torch.int32, device=x.device)
        kernel[(triton.cdiv(R, 4),)](x, o, lock, R, C, ROWS=4, BLOCK=triton.next_power_of_2(C))
        return o
