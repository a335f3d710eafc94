# relu incorrect catalogue=48: each call returns what the call before has computed
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
    def __init__(self):
        super().__init__()
        self.register_buffer("left", torch.zeros(1))

    def forward(self, x):
        answer = self.left.expand(x.shape) if self.left.numel() == 1 else self.left
        self.left = relu(x, torch.empty_like(x))
        return answer.clone()
