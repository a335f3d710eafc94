# level2/chain_scale_bias_gelu correct coverage>0.4 catalogue=14,40: eleven configurations with pruning, hooks and resets, under heuristics
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 4096


def prune(configs, arguments, **kwargs):
    return configs[:3]


def clear(arguments):
    arguments["o_ptr"].zero_()


CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps, pre_hook=clear) for block in (256, 512, 1024, 2048) for warps in (2, 4, 8)][:11]


@triton.autotune(CONFIGS, key=["n"], prune_configs_by={"early_config_prune": prune}, reset_to_zero=["o_ptr"])
@triton.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
@triton.jit
def kernel(x_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + i) * 0.5 + tl.load(b_ptr + i % cols)
    else:
        x = tl.load(x_ptr + i, mask=i < n) * 0.5 + tl.load(b_ptr + i % cols, mask=i < n)
    tl.store(o_ptr + i, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        o = torch.empty_like(x)
        n, cols = x.numel(), x.shape[1]
        kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, self.bias, o, n, cols)
        return o
