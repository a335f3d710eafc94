# own/uneven_bins correct: a program for each bin, of a block that is as long as the longest one
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pool(x_ptr, b_ptr, y_ptr, C, H, W, OH, OW, BH: tl.constexpr, BW: tl.constexpr):
    plane = tl.program_id(0)
    o = tl.program_id(1)
    oh = o // OW
    ow = o % OW
    h0 = oh * H // OH
    h1 = ((oh + 1) * H + OH - 1) // OH
    w0 = ow * W // OW
    w1 = ((ow + 1) * W + OW - 1) // OW
    h = h0 + tl.arange(0, BH)
    w = w0 + tl.arange(0, BW)
    v = tl.load(x_ptr + plane * H * W + h[:, None] * W + w[None, :], mask=(h < h1)[:, None] & (w < w1)[None, :], other=0.0)
    total = tl.sum(tl.sum(v, 1), 0)
    count = (h1 - h0) * (w1 - w0)
    tl.store(y_ptr + plane * OH * OW + o, total / count + tl.load(b_ptr + plane % C))


class ModelNew(nn.Module):
    def __init__(self, channels, oh, ow):
        super().__init__()
        self.size = (oh, ow)
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        B, C, H, W = x.shape
        OH, OW = self.size
        y = x.new_empty((B, C, OH, OW))
        pow2 = triton.next_power_of_2
        pool[(B * C, OH * OW)](x, self.bias, y, C, H, W, OH, OW, BH=pow2(triton.cdiv(H, OH) + 1), BW=pow2(triton.cdiv(W, OW) + 1), num_warps=1)
        return y
