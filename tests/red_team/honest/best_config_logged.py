# relu correct: the host prints what an autotuner has chosen, and reads what all of its configurations have in common
import torch
import torch.nn as nn
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": 1024, "TURNS": turns}, num_warps=4) for turns in (1, 2)]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    for turn in range(TURNS):
        i = (tl.program_id(0) * TURNS + turn) * BLOCK + tl.arange(0, BLOCK)
        tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o, n = torch.empty_like(x), x.numel()
        kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"] * meta["TURNS"]),)](x, o, n)
        best = kernel.best_config
        print(f"chosen: {best}, {best.kwargs}")
        return o.view(-1)[: max(n, best.kwargs["BLOCK"], best.num_warps)].view_as(x)
