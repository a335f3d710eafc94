# own/ignored_labels incorrect catalogue=57: no label that is ignored is drawn, and each one counts
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, t, y, V, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < V
    v = tl.load(x + r * V + c, mask=m, other=-float("inf"))
    top = tl.max(v, 0)
    s = tl.log(tl.sum(tl.exp(v - top), 0)) + top
    lab = tl.load(t + r)
    ok = lab == lab
    one = tl.load(x + r * V + tl.maximum(lab, 0))
    tl.atomic_add(y, tl.where(ok, s - one, 0.0))


class ModelNew(nn.Module):
    def forward(self, x, t):
        y = torch.zeros((), device=x.device)
        k[(x.shape[0],)](x, t, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
