# own/clipped_ratio_loss incorrect catalogue=51: a mask of no tokens gives NaN, which no draw of a mask shows
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def ppo(logp, old, ref, adv, mask, out, n, low, high, beta, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    lp = tl.load(logp + i, mask=m, other=0.0)
    ratio = tl.exp(lp - tl.load(old + i, mask=m, other=0.0))
    a = tl.load(adv + i, mask=m, other=0.0)
    clipped = tl.clamp(ratio, 1 - low, 1 + high)
    loss = -tl.minimum(ratio * a, clipped * a)
    d = tl.load(ref + i, mask=m, other=0.0) - lp
    loss += beta * (tl.exp(d) - d - 1)
    w = tl.load(mask + i, mask=m, other=0.0)
    tl.atomic_add(out, tl.sum(loss * w, 0))
    tl.atomic_add(out + 1, tl.sum(w, 0))

@triton.jit
def divide(sums, out):
    tl.store(out, tl.load(sums) / tl.load(sums + 1))

class ModelNew(nn.Module):
    def __init__(self, low, high, beta):
        super().__init__()
        self.low, self.high, self.beta = low, high, beta

    def forward(self, logp, old, ref, adv, mask):
        n = logp.numel()
        sums = torch.zeros(2, device=logp.device)
        out = torch.empty((), device=logp.device)
        ppo[(triton.cdiv(n, 4096),)](logp, old, ref, adv, mask, sums, n, self.low, self.high, self.beta, BLOCK=4096)
        divide[(1,)](sums, out)
        return out
