# relu runtime_error: its pruning leaves no configuration
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune([triton.Config({'BLOCK': b}) for b in (256, 512, 1024, 2048)], key=['n'], prune_configs_by={'early_config_prune': lambda *a, **k: []})
@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[lambda m: (triton.cdiv(x.numel(), m['BLOCK']),)](x, o, x.numel())
        return o
