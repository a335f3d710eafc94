# relu correct coverage<1.0: autotune with keys, warmup, rep, reset_to_zero and restore_value
import torch
import torch.nn as nn
import triton
import triton.language as tl


def configs():
    return [triton.Config(dict(BLOCK=b), num_warps=w, num_stages=s) for b in (512, 1024) for w in (4, 8) for s in (2, 3)]


@triton.autotune(configs=configs(), key=["n"], reset_to_zero=["o_ptr"], restore_value=["x_ptr"], warmup=10, rep=20)
@triton.heuristics(values={"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.zeros_like(x)
        k[lambda META: (triton.cdiv(x.numel(), META["BLOCK"]),)](x, o, n=x.numel())
        return o
