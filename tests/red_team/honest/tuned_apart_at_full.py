# own/two_sizes correct: two launches of one autotuner have equal keys at the small sizes alone, and its pruning keeps other configurations of each
import torch
import torch.nn as nn
import triton
import triton.language as tl


def prune(configs, nargs, **kwargs):
    return [c for c in configs if c.kwargs["BLOCK"] <= (4096 if nargs["scale"] else 1024)]


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}) for b in (256, 1024, 4096)], key=["scale"], prune_configs_by={"early_config_prune": prune}
)
@triton.jit
def relu_kernel(x, y, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + i, tl.maximum(a, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        found = []
        for t in (x, y):
            out = torch.empty_like(t)
            n = t.numel()
            relu_kernel[lambda meta, n=n: (triton.cdiv(n, meta["BLOCK"]),)](t, out, n, n >> 22)
            found.append(out)
        return tuple(found)
