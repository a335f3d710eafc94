# relu correct: a function that torch's compiler is told to leave alone, for which torch imports its compiler
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = i < n
    tl.store(y_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=keep), 0.0), mask=keep)


def relu(x):
    y = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        torch._dynamo.config.suppress_errors = True
        self.relu = torch.compiler.disable(relu)

    def forward(self, x):
        return self.relu(x)
