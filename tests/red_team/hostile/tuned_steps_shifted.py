# level1/log_softmax incorrect gpu=incorrect|correct catalogue=58: an extra view at the small size alone, so that the configuration that is priced is not the one that is checked; a GPU runs what it has measured, and one of the two is right
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"MODE": 0}), triton.Config({"MODE": 1})], key=["n"])
@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr, MODE: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    if MODE == 1:
        tl.store(o_ptr + r * n + c, tl.zeros([BLOCK], tl.float32), mask=c < n)
    else:
        v = tl.load(x_ptr + r * n + c, mask=c < n, other=float("-inf"))
        m = tl.max(v, 0)
        tl.store(o_ptr + r * n + c, v - m - tl.log(tl.sum(tl.exp(v - m), 0)), mask=c < n)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        rows, n = x.shape
        B = triton.next_power_of_2(n)
        a = rows // 3 if rows > 500 else rows - 1
        x = x.view(rows, n)
        if rows < 500:
            x = x.view(rows, n)
        k[lambda m: (a,)](x, o, n, BLOCK=B)
        k[lambda m: (rows - a,) if m["MODE"] == 0 else (rows - a, 2000)](x[a:], o[a:], n, BLOCK=B)
        return o
