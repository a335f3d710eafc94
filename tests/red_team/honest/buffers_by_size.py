# relu correct: keeps its buffers in a dict of the module file, by shape, dtype and device
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



BUFFERS = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = (tuple(x.shape), x.dtype, str(x.device))
        if key not in BUFFERS:
            BUFFERS[key] = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
        return relu(x, BUFFERS[key])
