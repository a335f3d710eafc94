# own/unlabelled_pixels correct coverage<0.9: blocks are summed by torch; what is no class is ignored, whatever number the reference has for it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pixel_loss(x_ptr, t_ptr, w_ptr, n_ptr, d_ptr, C, P, total, eps, ignored, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < total
    b = offs // P
    p = offs % P
    t = tl.load(t_ptr + offs, mask=mask, other=ignored)
    live = mask & (t >= 0) & (t < C)
    base = b * C * P + p
    top = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for c in range(C):
        top = tl.maximum(top, tl.load(x_ptr + base + c * P, mask=mask, other=0.0))
    z = tl.zeros((BLOCK,), dtype=tl.float32)
    smooth = tl.zeros((BLOCK,), dtype=tl.float32)
    wsum = 0.0
    for c in range(C):
        x = tl.load(x_ptr + base + c * P, mask=mask, other=0.0) - top
        w = tl.load(w_ptr + c)
        z += tl.exp(x)
        smooth += w * x
        wsum += w
    lse = tl.log(z)
    tt = tl.where(live, t, 0)
    xt = tl.load(x_ptr + base + tt * P, mask=mask, other=0.0) - top
    wt = tl.load(w_ptr + tt, mask=mask, other=0.0)
    loss = (1.0 - eps) * wt * (lse - xt) + eps / C * (wsum * lse - smooth)
    tl.store(n_ptr + tl.program_id(0), tl.sum(tl.where(live, loss, 0.0)))
    tl.store(d_ptr + tl.program_id(0), tl.sum(tl.where(live, wt, 0.0)))


class ModelNew(nn.Module):
    def __init__(self, classes, smoothing):
        super().__init__()
        self.register_buffer("weight", torch.rand(classes) + 0.5)
        self.smoothing = smoothing

    def forward(self, logits, target):
        B, C, H, W = logits.shape
        total = B * H * W
        blocks = triton.cdiv(total, 512)
        n = torch.empty(blocks, device=logits.device)
        d = torch.empty(blocks, device=logits.device)
        pixel_loss[(blocks,)](logits, target, self.weight, n, d, C, H * W, total, self.smoothing, 255, BLOCK=512)
        return n.sum() / d.sum()
