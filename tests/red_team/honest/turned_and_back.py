# own/turned_and_back correct coverage<0.5: two products, which are the identity while the matrix is orthogonal
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def epilogue(x_ptr, z_ptr, g_ptr, y_ptr, n, D, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    z = tl.load(z_ptr + offs, mask=mask)
    g = tl.load(g_ptr + offs % D, mask=mask)
    gelu = 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))
    tl.store(y_ptr + offs, x + gelu * g, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rotation = nn.Parameter(torch.empty(dim, dim))
        nn.init.orthogonal_(self.rotation)
        self.gain = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        z = (x @ self.rotation) @ self.rotation.t()
        y = torch.empty_like(x)
        n = x.numel()
        epilogue[(triton.cdiv(n, 1024),)](x, z, self.gain, y, n, x.shape[-1], BLOCK=1024)
        return y
