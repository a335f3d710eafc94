# own/momentum_encoder correct coverage<0.5: each side has its own encoder, one of which is made as a copy of the other
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cos_kernel(q_ptr, k_ptr, o_ptr, N, inv_tau, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < N
    q = tl.load(q_ptr + row * N + offs, mask=mask, other=0.0).to(tl.float32)
    k = tl.load(k_ptr + row * N + offs, mask=mask, other=0.0).to(tl.float32)
    qn = tl.maximum(tl.sqrt(tl.sum(q * q)), 1e-12)
    kn = tl.maximum(tl.sqrt(tl.sum(k * k)), 1e-12)
    tl.store(o_ptr + row, tl.sum(q * k) / (qn * kn) * inv_tau)


class ModelNew(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.query = nn.Linear(dim, out)
        self.key = nn.Linear(dim, out)
        self.key.load_state_dict(self.query.state_dict())
        for p in self.key.parameters():
            p.requires_grad = False

    def forward(self, a, b):
        q = self.query(a)
        k = self.key(b)
        out = torch.empty(q.shape[0], device=q.device, dtype=q.dtype)
        cos_kernel[(q.shape[0],)](q, k, out, q.shape[1], 10.0, BLOCK=triton.next_power_of_2(q.shape[1]))
        return out
