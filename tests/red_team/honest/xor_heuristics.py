# level1/xor_int correct: integers, heuristics
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.heuristics({"BLOCK": lambda args: min(1024, triton.next_power_of_2(args["n"])), "EVEN": lambda args: args["n"] % 1024 == 0})
@triton.jit
def xor(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(z_ptr + i, tl.load(x_ptr + i) ^ tl.load(y_ptr + i))
    else:
        tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < n) ^ tl.load(y_ptr + i, mask=i < n), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x, y):
        z = torch.empty_like(x)
        n = x.numel()
        xor[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, z, n)
        return z
