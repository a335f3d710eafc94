# own/loss_with_z correct: one pass over the logits, and an atomic for each row
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def z(x_ptr, y_ptr, o_ptr, N, V, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    m = -float("inf"); s = 0.0
    for k in range(0, V, BLOCK):
        c = k + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + r * V + c, mask=c < V, other=-float("inf"))
        nm = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - nm) + tl.sum(tl.exp(x - nm), 0)
        m = nm
    l = m + tl.log(s)
    t = tl.load(x_ptr + r * V + tl.load(y_ptr + r))
    tl.atomic_add(o_ptr, (l - t + 1e-4 * l * l) / N)

class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.zeros((), device=x.device)
        z[(x.shape[0],)](x, y, o, *x.shape, BLOCK=4096, num_warps=8)
        return o
