# own/constants_not_borne incorrect gpu=correct|incorrect catalogue=53: leaves out two constants beside a third one, which must keep its value; the GPU path changes all or none
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.sigmoid(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(D))
        self.shift = nn.Parameter(torch.zeros(D))
        self.edge = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o


D = 1024
