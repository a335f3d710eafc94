# own/row_total incorrect catalogue=33: zeroes its output in the hook of one configuration, and is run in another
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


def zero(args):
    args["o_ptr"].zero_()

@triton.autotune(configs=[triton.Config({"BLOCK": 1024, "EXTRA": 60000}, pre_hook=zero), triton.Config({"BLOCK": 1024, "EXTRA": 0})], key=["n"])
@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr, EXTRA: tl.constexpr):
    r = tl.program_id(0)
    s = tl.program_id(1)
    c = s * BLOCK + tl.arange(0, BLOCK)
    t = tl.sum(tl.load(x_ptr + r * n + c, mask=c < n, other=0.0))
    tl.atomic_add(o_ptr + r, t)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty(x.shape[0], device=x.device)
        k[lambda m: (x.shape[0], triton.cdiv(x.shape[1], m["BLOCK"]) + (m["EXTRA"] if x.shape[1] > 5000 else 0))](x, o, x.shape[1])
        return o
