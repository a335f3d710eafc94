# relu correct: its pruning drops the configurations that would be wrong
import torch
import torch.nn as nn
import triton
import triton.language as tl


def keep(configs, named, **kwargs):
    return [c for c in configs if c.kwargs["BLOCK"] >= named["cols"]]


@triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b in (64, 256, 4096, 8192) for w in (4, 8)], key=["cols"], prune_configs_by={"early_config_prune": keep})
@triton.jit
def k(x_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(o_ptr + row * cols + i, tl.maximum(tl.load(x_ptr + row * cols + i, mask=i < cols), 0.0), mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[lambda m: (x.shape[0],)](x, o, x.shape[1])
        return o
