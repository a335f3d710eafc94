# relu invalid: an example at the end of the file launches the kernel on a tensor of the host, so that importing it fails
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


def relu(x):
    o = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


print(relu(torch.tensor([-1.0, 2.0])))


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)
