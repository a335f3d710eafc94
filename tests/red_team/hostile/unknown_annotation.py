# relu invalid: it annotates with a name that it never imports, so that importing it fails
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


def relu(x: torch.Tensor) -> Tuple[torch.Tensor]:
    o = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return (o,)


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)[0]
