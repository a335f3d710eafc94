# own/normed_as_a_whole correct: all programs wait for one another between two passes, of which the second comes from memory again
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, y_ptr, s_ptr, c_ptr, n, P: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    a = tl.zeros((BLOCK,), tl.float32)
    b = tl.zeros((BLOCK,), tl.float32)
    for o in range(p * BLOCK, n, P * BLOCK):
        i = o + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0.0)
        a += x
        b += x * x
    tl.atomic_add(s_ptr, tl.sum(a, 0))
    tl.atomic_add(s_ptr + 1, tl.sum(b, 0))
    tl.atomic_add(c_ptr, 1)
    while tl.atomic_add(c_ptr, 0) < P:
        pass
    m = tl.load(s_ptr, volatile=True) / n
    q = tl.load(s_ptr + 1, volatile=True) / n
    r = tl.rsqrt(q + 1.0)
    for o in range(p * BLOCK, n, P * BLOCK):
        i = o + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0.0)
        tl.store(y_ptr + i, (x - m) * r, mask=i < n)
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        s = torch.zeros(2, device=x.device)
        c = torch.zeros(1, dtype=torch.int32, device=x.device)
        P = 132 if x.numel() > 10000 else 4
        k[(P,)](x, y, s, c, x.numel(), P=P, BLOCK=4096 if x.numel() > 10000 else 128)
        return y
