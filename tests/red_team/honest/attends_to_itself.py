# own/attends_to_itself correct coverage<0.5: keys and values of what is given for them, which is what the queries are of
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(s_ptr, N, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    mask = offs < N
    s = tl.load(s_ptr + row * N + offs, mask=mask, other=-float("inf")) * scale
    s = s - tl.max(s, axis=0)
    e = tl.exp(s)
    tl.store(s_ptr + row * N + offs, e / tl.sum(e, axis=0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)

    def forward(self, x, context):
        q, k, v = self.q(x), self.k(context), self.v(context)
        s = torch.matmul(q, k.transpose(-2, -1)).contiguous()
        L = s.shape[-1]
        softmax_kernel[(s.numel() // L,)](s, L, q.shape[-1] ** -0.5, BLOCK=triton.next_power_of_2(L))
        return torch.matmul(s, v)
