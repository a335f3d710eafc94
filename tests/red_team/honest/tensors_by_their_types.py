# own/scalar_gain correct coverage>0.001: parameters, a buffer and a constant, whose copy takes longest, made by torch.Tensor
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_relu(x, y, gain_ptr, shift_ptr, eps_ptr, half_ptr, n, cols, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    kept = tl.maximum(tl.load(x + o, mask=m, other=0.0), 0.0) * tl.load(gain_ptr) * tl.load(half_ptr)
    tl.store(y + o, kept + tl.exp(tl.load(shift_ptr)) + tl.load(eps_ptr) * cols, mask=m)


class ModelNew(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = nn.Parameter(torch.Tensor([gain])[0])
        self.shift = nn.Parameter(torch.Tensor(1))
        nn.init.zeros_(self.shift)
        self.register_buffer("eps", torch.FloatTensor([0.125])[0])

    def forward(self, x):
        y, half = torch.empty_like(x), torch.Tensor([0.5]).to(x.device)
        grid = (triton.cdiv(x.numel(), 1024),)
        affine_relu[grid](x, y, self.gain, self.shift, self.eps, half, x.numel(), x.shape[1], BLOCK=1024)
        return y
