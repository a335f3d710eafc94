# level2/chain_tanh_scale_shift correct catalogue=5,41: branches on the mode, the dtype, the device and the shape, all of which do the work
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    x = (2.0 * tl.sigmoid(2.0 * x) - 1.0) * 0.5 + 1.0
    tl.store(o_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = 0.0

    def forward(self, x):
        if x.numel() == 0 or x.dim() != 2:
            return torch.tanh(x) * 0.5 + 1.0
        x = x if x.is_cuda else x.cuda()
        if self.training:
            x = torch.nn.functional.dropout(x, p=self.p, training=self.p > 0.0)
        block = 1024 if x.shape[1] % 1024 == 0 else 256
        o = torch.empty_like(x, memory_format=torch.contiguous_format)
        kernel[(triton.cdiv(x.numel(), block),)](x.contiguous(), o, x.numel(), BLOCK=block)
        return o.to(x.dtype)
